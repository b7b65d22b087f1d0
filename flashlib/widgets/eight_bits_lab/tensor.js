/** @import { Rounding } from "./types.js" */
import { div, note, setSentence, svg, symbol } from "../shared/elements.js";

const GRID = { high: 54, comb: 12, below: 16, left: 2, right: 8 }; // px
const LEAST = 2; // px, of a bar: one number in a thousand must be seen
const EVERY = 4; // octaves from label to label
const FOOT = GRID.high + 2; // px

/** The sizes of the numbers of one tensor, and below them those of its format. What stays is not drawn again. */
export class Tensor {
  /** @type {number[]} */
  grid;

  /** @param {string} name */
  constructor(name) {
    this.name = name;
    const path = (part) => svg("path", { class: `flash-eight-${part}` });
    this.paths = { bars: path("bars"), gone: path("gone"), axis: path("axis"), comb: path("comb") };
    this.labels = svg("g", {});
    const parts = [...Object.values(this.paths), this.labels];
    this.picture = svg("svg", { role: "img", "data-name": name, height: FOOT + GRID.comb + GRID.below }, parts);
    this.words = note();
    this.element = div("flash-eight-tensor", div("flash-eight-title", symbol(name), this.words), this.picture);
    this.drawn = { room: 0, format: "" };
  }

  /**
   * @param {Rounding} rounding
   * @param {number[]} grid the positive numbers of the format
   * @param {number} octaves
   * @param {number} room px
   */
  draw({ format, bars, words }, grid, octaves, room) {
    setSentence(this.words, words);
    if (!room) return;
    const wide = room - GRID.left - GRID.right;
    const x = (octave) => GRID.left + (wide * (octaves + octave)) / octaves;
    if (this.drawn.room !== room) this.#axis(octaves, room, x);
    if (this.drawn.room !== room || this.drawn.format !== format) this.#comb(format, grid, octaves, x);
    this.drawn = { room, format };
    const zero = Math.log2((grid[0] ?? 0) / 2 / (grid.at(-1) ?? 1)); // what is smaller becomes 0
    const [unit, step] = [GRID.high / Math.max(...bars), wide / bars.length];
    const isGone = (k) => ((k + 0.5) * octaves) / bars.length - octaves < zero;
    const bar = (share, k) => {
      const high = Math.max(share * unit, LEAST);
      return `M${GRID.left + k * step + 0.5} ${FOOT}v${-high}h${step - 1}v${high}z`;
    };
    const of = (gone) => bars.map((share, k) => (share && isGone(k) === gone ? bar(share, k) : "")).join("");
    this.paths.bars.setAttribute("d", of(false));
    this.paths.gone.setAttribute("d", of(true));
  }

  #axis(octaves, room, x) {
    this.picture.setAttribute("viewBox", `0 0 ${room} ${FOOT + GRID.comb + GRID.below}`);
    this.paths.axis.setAttribute("d", `M${GRID.left} ${FOOT}H${room - GRID.right}`);
    const label = (octave) => {
      const place = { x: x(octave), y: FOOT + GRID.comb + 13, "text-anchor": octave ? "middle" : "end" };
      return svg("text", { class: "flash-eight-text", ...place }, octave ? `1/${2 ** -octave}` : "1");
    };
    this.labels.replaceChildren(...Array.from({ length: Math.ceil(octaves / EVERY) }, (_, k) => label(-EVERY * k)));
  }

  #comb(format, grid, octaves, x) {
    const largest = grid.at(-1) ?? 1;
    const comb = grid.map((value) => Math.log2(value / largest)).filter((octave) => octave >= -octaves);
    this.paths.comb.setAttribute("d", comb.map((octave) => `M${x(octave)} ${FOOT + 2}v${GRID.comb - 2}`).join(""));
    const sizes = grid.length ? `the ${grid.length} sizes` : "the many sizes";
    this.picture.setAttribute("aria-label", `${this.name}: how large its numbers are, and ${sizes} that ${format} has`);
  }
}
