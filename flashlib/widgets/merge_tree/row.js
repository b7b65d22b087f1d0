// The row of MergeTree: the scores and their values, with the cuts between them. `cut` is called with a place.

/** @import { Colours } from "../shared/colours.js" */
import { div, h, setText, symbol } from "../shared/elements.js";
import { exact, number } from "../shared/number_text.js";
import { brief } from "./card.js";

const LABELS = 24; // px, for the names on the left

export class Row {
  /** @type {number} */
  width;

  /**
   * @param {number} N
   * @param {number} d
   * @param {Float64Array} numbers
   * @param {(at: number) => void} cut
   */
  constructor(N, d, numbers, cut) {
    this.N = N;
    this.ends = {}; // where it ends, small or not
    const names = ["x", ...Array.from({ length: d }, (_, k) => (d > 1 ? `V_${k}` : "V"))];
    const at = (line, j) => (line ? numbers[N + j * d + line - 1] : numbers[j]);
    const cell = (line, j) => ({ line, value: at(line, j), element: h("span", { title: exact(at(line, j)) }) });
    const lines = names.map((name, line) => ({
      name: symbol(name),
      cells: Array.from({ length: N }, (_, j) => cell(line, j)),
    }));
    this.cells = lines.flatMap(({ cells }) => cells);
    const elements = lines.map(({ name, cells }) => [name, cells.map(({ element }) => element)]);
    const style = `grid-template-columns:${LABELS}px repeat(${N}, minmax(0, 1fr))`;
    this.cuts = Array.from({ length: N - 1 }, (_, k) => this.#cut(k + 1, cut));
    const cutters = h("div", { class: "flash-merge-cuts", role: "group", "aria-label": "cuts" }, this.cuts);
    this.element = div("flash-merge-row", h("div", { class: "flash-merge-numbers", style }, elements), cutters);
    this.element.style.setProperty("--flash-merge-lines", 1 + d);
  }

  #cut(at, cut) {
    const label = `cut at ${at}, between x[${at - 1}] and x[${at}]`;
    const left = `calc(${LABELS}px + (100% - ${LABELS}px) * ${at / this.N})`;
    const names = { "aria-label": label, "data-cut": at, title: label };
    const button = { type: "button", class: "flash-merge-cut flash-asks", ...names };
    return h("button", { ...button, style: `left:${left}`, onclick: () => cut(at) });
  }

  /** The smallest width in which its numbers are legible, in px. */
  get least() {
    return LABELS + this.N * (this.N > 12 ? 35 : 42);
  }

  /**
   * The middle of the scores [start, stop), in px.
   * @param {number[]} range
   */
  middle([start, stop]) {
    return LABELS + ((this.width - LABELS) * (start + stop)) / 2 / this.N;
  }

  /**
   * Colour scores relative to the largest score, and values relative to the largest value.
   * @param {Colours} colour
   */
  paint(colour) {
    const sizes = (cells) => cells.map(({ value }) => (Number.isFinite(value) ? Math.abs(value) : 0));
    const peakOf = (scores) => Math.max(...sizes(this.cells.filter(({ line }) => !line === scores)));
    const peaks = [peakOf(true), peakOf(false)];
    for (const { element, value, line } of this.cells) {
      element.classList.toggle("flash-merge-masked", value === -Infinity);
      element.style.background = value === -Infinity ? "" : colour.css(value, peaks[Math.min(line, 1)]);
    }
  }

  draw(cuts) {
    this.cuts.forEach((button, k) => button.setAttribute("aria-pressed", cuts.includes(k + 1)));
  }

  /**
   * Lay it out in this many px; return where it ends.
   * @param {number} width
   */
  lay(width) {
    this.width = width;
    this.element.style.width = `${width}px`;
    const small = (width - LABELS) / this.N < 52;
    this.element.classList.toggle("flash-merge-small", small);
    for (const { element, value } of this.cells) setText(element, (small ? brief : number)(value));
    return (this.ends[small] ??= this.element.offsetTop + this.element.offsetHeight);
  }
}
