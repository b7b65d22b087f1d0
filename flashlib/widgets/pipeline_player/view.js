import { between } from "../shared/numbers.js";

/**
 * A view is the part of an axis from 0 to `end` that is shown, [from, to].
 * Return one `factor` times as wide, with `at` in its middle, or as near to that as the ends of the axis allow.
 * @param {number[]} view
 * @param {number} factor
 * @param {number} at
 * @param {number} end
 */
export function zoomed([from, to], factor, at, end) {
  const wide = between(end / 64, (to - from) * factor, end);
  const start = between(0, at - wide / 2, end - wide);
  return [start, start + wide];
}

/**
 * Return a view as wide that has `at` near its left end, or as near to that as the ends of the axis allow.
 * @param {number[]} view
 * @param {number} at
 * @param {number} end
 */
export function moved([from, to], at, end) {
  const start = between(0, at - 0.1 * (to - from), end - (to - from));
  return [start, start + to - from];
}
