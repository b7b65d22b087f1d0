/** @import { Grid, Program } from "./types.js" */
import { between } from "../shared/number_text.js";

const BOX = { large: 44, most: 30, small: 14, least: 8, gap: 8, high: 150 }; // px; high: of a matrix of boxes
const MANY = 60; // programs, from which they are drawn small

/**
 * The axes of a grid along which there are several programs; the first if there are none.
 * @param {Grid} grid
 */
export function longAxes({ shown }) {
  const axes = [0, 1, 2].filter((axis) => shown[axis] > 1);
  return axes.length ? axes : [0];
}

/**
 * A place for each program of a grid, and their size, in px: two axes are rows and columns, as of a matrix, a third
 * one puts such matrices below each other; programs along one axis fill rows, as does what has no room otherwise.
 * @param {Program[]} programs
 * @param {Grid} grid
 * @param {number} room
 */
export function layOut(programs, grid, room) {
  const [row, column, layer] = longAxes(grid);
  const columns = grid.shown[column] ?? 0;
  if (columns && columns * BOX.least <= room) {
    const most = between(BOX.small, Math.floor(BOX.high / grid.shown[row]), BOX.large);
    const size = Math.min(programs.length > MANY ? BOX.small : most, Math.floor(room / columns));
    const high = grid.shown[row] * size + BOX.gap;
    const at = programs.map(({ number }) => {
      const [y, x, z] = [row, column, layer].map((axis) => (axis === undefined ? 0 : number[axis] - grid.first[axis]));
      return { x: x * size, y: z * high + y * size };
    });
    return { at, size };
  }
  const inOneRow = between(BOX.most, Math.floor(room / programs.length), BOX.large);
  const size = programs.length > MANY ? BOX.small : inOneRow;
  const wide = Math.max(1, Math.floor(room / size));
  return { at: programs.map((_, k) => ({ x: (k % wide) * size, y: Math.floor(k / wide) * size })), size };
}

/**
 * Where a vector's elements are drawn if not all of them have room side by side: how many there are in a row.
 * @param {number} count
 * @param {number} room px
 * @param {number} least px, of an element
 */
export function fold(count, room, least) {
  if (count * least <= room) return Math.max(count, 1);
  return 2 ** Math.max(0, Math.floor(Math.log2(room / least)));
}

/**
 * The part of a range that is drawn where not all of it has room: `most` of it, with what is looked at in it.
 * @param {[number, number]} range
 * @param {[number, number]} seen from and to
 * @param {number} most
 * @returns {[number, number]}
 */
export function windowOf([low, high], [from, to], most) {
  if (high - low <= most) return [low, high];
  const start = Math.min(Math.max(low, Math.floor((from + to - most) / 2)), Math.max(from, low), high - most);
  return [Math.max(start, low), Math.max(start, low) + most];
}
