// HBM in the backward pass: its inputs, and the gradients as they are stored.

/** @import { Sizes } from "../flash_player/memory.js" */
/** @import { BackwardFrames } from "./frames.js" */
/** @import { BackwardStep } from "./types.js" */
import { span } from "../flash_player/frames.js";
import { Hbm } from "../flash_player/memory.js";
import { andList } from "../shared/language.js";

/** @extends {Hbm<BackwardFrames>} */
export class GradientMemory extends Hbm {
  static key = ({ N_q, N_k, d, wrt, dtype }) => [N_q, N_k, d, wrt, dtype];

  /** @param {BackwardFrames} frames */
  constructor(frames) {
    const { N_q, N_k, d, gradients } = frames;
    const rows = { Q: N_q, dO: N_q, K: N_k, V: N_k };
    /** @type {Sizes[]} */
    const read = Object.entries(rows).map(([name, N]) => [name, N, d]);
    super(frames, {
      read: [...read, ["lse", N_q, 1], ["delta", N_q, 1]],
      written: [...gradients].sort().map((name) => [name, rows[name[1]], d]),
      remark: "S, P, dP and dS: never here",
      room: 28,
      keyed: true,
    });
  }

  /**
   * @param {number} done
   * @param {BackwardStep} [stored]
   */
  progress(done, stored) {
    const { N_q, N_k, B_r, B_c, pass, lastOf, gradients } = this.frames;
    const [N, B] = pass.index === "j" ? [N_k, B_c] : [N_q, B_r];
    let final = 0;
    for (let k = 0; k * B < N; k++) if ((lastOf.get(k) ?? -1) <= done) final += Math.min((k + 1) * B, N) - k * B;
    const rows = `${andList([...gradients].sort())}: ${final} of ${N} rows`;
    return stored ? `${rows}, ${span("row", stored[pass.rows])} now` : rows;
  }

  /**
   * @param {BackwardStep} step
   * @param {string} part
   * @param {boolean} storing
   * @returns {Record<string, number[] | undefined>}
   */
  inUse({ rows, cols }, part, storing) {
    const { pass, gradients } = this.frames;
    const own = pass.index === "j" ? cols : rows;
    const stored = Object.fromEntries(gradients.map((name) => [name, storing ? own : undefined]));
    return part === "store" ? stored : { Q: rows, dO: rows, lse: rows, delta: rows, K: cols, V: cols, ...stored };
  }

  /**
   * @param {number} first
   * @param {number} done
   */
  fill(first, done) {
    const { writes, numbers, d } = this.frames;
    if (first < 0) for (const X of Object.values(this.held)) X.fill(NaN);
    for (const [after, start, stop, offset, name = ""] of writes)
      if (after >= first && after <= done)
        this.held[name].set(numbers.subarray(offset, offset + (stop - start) * d), start * d);
  }
}
