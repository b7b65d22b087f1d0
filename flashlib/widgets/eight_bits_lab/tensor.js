/** @import { Rounding } from "./types.js" */
import { div, note, setSentence, svg, symbol } from "../shared/elements.js";
import { eightPath, eightText } from "./marks.js";

const GRID = { high: 54, comb: 12, below: 16, left: 2, right: 8 }; // px
const LEAST = 2; // px, of a bar: one number in a thousand must be visible
const EVERY = 4; // octaves from label to label
const FOOT = GRID.high + 2; // px
const HEIGHT = FOOT + GRID.comb + GRID.below;

/** A histogram of one tensor by size, and below it the numbers of its format. Unchanged parts are not redrawn. */
export class Tensor {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    const [bars, gone, axis, comb] = ["bars", "gone", "axis", "comb"].map((part) => eightPath(part));
    this.paths = { bars, gone, axis, comb };
    this.labels = svg("g", {});
    const attributes = { role: "img", "data-name": name, height: HEIGHT };
    this.picture = svg("svg", attributes, bars, gone, axis, comb, this.labels);
    this.words = note();
    const title = div("flash-eight-title", symbol(name), this.words);
    this.element = div("flash-eight-tensor", title, this.picture);
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
    const zero = Math.log2((grid[0] ?? 0) / 2 / (grid.at(-1) ?? 1)); // smaller numbers become 0
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
    this.picture.setAttribute("viewBox", `0 0 ${room} ${HEIGHT}`);
    this.paths.axis.setAttribute("d", `M${GRID.left} ${FOOT}H${room - GRID.right}`);
    const label = (octave) => {
      const words = octave ? `1/${2 ** -octave}` : "1";
      return eightText(x(octave), FOOT + GRID.comb + 13, words, octave ? "middle" : "end");
    };
    const labels = Array.from({ length: Math.ceil(octaves / EVERY) }, (_, k) => label(-EVERY * k));
    this.labels.replaceChildren(...labels);
  }

  #comb(format, grid, octaves, x) {
    const largest = grid.at(-1) ?? 1;
    const comb = grid.map((value) => Math.log2(value / largest)).filter((octave) => octave >= -octaves);
    const marks = comb.map((octave) => `M${x(octave)} ${FOOT + 2}v${GRID.comb - 2}`);
    this.paths.comb.setAttribute("d", marks.join(""));
    const sizes = grid.length ? `the ${grid.length} sizes` : "the many sizes";
    const label = `${this.name}: how large its numbers are, and ${sizes} that ${format} has`;
    this.picture.setAttribute("aria-label", label);
  }
}
