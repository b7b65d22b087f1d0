/** @import { Numbers, Place, Result } from "./types.js" */
import { div, h, panel, setSentence, setText, svg } from "../shared/elements.js";
import { number, short } from "../shared/numbers.js";
import { watchRoom } from "../split_lab/axes.js";
import { neighbours } from "./nearby.js";
import { accountOf } from "./said.js";

const ROOM = { high: 46, at: 22, side: 16 }; // px

/** One score and its weight, and the numbers that P can be rounded to. */
export class Score {
  /** @type {string[]} */
  text = [];
  /** @type {number} */
  room;

  /** @param {(by: Partial<Place>) => void} step */
  constructor(step) {
    this.title = h("span", {});
    const button = (name, by, sign, label) =>
      h("button", { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: () => step({ [name]: by }) }, sign);
    const stepper = div(
      "flash-eight-stepper",
      button("row", -1, "▲", "previous query (up arrow)"),
      button("row", 1, "▼", "next query (down arrow)"),
      button("key", -1, "◀", "previous key (left arrow)"),
      button("key", 1, "▶", "next key (right arrow)"),
    );
    this.lines = Array.from({ length: 4 }, () => h("p", {}));
    this.picture = svg("svg", { role: "img" });
    const room = div("flash-eight-line", this.picture);
    this.element = panel("eight-score", this.title, stepper, div("flash-eight-lines", this.lines), room);
    this.resized = watchRoom(room, this, () => this.#plot());
    /** @type {[number[], number, number]} */
    this.plotted = [[], 0, 0];
  }

  /**
   * @param {Place} place
   * @param {Result} result
   * @param {Numbers} numbers
   */
  draw(place, result, numbers) {
    const { shown, grids } = result;
    const k = place.row * shown + place.key;
    setText(this.title, `One score and its weight: query ${place.row}, key ${place.key}`);
    this.text = accountOf(place, result, numbers);
    this.text.forEach((line, n) => setSentence(this.lines[n], line));
    this.plotted = [grids.pv, numbers.P[k], numbers.P_q[k]];
    this.#plot();
  }

  /** P among the numbers that there are. */
  #plot() {
    if (!this.room) return;
    const [grid, x, rounded] = this.plotted;
    const near = neighbours(grid, x);
    this.picture.setAttribute("viewBox", `0 0 ${this.room} ${ROOM.high}`);
    this.picture.setAttribute("height", ROOM.high);
    if (!near.length || !grid.length) {
      this.picture.setAttribute("aria-label", "no grid: the numbers of 16 bits lie too near");
      return this.picture.replaceChildren();
    }
    const [low, high] = [near[0], near[near.length - 1]];
    const place = (value) => ROOM.side + ((this.room - 2 * ROOM.side) * (Math.min(value, high) - low)) / (high - low);
    const ticks = near.map((value) => `M${place(value)} ${ROOM.at - 6}v12`).join("");
    const text = (value) => svg("text", { class: "flash-eight-text", x: place(value), y: ROOM.at + 20, "text-anchor": "middle" }, short(value));
    this.picture.replaceChildren(
      svg("path", { class: "flash-eight-axis", d: `M${ROOM.side} ${ROOM.at}H${this.room - ROOM.side}` }),
      svg("path", { class: "flash-eight-comb", d: ticks }),
      svg("circle", { class: "flash-eight-rounded", cx: place(rounded), cy: ROOM.at, r: 7 }),
      svg("circle", { class: "flash-eight-value", cx: place(x), cy: ROOM.at, r: 3.5 }),
      ...near.map(text),
    );
    this.picture.setAttribute("aria-label", `${number(x)} among the numbers from ${short(low)} to ${short(high)}, rounded to ${number(rounded)}`);
  }
}
