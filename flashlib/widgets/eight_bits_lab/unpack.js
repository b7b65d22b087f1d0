/** @import { Numbers, Result } from "./types.js" */
import { float64 } from "../shared/numbers.js";

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

/**
 * A share as a text, with at most three digits: 13.4%, 0.0719%.
 * @param {number} share
 */
export function percent(share) {
  const text = String(Number((100 * share).toPrecision(3)));
  return `${text.replaceAll("-", "−")}%`;
}

/**
 * How much larger or smaller a number is than another, in words.
 * @param {number} now
 * @param {number} exact
 */
export function off(now, exact) {
  if (now === exact) return "exact";
  if (now === 0) return "lost";
  if (now * exact <= 0) return "which has another sign";
  const share = now / exact - 1;
  return `${percent(Math.abs(share))} too ${share > 0 ? "large" : "small"}`;
}

/**
 * The numbers of a format next to x, `count` on each side, by their size; and which of them x became.
 * @param {number[]} grid the positive numbers, in order
 * @param {number} x not negative
 */
export function neighbours(grid, x, count = 4) {
  const all = [0, ...grid];
  const above = all.findIndex((value) => value > x);
  const middle = above < 0 ? all.length : above;
  return all.slice(Math.max(0, middle - count), middle + count);
}
