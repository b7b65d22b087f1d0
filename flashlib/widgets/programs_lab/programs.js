/** @import { Result } from "./types.js" */
import { slider } from "../shared/controls.js";
import { div, h, panel, put, setText, svg } from "../shared/elements.js";
import { watchRoom } from "../split_lab/axes.js";
import { layOut, longAxes } from "./layout.js";
import { Texts } from "./texts.js";

const NUMBERED = 18; // px, of a box in which a number can be read

/** The grid of programs, one of which is chosen, and the turn of its loop. */
export class Programs {
  /** @type {Result} */
  result;
  /** @type {number} */
  room;
  /** @type {{ at: { x: number, y: number }[], size: number }} */
  layout;

  /**
   * @param {(program: number) => void} chosen
   * @param {(turn: number) => void} went
   */
  constructor(chosen, went) {
    this.program = 0;
    this.mark = svg("path", { class: "flash-programs-chosen" });
    this.boxes = svg("path", { class: "flash-programs-boxes" });
    this.texts = new Texts();
    this.svg = svg("svg", { class: "flash-programs-grid", role: "img" }, this.mark, this.boxes, this.texts.group);
    this.svg.addEventListener("click", (event) => {
      const program = this.#under(event);
      if (program >= 0) chosen(program);
    });
    const asked = () => chosen(this.#asked());
    this.axes = [0, 1, 2].map((axis) => slider(`axis ${axis}`, `program_id(${axis}) of the program`, asked));
    this.turn = slider("turn", "turn of the loop", went);
    this.choosing = h("p", { class: "flash-note", title: "or use the arrow keys" });
    this.body = div("flash-programs-body", this.svg);
    this.element = panel(
      "programs-programs",
      "The grid",
      null,
      this.choosing,
      this.body,
      div("flash-programs-sliders", [...this.axes, this.turn].map(({ element }) => element)),
    );
    this.resized = watchRoom(this.body, this, () => this.#lay());
  }

  /** @param {Result} result */
  take(result) {
    this.result = result;
    const long = longAxes(result.grid);
    setText(this.choosing, result.grid.choosing);
    this.axes.forEach(({ element }, axis) => {
      element.hidden = !long.includes(axis);
      setText(/** @type {Element} */ (element.firstElementChild), String(long) === "0" ? "program" : `program_id(${axis})`);
    });
    this.#lay();
  }

  /** The program that the sliders name; the one before if it did not run. */
  #asked() {
    const asked = this.axes.map(({ range }) => Number(range.value));
    const found = this.result.programs.findIndex(({ number }) => number.every((n, axis) => n === asked[axis]));
    return found < 0 ? this.program : found;
  }

  #lay() {
    if (!this.room || !this.result) return;
    const { programs, grid } = this.result;
    this.layout = layOut(programs, grid, this.room - 2);
    const { at, size } = this.layout;
    const height = Math.max(0, ...at.map(({ y }) => y + size)) + 2;
    put(this.svg, "viewBox", `0 0 ${this.room} ${height}`);
    put(this.svg, "height", String(height));
    put(this.boxes, "d", at.map(({ x, y }) => this.#box(x, y)).join(""));
    const long = longAxes(grid);
    this.texts.draw(
      programs.flatMap(({ number, bad }, k) => {
        const place = { x: at[k].x + size / 2 + 1, y: at[k].y + size / 2 + 5 };
        if (bad) return [{ ...place, text: "✕", name: "cross" }];
        return size >= NUMBERED ? [{ ...place, text: long.map((axis) => number[axis]).join(","), name: "number" }] : [];
      }),
    );
    this.#mark();
  }

  #box(x, y) {
    const side = this.layout.size - 3;
    return `M${x + 2.5} ${y + 2.5}h${side}v${side}h${-side}z`;
  }

  #mark() {
    const place = this.layout?.at[this.program];
    put(this.mark, "d", place ? this.#box(place.x, place.y) : "");
  }

  /**
   * @param {number} program
   * @param {number} turn
   * @param {number} turns
   */
  draw(program, turn, turns) {
    this.program = program;
    const { programs, grid } = this.result;
    const number = programs[program]?.number ?? grid.first;
    this.axes.forEach(({ show }, axis) => {
      show(number[axis], [grid.first[axis], grid.first[axis] + Math.max(grid.shown[axis] - 1, 0)]);
    });
    this.turn.show(turn, [0, turns - 1]);
    this.turn.element.hidden = turns < 2;
    put(this.svg, "aria-label", `a grid of ${programs.length} programs; the one that is shown is ${number.join(", ")}`);
    this.#mark();
  }

  #under(event) {
    const { left, top } = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const { at, size } = this.layout;
    return at.findIndex((place) => x >= place.x && x < place.x + size && y >= place.y && y < place.y + size);
  }
}
