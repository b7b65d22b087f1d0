// Unpacks what frames.py packed: the steps and their numbers, and the frames in which they are played.

/** @import { At, Forward, ForwardStep, Moved, Opened, Recorded, Shown, Step, Tiling } from "./types.js" */
import { PART } from "../shared/motion.js";
import { float64 } from "../shared/number_text.js";
import { partOf } from "./learner.js";

/** The parts of a step of the forward pass. Each is a frame; `store` only if the step stores. */
const PARTS = ["load", "scores", "maximum", "rescale", "weights", "add", "store"];

const SEVERAL = { row: "rows", column: "columns" };

/**
 * "row 4" or "rows 4–7", from the first and the last + 1.
 * @param {string} name
 * @param {number[]} range
 */
export const span = (name, [start, stop]) =>
  stop - start === 1 ? `${name} ${start}` : `${SEVERAL[name]} ${start}–${stop - 1}`;

/**
 * The rows and columns of S that a step computes.
 * @param {Step} step
 */
export const place = ({ rows, cols }) => `${span("row", rows)}, ${span("column", cols)}`;

/**
 * The longest such text.
 * @param {Step[]} steps
 */
export const longestPlace = (steps) => steps.map(place).reduce((a, b) => (a.length >= b.length ? a : b), "");

/**
 * A count of bytes with all digits: 12 345 B.
 * @param {number} n
 */
export const bytes = (n) => `${String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f")} B`;

/**
 * What Python sent: sizes, the steps with the offset of each array in `numbers`, and the stored rows.
 * @template {Step} [S=Step]
 */
export class Trace {
  /** @type {boolean} */
  detail;
  /** @type {[step: number, part: string][]} of each frame */
  timeline;
  /** @type {number[]} the first frame of each step */
  frameOf;
  /** @type {number} */
  last;
  /** @type {"i" | "j"} the index of the blocks that stay while the others pass by */
  stays;
  /** @type {Map<number, number>} the last step of each block that stays */
  lastOf;
  /** @type {Record<string, number>} the largest absolute value in each matrix */
  peaks;
  /** @type {number | undefined} bytes that fill a bar, if two players share the scale */
  most;

  /**
   * @param {Tiling & Recorded & { inputs: Record<string, number> } & Partial<Shown & Opened>} raw
   * @param {string[]} parts
   */
  constructor(raw, parts) {
    this.parts = parts;
    this.setting = raw.setting;
    this.learner = raw.learner ?? null;
    this.lines = raw.lines ?? {};
    this.inputs = raw.inputs;
    this.N_q = raw.N_q;
    this.N_k = raw.N_k;
    this.d = raw.d;
    this.T_r = raw.T_r;
    this.T_c = raw.T_c;
    this.B_r = raw.B_r;
    this.B_c = raw.B_c;
    this.causal = raw.causal;
    this.dtype = raw.dtype;
    this.scale = raw.scale;
    this.masked = raw.masked;
    this.changed = raw.changed;
    this.keyWords = raw.words ?? null;
    this.rowWords = this.keyWords && this.keyWords.slice(this.keyWords.length - this.N_q);
    this.start = raw.start;
    this.all = raw.all;
    this.standard = raw.standard;
    this.writes = raw.writes;
    this.numbers = float64(raw.buffer);
    /** @type {S[]} */
    this.steps = raw.steps.map(([i, j, r0, r1, c0, c1, read, written, ...offsets]) => {
      const step = { i, j, rows: [r0, r1], cols: [c0, c1], n_r: r1 - r0, n_c: c1 - c0, read, written };
      const arrays = Object.fromEntries(raw.packed.map((name, k) => [name, offsets[k]]));
      return /** @type {any} */ ({ ...step, ...arrays });
    });
    this.T = this.steps.length;
    for (const [after] of this.writes) if (after >= 0) this.steps[after].stores = true;
    this.setDetail(true);
  }

  /**
   * Play every part of a step, or only its end.
   * @param {boolean} detail
   */
  setDetail(detail) {
    this.detail = detail;
    this.timeline = [];
    this.frameOf = [];
    this.steps.forEach((step, k) => {
      this.frameOf.push(this.timeline.length);
      const parts = detail ? this.parts.filter((part) => part !== "store" || step.stores) : ["add"];
      for (const part of parts) this.timeline.push([k, part]);
    });
    this.last = this.timeline.length; // the frame after the last one: everything is done
    this.frameOf.push(this.last);
  }

