/** @import { Access } from "./types.js" */

export const MASKED = 0; // what a place is
export const ELEMENT = 1; // above: outside of the tensor, or another element
const WORDS_OF_PLACE = 4; // numbers that Python sends of each

/**
 * A place of a block: its offset, what it is, and where it is in the matrix.
 * @typedef {{ offset: number, state: number, row: number, column: number }} Place
 */

/**
 * The places of an access.
 * @param {Access} access
 * @param {Int32Array} all
 * @returns {Place[]}
 */
export function placesOf({ start, shape }, all) {
  const count = shape.reduce((product, n) => product * n, 1);
  return Array.from({ length: count }, (_, k) => {
    const [offset, state, row, column] = all.subarray(WORDS_OF_PLACE * (start + k));
    return { offset, state, row, column };
  });
}

const MOST_OWNED = 20_000; // places; more blocks could not be told apart
const SEVERAL = -1;

/**
 * Which program touches each element, by its row and column: none of them if there are several.
 * @param {Access[]} accesses
 * @param {Int32Array} all
 */
export function ownersOf(accesses, all) {
  /** @type {Map<string, number>} */
  const owners = new Map();
  const last = accesses.at(-1);
  if (!last || last.start - accesses[0].start > MOST_OWNED) return owners;
  for (const access of accesses) {
    for (const { state, row, column } of placesOf(access, all)) {
      if (state !== ELEMENT) continue;
      const before = owners.get(`${row},${column}`) ?? access.program;
      owners.set(`${row},${column}`, before === access.program ? before : SEVERAL);
    }
  }
  return owners;
}

/** How a place is marked: "load" or "store" if it is touched, "masked", or "wrong". */
export const markOf = (kind, state) => (state === MASKED ? "masked" : state === ELEMENT ? kind : "wrong");

/**
 * Offsets from low to high as runs: from each first to the one after the last.
 * @param {number[]} offsets
 * @param {number} low
 * @param {number} high
 * @returns {[number, number][]}
 */
export function runsOf(offsets, low, high) {
  const sorted = [...new Set(offsets)].filter((offset) => offset >= low && offset < high).sort((a, b) => a - b);
  /** @type {[number, number][]} */
  const found = [];
  for (const offset of sorted) {
    const last = found.at(-1);
    if (last?.[1] === offset) last[1]++;
    else found.push([offset, offset + 1]);
  }
  return found;
}
