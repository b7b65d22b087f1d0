/** @import { Result, Standing, State } from "./types.js" */

/**
 * Where everything is at a given time.
 * @param {Pick<Result, "computes" | "copies" | "held" | "end">} result
 * @param {number} time
 * @returns {Standing}
 */
export function standing({ computes, copies, held, end }, time) {
  const within = (start, stop) => start <= time && (time < stop || (time === end && stop === end));
  return {
    done: computes.map((own) => own.filter(([, , , stop]) => stop <= time).length),
    now: computes.map((own) => own.findIndex(([, , start, stop]) => start <= time && time < stop)),
    flights: copies.flatMap(([, , , start, stop], copy) =>
      start <= time && time < stop ? [{ copy, way: (time - start) / (stop - start) }] : [],
    ),
    held: held.map((own) => own.flatMap(([whose, start, stop]) => (within(start, stop) ? [whose] : []))),
  };
}

/**
 * The last position whose time is not after `time`.
 * @param {number[]} times
 * @param {number} time
 */
export const positionAt = (times, time) => Math.max(0, times.findLastIndex((at) => at <= time));

/**
 * The rank that has each token, and the token's place among that rank's.
 * @param {number[][]} tokens
 */
export function holders(tokens) {
  /** @type {number[]} */
  const rank = [];
  /** @type {number[]} */
  const place = [];
  tokens.forEach((own, r) => own.forEach((token, k) => ([rank[token], place[token]] = [r, k])));
  return { rank, place };
}

/**
 * The seen scores as runs of keys of one rank: row, first key, how many, the rank of the row, that of the keys.
 * @param {[number, number][][]} seen
 * @param {number[]} rank
 * @returns {[row: number, first: number, count: number, r: number, source: number][]}
 */
export function scoreRuns(seen, rank) {
  const runs = [];
  seen.forEach((ranges, row) => {
    for (const [first, end] of ranges) {
      for (let at = first, next; at < end; at = next) {
        for (next = at + 1; next < end && rank[next] === rank[at]; ) next++;
        runs.push([row, at, next - at, rank[row], rank[at]]);
      }
    }
  });
  return runs;
}

/**
 * The States of a row, one after each time that its rank computed, from all numbers.
 * @param {Result} result
 * @param {Float64Array} numbers
 * @param {number} r the rank
 * @param {number} place of the row among those of the rank
 * @returns {State[]}
 */
export function statesOf({ computes, tokens, D }, numbers, r, place) {
  const size = (k) => tokens[k].length * (D + 2);
  const start = computes.slice(0, r).reduce((sum, own, k) => sum + own.length * size(k), 0);
  return computes[r].map((_, k) => {
    const at = start + k * size(r) + place * (D + 2);
    const [m, l] = numbers.subarray(at, at + 2);
    return { m, l, O_acc: numbers.subarray(at + 2, at + 2 + D) };
  });
}

/**
 * The row that is shown at first: the last row, which sees the most keys, or one before it, whose sums have been rescaled
 * by then, so that an alpha between 0 and 1 is visible, if there is such a row.
 * @param {Result} result
 * @param {Float64Array} numbers
 * @param {{ rank: number[], place: number[] }} which rank has each token, and where
 */
export function rowAtFirst(result, numbers, { rank, place }) {
  const { done } = standing(result, result.times[result.opens]);
  const rescaled = rank.findLastIndex((r, row) => {
    const ms = statesOf(result, numbers, r, place[row]).slice(0, done[r]).map(({ m }) => m);
    return ms.some((m, k) => k > 0 && Number.isFinite(ms[k - 1]) && ms[k - 1] < m);
  });
  return rescaled < 0 ? rank.length - 1 : rescaled;
}

/**
 * O and lse of a row: the last of the numbers.
 * @param {Result} result
 * @param {Float64Array} numbers
 * @param {number} row
 */
export function outputOf({ setting: { N }, D }, numbers, row) {
  const start = numbers.length - N * (D + 1);
  return { O: numbers.subarray(start + row * D, start + (row + 1) * D), lse: numbers[start + N * D + row] };
}