  /**
   * What a frame shows: the index of its step, T at the end; the step; its part; whether it stores.
   * @param {number} frame
   * @returns {At<S>}
   */
  at(frame) {
    const [k, part] = this.timeline[frame] ?? [this.T, "end"];
    const reached = (name) => part === "end" || this.parts.indexOf(part) >= this.parts.indexOf(name);
    const step = this.steps[k];
    const storing = Boolean(step?.stores) && (part === "store" || !this.detail);
    return { frame, k, step, part, storing, reached };
  }

  /**
   * The frames that are marked under the scrub bar.
   * @returns {number[]}
   */
  marked() {
    return [];
  }

  /**
   * Whether a frame rescales sums.
   * @param {number} _frame
   */
  rescales(_frame) {
    return false;
  }

  /**
   * The duration in ms of a frame of the story that does not rescale.
   * @param {number} _frame
   */
  lasts(_frame) {
    return PART;
  }

  /**
   * The frame to which the story goes from a frame.
   * @param {number} frame
   */
  next(frame) {
    return frame + 1;
  }

  /**
   * The frame of a part of a step; the frame of its end if only that is played.
   * @param {number} k
   * @param {string} part
   */
  frame(k, part) {
    return this.frameOf[k] + (this.detail ? Math.max(0, this.parts.indexOf(part)) : 0);
  }

  /**
   * The frame that corresponds to one of another tiling: as far through the T steps, and in the same part.
   * @param {{ k: number, part: string }} at
   * @param {number} T
   */
  near({ k, part }, T) {
    const step = Math.min(Math.floor((k * this.T) / T), this.T - 1);
    return step < 0 ? 0 : Math.min(this.frame(step, part), this.frameOf[step + 1] - 1);
  }

  /**
   * The most instructive frame to open at: where the requested step has added.
   * @param {number | null} step
   */
  opening(step) {
    return step === null ? 0 : this.frame(step, "add");
  }

  /**
   * The last step that has stored by a frame: -1 for none, T at the end.
   * @param {{ k: number, part: string, storing: boolean }} at
   */
  stored({ k, part, storing }) {
    return part === "end" || storing ? k : k - 1;
  }

  /**
   * The row of a block that the sentences are about until the learner picks one.
   * @param {S} [_step]
   */
  telling(_step) {
    return 0;
  }

  /**
   * Whether a step loads its rows, or its columns: blocks that stay were loaded by an earlier step.
   * @param {number} k
   * @param {"i" | "j"} side
   */
  loads(k, side) {
    const [step, before] = [this.steps[k], this.steps[k - 1]];
    return !before || step[side] !== before[side] || side !== this.stays;
  }

  /**
   * Bytes read and written up to a frame, and in all.
   * @param {At<S>} at
   * @returns {Moved}
   */
  moved({ k, step, storing }) {
    if (!step) return this.total();
    const before = k ? this.steps[k - 1].written : this.start;
    return { read: step.read, written: storing ? step.written : before };
  }

  total() {
    const [read, written] = this.all;
    return { read, written };
  }

  standardMoved() {
    const [read, written] = this.standard;
    return { read, written };
  }

  /** @param {Moved} moved */
  sum({ read, written }) {
    return read + written;
  }

  /**
   * The references for the moved bytes: [words, { read, written }] of each.
   * @returns {[words: string, moved: Moved][]}
   */
  baselines() {
    return [["standard attention", this.standardMoved()]];
  }

  /**
   * The largest absolute value of a finite number in an array of the steps; size: its length at a step.
   * @param {string} name
   * @param {(step: S) => number} size
   */
  peakOf(name, size) {
    return this.steps.reduce((most, step) => Math.max(most, this.peak(step[name], size(step))), 0);
  }

