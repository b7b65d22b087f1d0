/** @import { Numbers, Place, Result } from "./types.js" */
import { div, h, panel, setSentence, svg } from "../shared/elements.js";
import { short } from "../shared/number_text.js";
import { watchRoom } from "../split_lab/axes.js";
import { eightKey, eightPath, eightText, stepButtons } from "./marks.js";
import { endingOf } from "./words.js";

const CHART = { left: 46, right: 10, top: 8, high: 130, below: 20, line: 16 }; // px
const BOTTOM = CHART.top + CHART.high;

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
    const buttons = stepButtons([
      ["◀", "previous column (page up)", () => step({ column: -1 })],
      ["▶", "next column (page down)", () => step({ column: 1 })],
    ]);
    this.words = h("p", {});
    this.picture = svg("svg", { role: "img" });
    const keys = [eightKey("added", "as it is added"), eightKey("exact", "the same terms, added exactly")];
    const room = div("flash-eight-chart", this.picture);
    this.element = panel("eight-sum", this.title, buttons, this.words, room, div("flash-legend flash-note", keys));
    this.resized = watchRoom(room, this, () => this.#plot());
  }

  /**
   * @param {Place} place
   * @param {Result} result
   * @param {Numbers} numbers
   * @param {boolean} seen
   */
  draw(place, result, numbers, seen) {
    this.drawn = [place, result, numbers];
    this.text = endingOf(place, result, numbers);
    if (!seen) return;
    setSentence(this.title, `One sum of P V: query ${place.row}, column ${place.column}`);
    setSentence(this.words, this.text);
    this.#plot();
  }

  #plot() {
    if (!this.room || !this.drawn) return;
    const [{ row, column }, { rows, cols, points, setting }, { keys, running, unrounded }] = this.drawn;
    const after = (values, n) => values[(n * rows + row) * cols + column];
    const of = (values) => [0, ...Array.from({ length: points }, (_, n) => after(values, n))];
    const [sums, exact, at] = [of(running), of(unrounded), [0, ...keys]];
    const [low, high] = [Math.min(...sums, ...exact), Math.max(...sums, ...exact)];
    const right = this.room - CHART.right;
    const x = (key) => CHART.left + ((right - CHART.left) * key) / setting.N;
    const y = (value) => BOTTOM - (CHART.high * (value - low)) / (high - low || 1);
    const place = (value, n) => `${n ? "L" : "M"}${x(at[n]).toFixed(2)} ${y(value).toFixed(2)}`;
    this.picture.setAttribute("viewBox", `0 0 ${this.room} ${BOTTOM + CHART.below}`);
    this.picture.setAttribute("height", BOTTOM + CHART.below);
    this.picture.setAttribute("aria-label", this.text);
    this.picture.replaceChildren(
      eightPath("axis", `M${CHART.left} ${CHART.top}V${BOTTOM}H${right}M${CHART.left} ${y(0)}H${right}`),
      eightPath("exact", exact.map(place).join("")),
      eightPath("added", sums.map(place).join("")),
      ...this.#labels(low, high, y, setting.N, x),
    );
  }

  /** The final sums, and 0 if there is room; some counts of keys. */
  #labels(low, high, y, N, x) {
    const isFree = [low, high].every((end) => Math.abs(y(0) - y(end)) > CHART.line);
    const values = isFree ? [low, 0, high] : [low, high];
    const counts = [0, 0.25, 0.5].map((part) => part * N);
    return [
      ...values.map((value) => eightText(CHART.left - 5, y(value) + 4, short(value), "end")),
      ...counts.map((key) => eightText(x(key), BOTTOM + 15, String(key))),
      eightText(x(N), BOTTOM + 15, `${N} keys`, "end"),
    ];
  }
}
