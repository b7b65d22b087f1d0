// The frames of a pass of the backward: its parts, its numbers, its errors.

/** @import { At, Moved } from "../flash_player/types.js" */
/** @import { BackwardStep, Pass, Sent } from "./types.js" */
import { number } from "../shared/number_text.js";
import { Trace } from "../flash_player/frames.js";

/** @type {Record<"kv" | "q", Pass>} */
const PASSES = {
  kv: {
    block: "column",
    index: "j",
    rows: "cols",
    stays: ["K", "V"],
    passes: ["Q", "dO"],
    loaded: "loaded; K and V stay",
    added: { dV: "P_ij^T dO_i", dK: "dS_ij^T Q_i · scale" },
    reads: ["P_ij", "dO_i", "dS_ij", "Q_i"],
  },
  q: {
    block: "row",
    index: "i",
    rows: "rows",
    stays: ["Q", "dO"],
    passes: ["K", "V"],
    loaded: "loaded; Q and dO stay",
    added: { dQ: "dS_ij K_j" },
    reads: ["dS_ij", "K_j"],
  },
};

export const TELLS = new Set(["scores", "weights", "dP", "dS"]); // the parts that are described for one row
const ADDED = 1200; // ms, of the story when something is added and the error falls
const EPS = { float16: 2 ** -10, float32: 2 ** -23, float64: 2 ** -52 };

/**
 * An error in words. One that rounding explains, with digits that differ between machines, is 0 up to rounding.
 * @param {number} error
 * @param {string} dtype
 */
export function errorInWords(error, dtype) {
  const bound = 10 ** Math.ceil(Math.log10(EPS[dtype] ?? EPS.float64) / 2);
  return error < bound ? "0, up to rounding" : number(error);
}

/** @extends {Trace<BackwardStep>} */
export class BackwardFrames extends Trace {
  /** @param {Sent} raw */
  constructor(raw) {
    super(raw, ["load", "scores", "weights", "dP", "dS", "add", "store"]);
    this.gradients = raw.gradients;
    this.errors = raw.errors;
    this.wrt = raw.wrt;
    this.both = raw.both;
    const { inputs, N_q, N_k, d, steps, pass } = this;
    const own = (size) => (step) => (step[pass.rows][1] - step[pass.rows][0]) * size;
    const tile = (step) => step.n_r * step.n_c;
    this.stays = pass.index;
    steps.forEach((step, k) => (step.first = steps[k - 1]?.[pass.index] !== step[pass.index]));
    this.lastOf = new Map(steps.map((step, k) => [step[pass.index], k])); // of each block that stays
    /** @type {Record<string, number>} */
    this.peaks = {
      Q: this.peak(inputs.Q, N_q * d), dO: this.peak(inputs.dO, N_q * d),
      K: this.peak(inputs.K, N_k * d), V: this.peak(inputs.V, N_k * d),
      lse: this.peak(inputs.lse, N_q), delta: this.peak(inputs.delta, N_q),
      S: this.peakOf("S_ij", tile), P: 1, dP: this.peakOf("dP_ij", tile), dS: this.peakOf("dS_ij", tile),
    };
    for (const name of this.gradients) {
      this.peaks[name] = this.peakStored(name);
      const parts = ["added", "sum"].map((part) => this.peakOf(`${name}_${part}`, own(d)));
      this.peaks[`${name}_sum`] = Math.max(...parts);
    }
    this.peaks.error = Math.max(this.peak(this.errors.whole, this.T + 1), this.peak(this.errors.after, this.T));
  }

  /**
   * The frame in which the requested step has added; else the first that adds to a sum, with all boxes filled.
   * @param {number | null} step
   */
  opening(step) {
    const adds = this.steps.findIndex(({ first }) => !first);
    return super.opening(step ?? (this.T ? Math.max(adds, 0) : null));
  }

  /** @param {number} frame */
  lasts(frame) {
    return this.timeline[frame]?.[1] === "add" ? ADDED : super.lasts(frame);
  }

  get pass() {
    return PASSES[this.wrt];
  }

  /** @returns {[words: string, moved: Moved][]} */
  baselines() {
    const [read, written] = this.both;
    return [
      ["both passes", { read, written }],
      ["standard", this.standardMoved()],
    ];
  }

  /**
   * The error of the block that is being summed (undefined at the end) and of all rows, at a frame.
   * @param {At<BackwardStep>} at
   */
  error({ k, step, reached }) {
    const { before, after, whole } = this.errors;
    const added = step && reached("add");
    return {
      block: step && this.numbers[(added ? after : before) + k],
      whole: this.numbers[whole + k + (added ? 1 : 0)],
      tiles: k + (added ? 1 : 0), // added by now
    };
  }

  /**
   * The numbers of one row of a tile.
   * @param {BackwardStep} step
   * @param {number} r
   */
  row(step, r) {
    const cells = (name) => this.numbers.subarray(step[name] + r * step.n_c, step[name] + (r + 1) * step.n_c);
    const [lse, delta] = ["lse", "delta"].map((name) => this.numbers[this.inputs[name] + step.rows[0] + r]);
    return { lse, delta, S: cells("S_ij"), P: cells("P_ij"), dP: cells("dP_ij"), dS: cells("dS_ij") };
  }
}
