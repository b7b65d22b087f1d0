// O alone, which is all that a first look shows of slow memory.

/** @import { Colours } from "../shared/colours.js" */
/** @import { Frames } from "./frames.js" */
/** @import { At, ForwardStep } from "./types.js" */
import { div, h, note, panel, setText, symbol } from "../shared/elements.js";
import { between, exact, short } from "../shared/number_text.js";
import { roomOf, wordsBeside } from "./labels.js";
import { CELL, Matrix } from "./matrix.js";

const OUTPUT = { width: 132, height: 210, row: 15, cols: 4, rows: 12 }; // px; with numbers, at most so many columns and rows

/** O, and where rows have words, the key to which each final one gives most weight: who looks at whom. */
export class Output {
  static key = ({ N_q, d, keyWords }) => [N_q, d, keyWords];

  /** @type {Frames} */
  frames;
  /** @type {([key: number, weight: number] | undefined)[]} of each row, once it is drawn */
  largest;

  /** @param {Frames} frames */
  constructor({ N_q, d, rowWords, keyWords }) {
    const names = rowWords ?? Array.from({ length: N_q }, (_, row) => String(row));
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
    const style = rowWords && `line-height:${height}px; width:${roomOf(keyWords ?? []) + 34}px`; // with the weight
    this.looks = rowWords ? rowWords.map(() => h("span", { style }, "")) : [];
    const looks = rowWords && div("flash-row-words flash-row-looks", this.looks);
    const rows = div("flash-strip-rows", wordsBeside(names, height), cells, looks);
    this.element = panel("output", symbol("O"), note("the result, in HBM"), rows, this.final);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.frames = frames;
    this.largest = frames.learner ? [] : this.looks.map((_, row) => frames.largestWeight(row));
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
    const rows = frames.finalRows(done);
    const final = `${rows} of ${N_q} rows final`;
    this.final.classList.toggle("flash-none", rows === 0);
    setText(this.final, this.largest.length ? `${final}; beside each, its largest weight and the word that has it` : final);
    this.looks.forEach((look, row) => {
      const largest = frames.isFinal(row, done) ? this.largest[row] : undefined;
      setText(look, largest ? `${short(largest[1])} ${frames.keyWords?.[largest[0]]}` : "");
      look.title = largest ? exact(largest[1]) : "";
    });
  }
}
