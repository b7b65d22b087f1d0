/** @import { Result, Rounding } from "./types.js" */
import { div, h, note, panel, setSentence, svg, symbol } from "../shared/elements.js";
import { watchRoom } from "../split_lab/axes.js";

const GRID = { high: 54, comb: 12, below: 16, left: 2, right: 8 }; // px
const LEAST = 2; // px, of a bar: one number in a thousand must be seen
const EVERY = 4; // octaves from label to label

/** The sizes of the numbers of Q, K, V and P, and below them the numbers that eight bits have. */
export class Grids {
  /** @type {Result} */
  sent;
  /** @type {number} */
  room;

  constructor() {
    this.plots = ["Q", "K", "V", "P"].map((name) => {
      const [picture, words] = [svg("svg", { role: "img", "data-name": name }), note()];
      const element = div("flash-eight-tensor", div("flash-eight-title", symbol(name), words), picture);
      return { name, picture, words, element };
    });
    const row = div("flash-eight-tensors", this.plots.map(({ element }) => element));
    const key = (name, text) => h("span", {}, h("i", { class: `flash-eight-key flash-eight-key-${name}` }), text);
    const legend = div("flash-legend flash-note", key("bars", "numbers of this size"), key("gone", "that become 0"), key("comb", "numbers that there are"));
    const hint = note("by size, over the largest that the scale holds");
    this.element = panel("eight-grids", "The numbers, and the grid that they are rounded to", hint, row, legend);
    this.resized = watchRoom(this.plots[0].element, this, () => this.#plot());
  }

  /** @param {Result} sent */
  draw(sent) {
    this.sent = sent;
    sent.rounding.forEach(({ words }, k) => setSentence(this.plots[k].words, words));
    this.#plot();
  }

  #plot() {
    if (!this.room || !this.sent) return;
    this.sent.rounding.forEach((rounding, k) => this.#one(this.plots[k].picture, rounding));
  }

  /**
   * @param {SVGSVGElement} picture
   * @param {Rounding} rounding
   */
  #one(picture, { name, format, bars }) {
    const { octaves, grids } = this.sent;
    const grid = grids[name === "P" || name === "V" ? "pv" : "qk"];
    const largest = grid.at(-1) ?? 1;
    const wide = this.room - GRID.left - GRID.right;
    const x = (octave) => GRID.left + (wide * (octaves + octave)) / octaves;
    const foot = GRID.high + 2;
    const unit = GRID.high / Math.max(...bars);
    const step = wide / bars.length;
    const zero = Math.log2((grid[0] ?? 0) / 2 / largest); // what is smaller becomes 0
    const path = (part, d) => svg("path", { class: `flash-eight-${part}`, d });
    const of = (gone) =>
      bars.map((share, k) => {
        const middle = ((k + 0.5) * octaves) / bars.length - octaves;
        if (!share || middle < zero !== gone) return "";
        const high = Math.max(share * unit, LEAST);
        return `M${GRID.left + k * step + 0.5} ${foot}v${-high}h${step - 1}v${high}z`;
      });
    const comb = grid.map((value) => Math.log2(value / largest)).filter((octave) => octave >= -octaves);
    const labels = Array.from({ length: Math.ceil(octaves / EVERY) }, (_, k) => -EVERY * k);
    const text = (octave) =>
      svg("text", { class: "flash-eight-text", x: x(octave), y: foot + GRID.comb + 13, "text-anchor": octave ? "middle" : "end" }, octave ? `1/${2 ** -octave}` : "1");
    const height = foot + GRID.comb + GRID.below;
    picture.setAttribute("viewBox", `0 0 ${this.room} ${height}`);
    picture.setAttribute("height", height);
    picture.setAttribute("aria-label", `${name}: sizes of its numbers, and the ${grid.length || "many"} sizes that ${format} has`);
    picture.replaceChildren(
      path("bars", of(false).join("")),
      path("gone", of(true).join("")),
      path("axis", `M${GRID.left} ${foot}H${GRID.left + wide}`),
      path("comb", comb.map((octave) => `M${x(octave)} ${foot + 2}v${GRID.comb - 2}`).join("")),
      ...labels.map(text),
    );
  }
}