  /**
   * The same for the stored rows of the output `name`, which is undefined if there is only one output.
   * @param {string | undefined} name
   */
  peakStored(name) {
    const own = this.writes.filter((write) => write[4] === name);
    return own.reduce((most, [, start, stop, at]) => Math.max(most, this.peak(at, (stop - start) * this.d)), 0);
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  peak(offset, length) {
    let most = 0;
    for (let k = offset; k < offset + length; k++) {
      const size = Math.abs(this.numbers[k]);
      if (size > most && size < Infinity) most = size;
    }
    return most;
  }
}

/** @typedef {{ inputs: Float64Array[], O: Float64Array }} Result */

/**
 * The frames of the forward pass.
 * @extends {Trace<ForwardStep>}
 */
export class Frames extends Trace {
  /** @param {Forward & Partial<Shown & Opened>} raw */
  constructor(raw) {
    super(raw, PARTS);
    this.order = raw.order;
    this.sram = raw.sram;
    const { inputs, N_q, N_k, d } = this;
    /** @type {"i" | "j"} */
    this.stays = raw.order === "fa1" ? "j" : "i";
    this.lastOf = new Map(this.steps.map((step, k) => [step.i, k])); // of each row block
    /** @type {Record<string, number>} */
    this.rowPeaks = {};
    for (const step of this.steps) step.grown = this.#grown(step);
    /** @type {Record<string, number>} */
    this.peaks = {
      Q: this.peak(inputs.Q, N_q * d),
      K: this.peak(inputs.K, N_k * d),
      V: this.peak(inputs.V, N_k * d),
      S: this.peakOf("S_ij", (step) => step.n_r * step.n_c),
      P: 1,
      m: this.peakOf("m", (step) => step.n_r),
      l: this.peakOf("l", (step) => step.n_r),
      O_acc: this.peakOf("O_acc", (step) => step.n_r * d),
      O: this.peakStored(undefined),
    };
  }

  /**
   * The rows of a step that had a maximum which grew.
   * @param {ForwardStep} step
   */
  #grown({ n_r, m_old, m }) {
    const { numbers } = this;
    const grew = (r) => numbers[m_old + r] > -Infinity && numbers[m + r] > numbers[m_old + r];
    return Array.from({ length: n_r }, (_, r) => r).filter(grew);
  }

  /** The frames in which rows are rescaled. */
  marked() {
    return this.steps.flatMap(({ grown }, k) => (grown.length ? [this.frame(k, "rescale")] : []));
  }

  /**
   * Whether a learner's numbers differ, after a step, by more than rounding explains.
   * @param {number} k
   */
  isOff(k) {
    return this.learner !== null && this.learner.errors[k] > this.learner.tolerance;
  }

  /**
   * The part in which a learner's steps go wrong: the one for m, the addition for l and O_acc, the store if only O is
   * wrong. Else the frame in which the requested step has added, or the beginning of the first; else the first rescale.
   * @param {number | null} step
   */
  opening(step) {
    const { first, O } = this.learner ?? {};
    if (first && (step === null || step === first[0])) return this.frame(first[0], partOf(first[1]));
    if (step !== null) return step && super.opening(step);
    const stored = O && !first ? this.lastOf.get(Math.floor(O[1] / this.B_r)) : undefined;
    return stored === undefined ? (this.marked()[0] ?? 0) : this.frameOf[stored + 1] - 1;
  }

  /** @param {number} frame */
  rescales(frame) {
    const [k, part] = this.timeline[frame] ?? [];
    return k !== undefined && this.steps[k].grown.length > 0 && (part === "rescale" || !this.detail);
  }

  /**
   * The first step, and each that rescales, is told in all its parts; the others only in their load and their addition.
   * @param {number} frame
   */
  next(frame) {
    const [k, part] = this.timeline[frame] ?? [];
    const told = !k || part !== "load" || this.steps[k].grown.length > 0;
    return frame + (told ? 1 : this.parts.indexOf("add") - this.parts.indexOf("load"));
  }

  /**
   * The largest absolute value of l, or O_acc, in one row: the scale of its bars.
   * @param {"l" | "O_acc"} name
   * @param {number} row
   */
  rowPeak(name, row) {
    const key = `${name} ${row}`;
    const cols = name === "O_acc" ? this.d : 1;
    const at = (step) => step[name] + (row - step.rows[0]) * cols;
    const own = () => this.steps.filter(({ rows: [first, stop] }) => first <= row && row < stop);
    this.rowPeaks[key] ??= own().reduce((most, step) => Math.max(most, this.peak(at(step), cols)), 0) || 1;
    return this.rowPeaks[key];
  }

  /** @param {ForwardStep} [step] */
  telling(step) {
    return step?.grown[0] ?? 0;
  }

