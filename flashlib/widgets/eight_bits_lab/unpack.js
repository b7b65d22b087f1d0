/** @import { Numbers, Result } from "./types.js" */
import { float64 } from "../shared/number_text.js";

/**
 * The numbers of a result, by name.
 * @param {Result} result
 * @returns {Numbers}
 */
export function unpackLab({ buffer, rows, cols, shown, points }) {
  const all = float64(buffer);
  const [scores, output] = [rows * shown, rows * cols];
  /** @type {Record<string, number>} */
  const sizes = { S: scores, S_now: scores, P: scores, P_q: scores, weights: scores, weights_now: scores };
  Object.assign(sizes, { O: output, O_now: output, unit: output, lost: output });
  Object.assign(sizes, { keys: points, running: points * output, unrounded: points * output });
  let at = 0;
  const parts = Object.entries(sizes).map(([name, size]) => [name, all.subarray(at, (at += size))]);
  return Object.fromEntries(parts);
}
