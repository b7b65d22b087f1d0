/** @import { Numbers, Place, Result } from "./types.js" */
import { div, h, panel, setSentence, setText, svg, typeset } from "../shared/elements.js";
import { number, short } from "../shared/number_text.js";
import { watchRoom } from "../split_lab/axes.js";
import { eightKey, eightPath, eightText, stepButtons } from "./marks.js";
import { neighbours } from "./nearby.js";
import { accountOf } from "./words.js";

const ROOM = { high: 46, at: 22, side: 16 }; // px
const KEYS_OF_P = { value: "P", rounded: "what it is rounded to", comb: "numbers of the format" };
const NO_GRID = "16-bit numbers are too close together to be drawn";

/** One score and its weight, and the numbers to which P can be rounded. */
export class Score {
  /** @type {string[]} */
  text = [];
  /** @type {number} */
  room;

  /** @param {(by: Partial<Place>) => void} step */
  constructor(step) {
    this.title = h("span", {});
    const buttons = stepButtons([
      ["▲", "previous query (up arrow)", () => step({ row: -1 })],
      ["▼", "next query (down arrow)", () => step({ row: 1 })],
      ["◀", "previous key (left arrow)", () => step({ key: -1 })],
      ["▶", "next key (right arrow)", () => step({ key: 1 })],
    ]);
    this.lines = Array.from({ length: 4 }, () => h("p", {}));
    this.picture = svg("svg", { role: "img", height: ROOM.high });
    const room = div("flash-eight-line", this.picture);
    const names = Object.entries(KEYS_OF_P).map(([name, text]) => eightKey(name, h("span", {}, typeset(text))));
    const keys = div("flash-legend flash-note", names);
    this.element = panel("eight-score", this.title, buttons, div("flash-eight-lines", this.lines), room, keys);
    this.resized = watchRoom(room, this, () => this.#plot());
    /** @type {[grid: number[], P: number, rounded: number]} */
    this.plotted = [[], 0, 0];
  }

  /**
   * @param {Place} place
   * @param {Result} result
   * @param {Numbers} numbers
   * @param {boolean} seen
   */
  draw(place, result, numbers, seen) {
    const k = place.row * result.shown + place.key;
    this.text = accountOf(place, result, numbers);
    if (!seen) return;
    setText(this.title, `One score and its weight: query ${place.row}, key ${place.key}`);
    this.text.forEach((line, n) => setSentence(this.lines[n], line));
    this.plotted = [result.grids.pv, numbers.P[k], numbers.P_q[k]];
    this.#plot();
  }

  /** P among the numbers of its format. */
  #plot() {
    if (!this.room) return;
    const [grid, P, rounded] = this.plotted;
    const near = grid.length ? neighbours(grid, P) : [];
    this.picture.setAttribute("viewBox", `0 0 ${this.room} ${ROOM.high}`);
    this.picture.replaceChildren(...(near.length ? this.#line(near, P, rounded) : []));
    const label = `${number(P)}, rounded to ${number(rounded)}`;
    this.picture.setAttribute("aria-label", near.length ? label : NO_GRID);
  }

  #line(near, P, rounded) {
    const [low, high] = [near[0], near[near.length - 1]];
    const wide = this.room - 2 * ROOM.side;
    const x = (value) => ROOM.side + (wide * (Math.min(value, high) - low)) / (high - low);
    const circle = (name, value, r) =>
      svg("circle", { class: `flash-eight-${name}`, cx: x(value), cy: ROOM.at, r });
    return [
      eightPath("axis", `M${ROOM.side} ${ROOM.at}h${wide}`),
      eightPath("comb", near.map((value) => `M${x(value)} ${ROOM.at - 6}v12`).join("")),
      circle("rounded", rounded, 7),
      circle("value", P, 3.5),
      ...near.map((value) => eightText(x(value), ROOM.at + 20, short(value))),
    ];
  }
}
