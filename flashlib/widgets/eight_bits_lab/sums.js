/** @import { Numbers, Place, Result } from "./types.js" */
import { div, h, panel, setSentence, svg } from "../shared/elements.js";
import { short } from "../shared/numbers.js";
import { watchRoom } from "../split_lab/axes.js";
import { endingOf } from "./said.js";

const CHART = { left: 46, right: 10, top: 8, high: 96, below: 20 }; // px

/** One sum of P V as it grows with the keys. */
export class RunningSum {
  /** @type {number} */
  room;
  /** @type {[Place, Result, Numbers] | null} */
  drawn = null;
  text = "";

  /** @param {(by: Partial<Place>) => void} step */
  constructor(step) {
    this.title = h("span", {});
    const button = (by, sign, label) =>
      h("button", { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: () => step({ column: by }) }, sign);
    const stepper = div(
      "flash-eight-stepper",
      button(-1, "◀", "previous column (page up)"),
      button(1, "▶", "next column (page down)"),
    );
    this.words = h("p", {});
    this.picture = svg("svg", { role: "img" });
    const key = (name, text) => h("span", {}, h("i", { class: `flash-eight-key flash-eight-key-${name}` }), text);
    const legend = div("flash-legend flash-note", key("sum", "as it is added"), key("exact", "the same terms, added exactly"));
    const room = div("flash-eight-chart", this.picture);
    this.element = panel("eight-sum", this.title, stepper, this.words, room, legend);
    this.resized = watchRoom(room, this, () => this.#plot());
  }

  /**
   * @param {Place} place
   * @param {Result} result
   * @param {Numbers} numbers
   */
  draw(place, result, numbers) {
    this.drawn = [place, result, numbers];
    setSentence(this.title, `One sum of P V: query ${place.row}, column ${place.column}`);
    this.text = endingOf(place, result, numbers);
    setSentence(this.words, this.text);
    this.#plot();
  }

  #plot() {
    if (!this.room || !this.drawn) return;
    const [{ row, column }, { rows, cols, points, setting }, { keys, running, unrounded }] = this.drawn;
    const of = (values) => [0, ...Array.from({ length: points }, (_, n) => values[n * rows * cols + row * cols + column])];
    const [sums, exact, at] = [of(running), of(unrounded), [0, ...keys]];
    const [low, high] = [Math.min(...sums, ...exact), Math.max(...sums, ...exact)];
    const bottom = CHART.top + CHART.high;
    const x = (key) => CHART.left + ((this.room - CHART.left - CHART.right) * key) / setting.N;
    const y = (value) => bottom - (CHART.high * (value - low)) / (high - low || 1);
    const line = (values) => values.map((value, n) => `${n ? "L" : "M"}${x(at[n]).toFixed(2)} ${y(value).toFixed(2)}`).join("");
    const text = (left, top, words, anchor) => svg("text", { class: "flash-eight-text", x: left, y: top, "text-anchor": anchor }, words);
    const ends = [0, 0.25, 0.5, 1].map((part) => part * setting.N);
    const right = this.room - CHART.right;
    this.picture.setAttribute("viewBox", `0 0 ${this.room} ${bottom + CHART.below}`);
    this.picture.setAttribute("height", bottom + CHART.below);
    this.picture.setAttribute("aria-label", this.text);
    const path = (name, d) => svg("path", { class: `flash-eight-${name}`, d });
    const values = high - low && Math.abs(y(0) - y(low)) > 16 && Math.abs(y(0) - y(high)) > 16 ? [low, 0, high] : [low, high];
    this.picture.replaceChildren(
      path("axis", `M${CHART.left} ${CHART.top}V${bottom}H${right}M${CHART.left} ${y(0)}H${right}`),
      path("exact", line(exact)),
      path("sum", line(sums)),
      ...values.map((value) => text(CHART.left - 5, y(value) + 4, short(value), "end")),
      ...ends.map((key) => text(x(key), bottom + 15, key === setting.N ? `${key} keys` : String(key), key === setting.N ? "end" : "middle")),
    );
  }
}
