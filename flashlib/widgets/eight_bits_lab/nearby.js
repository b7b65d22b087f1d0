// Numbers near a given one: those of a format, and a round one.

const ENDS = [1, 2, 5].flatMap((digit) => [-5, -4, -3, -2, -1, 0, 1].map((power) => Number(`${digit}e${power}`)));

/**
 * The numbers of a format next to x, `count` on each side, by size; and the one to which x was rounded.
 * @param {number[]} grid the positive numbers, in order
 * @param {number} x not negative
 */
export function neighbours(grid, x, count = 4) {
  const all = [0, ...grid];
  const above = all.findIndex((value) => value > x);
  const middle = above < 0 ? all.length : above;
  return all.slice(Math.max(0, middle - count), middle + count);
}

/**
 * The smallest round number that is not smaller than x: where the bars end.
 * @param {number} x
 */
export const endOf = (x) => Math.min(...ENDS.filter((end) => end >= x), Infinity);