  /**
   * The numbers of one row of a step, O_acc as offsets.
   * @param {ForwardStep} step
   * @param {number} r
   */
  row(step, r) {
    const at = (name) => this.numbers[step[name] + r]; // undefined if the step has none
    const cells = (name) => this.numbers.subarray(step[name] + r * step.n_c, step[name] + (r + 1) * step.n_c);
    return {
      scores: cells("S_ij"),
      weights: cells("P_ij"),
      m_old: at("m_old"),
      m: at("m"),
      alpha: at("alpha"),
      l_old: at("l_old"),
      l_rescaled: at("l_rescaled"),
      l: at("l"),
      m_true: at("m_true"),
      l_true: at("l_true"),
    };
  }

  /**
   * A row in words: "Row 3", and its word if it has one.
   * @param {number} row
   */
  rowName(row) {
    return this.rowWords ? `Row ${row} (${this.rowWords[row]})` : `Row ${row}`;
  }

  /**
   * The same within a sentence.
   * @param {number} row
   */
  rowInText(row) {
    return this.rowWords ? `row ${row} (${this.rowWords[row]})` : `row ${row}`;
  }

  /** @param {number} key */
  keyName(key) {
    return this.keyWords ? `key ${key} (${this.keyWords[key]})` : `key ${key}`;
  }

  /**
   * How many rows of O are final after step `done`.
   * @param {number} done
   */
  finalRows(done) {
    const { N_q, B_r, T_r } = this;
    let final = 0;
    for (let i = 0; i < T_r; i++) if (this.isFinal(i * B_r, done)) final += Math.min((i + 1) * B_r, N_q) - i * B_r;
    return final;
  }

  /**
   * Whether a row of O is final after step `done`.
   * @param {number} row
   * @param {number} done
   */
  isFinal(row, done) {
    return (this.lastOf.get(Math.floor(row / this.B_r)) ?? -1) <= done;
  }

  /**
   * O as it is after step `done`; NaN where nothing is stored yet.
   * @param {number} done
   */
  outputAfter(done) {
    const { N_q, d, numbers, writes } = this;
    const O = new Float64Array(N_q * d).fill(NaN);
    for (const [after, start, stop, offset] of writes)
      if (after <= done) O.set(numbers.subarray(offset, offset + (stop - start) * d), start * d);
    return O;
  }

  /**
   * Q, K and V, and O at the end.
   * @returns {Result}
   */
  result() {
    const { numbers, inputs, N_q, N_k, d } = this;
    const input = (offset, rows) => numbers.slice(offset, offset + rows * d);
    return { inputs: [input(inputs.Q, N_q), input(inputs.K, N_k), input(inputs.V, N_k)], O: this.outputAfter(this.T) };
  }

  /**
   * The largest difference between O at the end and that of another result; undefined where inputs differ.
   * @param {Result} other
   */
  differenceOfO(other) {
    const { inputs, O } = this.result();
    const differ = (a, b) => a.length !== b.length || a.some((x, k) => !Object.is(x, b[k]));
    if (inputs.some((X, k) => differ(X, other.inputs[k]))) return undefined;
    return O.reduce((most, x, k) => Math.max(most, Math.abs(x - other.O[k])), 0);
  }

  /**
   * The key that has the largest weight in a row, and this weight; undefined if the row sees no key.
   * @param {number} row
   * @returns {[key: number, weight: number] | undefined}
   */
  largestWeight(row) {
    const lse = this.numbers[this.inputs.lse + row];
    /** @type {[key: number, weight: number] | undefined} */
    let largest;
    for (const step of this.steps) {
      if (row < step.rows[0] || row >= step.rows[1]) continue;
      this.row(step, row - step.rows[0]).scores.forEach((score, c) => {
        const weight = Math.exp(score - lse);
        if (weight > (largest?.[1] ?? 0)) largest = [step.cols[0] + c, weight];
      });
    }
    return largest;
  }

  /**
   * Which of m, l and O_acc a frame shows. Whether a learner's code rescales is unknown until it adds.
   * @param {{ reached: (part: string) => boolean }} at
   */
  now({ reached }) {
    const rescaled = reached("rescale") && !this.learner;
    const suffix = reached("add") ? "" : rescaled ? "_rescaled" : "_old";
    return { l: `l${suffix}`, O_acc: `O_acc${suffix}`, m: reached("maximum") ? "m" : "m_old" };
  }
}
