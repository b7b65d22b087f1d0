// HBM: Q, K, V and O as strips, in the FA1 order also m and l, and the bytes that were moved.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Colours } from "../shared/colours.js" */
/** @import { Frames, Trace } from "./frames.js" */
/** @import { At, Step } from "./types.js" */
import { div, h, note, panel, setSentence, setText, symbol } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { bytes, span } from "./frames.js";
import { wordsBeside } from "./labels.js";
import { Matrix } from "./matrix.js";

const STRIP = { width: 64, height: 96, cell: { width: 18, height: 12 }, column: 12 }; // px, of a matrix

/** @typedef {[name: string, rows: number, cols: number]} Sizes */
/** @typedef {{ matrix: Matrix, here: HTMLElement, rows: number, cols: number, element: HTMLElement }} Strip */

/**
 * Matrices in slow memory: `read`, which stay, and `written`, which fill as steps store; each is [name, rows, columns]. A
 * subclass says which rows a step uses (`inUse`) and how much was stored (`progress`), and keeps what was stored (`fill`).
 * @template {Trace<any>} [F=Trace<any>]
 */
export class Hbm {
  /** @type {F} */
  frames;
  /** @type {number | null} */
  done;

  /**
   * @param {F} frames
   * @param {{ read: Sizes[], written: Sizes[], remark: string, room?: number, keyed?: boolean }} shown
   */
  constructor(frames, { read, written, remark, room = STRIP.width, keyed = false }) {
    const { N_q, N_k, d, keyWords, rowWords } = frames;
    const high = keyWords ? 2 * STRIP.height : STRIP.height; // a row with a word needs more
    const height = between(0.5, high / Math.max(N_q, N_k, 1), STRIP.cell.height);
    const words = (name) => (name === "K" || name === "V" ? keyWords : rowWords);
    const width = Math.min(room / d, STRIP.cell.width);
    this.read = read.map(([name]) => name);
    /** @type {Record<string, Strip>} */
    this.strips = {};
    /** @type {Record<string, Float64Array>} */
    this.held = {}; // the contents of the written matrices
    for (const [name, rows, cols] of [...read, ...written])
      this.strips[name] = this.#strip(name, rows, cols, cols === 1 ? STRIP.column : width, height, words(name));
    for (const [name, rows, cols] of written) this.held[name] = new Float64Array(rows * cols);
    this.note = h("p", { class: "flash-note" });
    this.meter = new Meter(frames, keyed);
    const elements = Object.values(this.strips).map((strip) => strip.element);
    const beside = div("flash-beside", this.meter.element, this.note);
    const title = [note("large and slow"), h("span", {}, remark)];
    this.element = panel("memory", "HBM", title, div("flash-shelf", div("flash-strips", elements), beside));
  }

  /**
   * @param {string} name
   * @param {number} rows
   * @param {number} cols
   * @param {number} width
   * @param {number} height
   * @param {string[] | null} words
   * @returns {Strip}
   */
  #strip(name, rows, cols, width, height, words) {
    const matrix = new Matrix(name, { rows, cols, width, height, numbers: false });
    const here = h("div", { class: "flash-here", hidden: true });
    const title = div("flash-name", symbol(name), cols > 1 && [" ", note(`${rows}×${cols}`)]);
    const cells = div("flash-strip-cells", matrix.element, here);
    const beside = cols > 1 && wordsBeside(words, height);
    const element = div("flash-strip", title, div("flash-strip-rows", beside, cells));
    return { matrix, here, rows, cols, element };
  }

  /** @param {F} frames */
  take(frames) {
    this.frames = frames;
    this.meter.take(frames);
  }

  /**
   * Draw what does not change from step to step.
   * @param {Colours} colour
   */
  paint(colour) {
    const { inputs, numbers, peaks } = this.frames;
    for (const name of this.read) {
      const { matrix, rows, cols } = this.strips[name];
      matrix.draw(numbers, inputs[name], rows, cols, peaks[name], colour);
    }
    this.done = null; // nothing is drawn yet
  }

  /**
   * The rows of each matrix that a step uses.
   * @param {Step} _step
   * @param {string} _part
   * @param {boolean} _storing
   * @returns {Record<string, number[] | undefined>}
   */
  inUse(_step, _part, _storing) {
    return {};
  }

  /**
   * How much has been written after step `done`, in words; stored: the step that stores now.
   * @param {number} _done
   * @param {Step} [_stored]
   */
  progress(_done, _stored) {
    return "";
  }

  /**
   * Take the rows stored from step `first` to step `done`; first is -1 for everything from the beginning.
   * @param {number} _first
   * @param {number} _done
   */
  fill(_first, _done) {}

  /**
   * @param {At} at
   * @param {Colours} colour
   * @param {Motion} motion
   */
  draw(at, colour, motion) {
    const { step, part, storing } = at;
    const done = this.frames.stored(at);
    this.#hold(done, colour);
    const now = step ? this.inUse(step, part, storing) : {};
    for (const name of Object.keys(this.strips)) this.#outline(name, now[name]);
    setSentence(this.note, this.progress(done, storing ? step : undefined));
    this.meter.draw(at, motion);
  }

  /**
   * The outlined rows of a matrix, as an element.
   * @param {string} name
   */
  slice(name) {
    return this.strips[name].here;
  }

  /**
   * Show the rows stored up to step `done`, T for the end.
   * @param {number} done
   * @param {Colours} colour
   */
  #hold(done, colour) {
    if (this.done === done) return;
    const ahead = this.done !== null && done > this.done;
    this.fill(ahead ? Number(this.done) + 1 : -1, done);
    this.done = done;
    for (const [name, X] of Object.entries(this.held)) {
      const { matrix, rows, cols } = this.strips[name];
      matrix.draw(X, 0, rows, cols, this.frames.peaks[name], colour);
    }
  }

  #outline(name, rows) {
    const { here, rows: N } = this.strips[name];
    here.hidden = !rows;
    if (!rows) return;
    here.style.top = `${(100 * rows[0]) / N}%`;
    here.style.height = `${(100 * (rows[1] - rows[0])) / N}%`;
  }
}

