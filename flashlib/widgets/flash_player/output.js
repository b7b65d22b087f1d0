// O alone, which is all that a first look shows of slow memory.

/** @import { Colours } from "../shared/colours.js" */
/** @import { Frames } from "./frames.js" */
/** @import { At, ForwardStep } from "./types.js" */
import { div, h, note, panel, setText, symbol } from "../shared/elements.js";
import { between } from "../shared/numbers.js";
import { wordsBeside } from "./labels.js";
import { CELL, Matrix } from "./matrix.js";

const OUTPUT = { width: 132, height: 210, row: 22, cols: 4, rows: 12 }; // px; with numbers, at most so many columns and rows

export class Output {
  static key = ({ N_q, d, rowWords }) => [N_q, d, rowWords];

  /** @type {Frames} */
  frames;

  /** @param {Frames} frames */
  constructor({ N_q, d, rowWords }) {
    const numbers = d <= OUTPUT.cols && N_q <= OUTPUT.rows;
    const width = numbers ? CELL.width[1] : OUTPUT.width / d;
    const height = numbers ? CELL.height[1] : between(0.5, OUTPUT.height / Math.max(N_q, 1), OUTPUT.row);
    this.matrix = new Matrix("O", { rows: N_q, cols: d, width, height, numbers });
    this.matrix.pending = true;
    this.here = h("div", { class: "flash-here", hidden: true });
    this.size = height;
    this.held = { O: new Float64Array(0) };
    this.final = note();
    const cells = div("flash-strip-cells", this.matrix.element, this.here);
    const rows = div("flash-strip-rows", wordsBeside(rowWords, height), cells);
    this.element = panel("output", symbol("O"), note("the result, in HBM"), rows, this.final);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.frames = frames;
  }

  /** The rows that are outlined, as an element. */
  slice() {
    return this.here;
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {Colours} colour
   */
  draw(at, colour) {
    const { frames } = this;
    const { N_q, d, peaks } = frames;
    const done = frames.stored(at);
    const O = (this.held.O = frames.outputAfter(done));
    this.matrix.draw(O, 0, N_q, d, peaks.O, colour);
    const stored = at.storing ? at.step : undefined;
    this.here.hidden = !stored;
    if (stored) Object.assign(this.here.style, { top: `${stored.rows[0] * this.size}px`, height: `${stored.n_r * this.size}px` });
    setText(this.final, `${frames.finalRows(done)} of ${N_q} rows final`);
  }
}