/**
 * The memory of the forward pass: O is written, and in the FA1 order also m and l.
 * @extends {Hbm<Frames>}
 */
export class Memory extends Hbm {
  static key = ({ N_q, N_k, d, order, dtype, keyWords }) => [N_q, N_k, d, order, dtype, keyWords];

  /** @param {Frames} frames */
  constructor(frames) {
    const { N_q, N_k, d, order } = frames;
    /** @type {Sizes[]} */
    const read = [
      ["Q", N_q, d],
      ["K", N_k, d],
      ["V", N_k, d],
    ];
    /** @type {Sizes[]} */
    const state = ["m", "l"].map((name) => [name, N_q, 1]);
    super(frames, {
      read,
      written: [["O", N_q, d], ...(order === "fa1" ? state : [])],
      remark: "S and P: never here",
    });
  }

  /**
   * How much of O is final after step `done`, in words.
   * @param {number} done
   * @param {Step} [stored]
   */
  progress(done, stored) {
    const { N_q, learner } = this.frames;
    const rows = `O: ${this.frames.finalRows(done)} of ${N_q} rows final`;
    if (learner) return learner.kernel ? rows : `${rows} (taken as O_acc / l)`;
    return stored ? `${rows}, ${span("row", stored.rows)} written now` : rows;
  }

  /**
   * The rows that are loaded, outlined while the step works on them, and those that it stores.
   * @param {Step} step
   * @param {string} part
   * @param {boolean} storing
   * @returns {Record<string, number[] | undefined>}
   */
  inUse({ rows, cols }, part, storing) {
    const loads = this.frames.order === "fa1" && part === "load";
    const state = storing || loads ? rows : undefined;
    const inputs = part === "store" ? {} : { Q: rows, K: cols, V: cols };
    return { ...inputs, O: state, m: state, l: state };
  }

  /**
   * Take the rows stored from step `first` to step `done`; first is -1 for everything from the beginning.
   * @param {number} first
   * @param {number} done
   */
  fill(first, done) {
    const { writes, numbers, steps, d, order, T } = this.frames;
    if (first < 0) {
      this.held.O.fill(NaN);
      this.held.m?.fill(-Infinity);
      this.held.l?.fill(0);
    }
    for (const [after, start, stop, offset] of writes) {
      if (after < first || after > done) continue;
      this.held.O.set(numbers.subarray(offset, offset + (stop - start) * d), start * d);
    }
    if (order === "fa1")
      for (const step of steps.slice(Math.max(first, 0), Math.min(done + 1, T)))
        for (const name of ["m", "l"])
          this.held[name].set(numbers.subarray(step[name], step[name] + step.n_r), step.rows[0]);
  }
}

/** Bytes read and written so far, next to their references. */
class Meter {
  /** @type {Trace<any>} */
  frames;
  /** @type {number} */
  most;

  /**
   * keyed: reads and writes have their colours next to them, for want of a legend.
   * @param {Trace<any>} frames
   * @param {boolean} keyed
   */
  constructor(frames, keyed) {
    this.keyed = keyed;
    const bar = () => {
      const parts = [h("i", { class: "flash-read" }), h("i", { class: "flash-written" })];
      return { parts, element: h("span", { class: "flash-meter", "aria-hidden": "true" }, parts) };
    };
    this.bar = bar();
    this.others = frames.baselines().map(() => ({ bar: bar(), text: h("span") }));
    this.read = h("span", {});
    this.written = h("span", {});
    const swatch = (kind) => h("i", { class: "flash-swatch", "data-state": kind });
    const both = [swatch("read"), this.read, ", ", h("span", { class: "flash-kept" }, swatch("written"), this.written)];
    this.text = h("span", { class: "flash-moved" }, keyed && both);
    this.element = div(
      "flash-meters flash-note",
      this.text,
      this.bar.element,
      this.others.map(({ bar, text }) => [text, bar.element]),
    );
  }

  /** @param {Trace<any>} frames */
  take(frames) {
    this.frames = frames;
    const others = frames.baselines();
    const totals = [frames.total(), ...others.map(([, moved]) => moved)].map(frames.sum);
    this.most = frames.most ?? Math.max(...totals, 1); // bytes that fill a bar
    others.forEach(([words, moved], k) => {
      setText(this.others[k].text, `${words}: ${bytes(frames.sum(moved))}`);
      this.#fill(this.others[k].bar, moved.read, moved.written);
    });
  }

  /** @param {At} at @param {Motion} motion */
  draw(at, motion) {
    const { read, written } = this.frames.moved(at);
    const stored = this.frames.learner ? "" : `${bytes(written)} written`; // unknown for a learner's steps
    if (this.keyed) {
      setText(this.read, `${bytes(read)} read`);
      setText(this.written, stored);
    } else setText(this.text, stored ? `${bytes(read)} read, ${stored}` : `${bytes(read)} read`);
    const before = this.bar.parts.map((part) => part.style.width);
    this.#fill(this.bar, read, written);
    this.bar.parts.forEach((part, k) => {
      if (part.style.width !== before[k]) motion.from(part, { width: before[k] });
    });
  }

  #fill({ parts }, ...sizes) {
    parts.forEach((part, k) => (part.style.width = `${(100 * sizes[k]) / this.most}%`));
  }
}
