/** @import { Place } from "./places.js" */
/** @import { Tensor } from "./types.js" */
import { fold, windowOf } from "./layout.js";

const CELL = { most: 30, numbered: 24, least: 9, high: 20, dense: 16, low: 10 }; // px, of an element
const SIGN = 6.6; // px, of a sign of a number
const TEXT = 14; // px, of a row or column beside which its number fits
const EDGE = { left: 24, top: 16 }; // px, of the numbers of rows and columns
const GAP = 3; // px, between the rows of a vector that has no room in one
const DENSE = 10; // rows; more are drawn lower
const MOST_ROWS = { vector: 8, matrix: 16, low: 24 };
const NOWHERE = -1000; // the row of a place that is not drawn

/**
 * Where elements are drawn, in px. place: of a row and a column, if it is drawn. shown: the elements that are.
 * names: of rows and columns.
 * @typedef {object} Frame
 * @property {(row: number, column: number) => Corner | null} place
 * @property {number} wide
 * @property {number} high
 * @property {number} gap between rows
 * @property {[row: number, column: number][]} shown
 * @property {{ x: number, y: number, text: string }[]} names
 */

/** @typedef {[x: number, y: number]} Corner */

/**
 * @param {Tensor} tensor
 * @param {Place[]} places
 * @param {number} room px
 * @returns {Frame}
 */
export function frameOf(tensor, places, room) {
  const drawn = places.filter(({ row }) => row !== NOWHERE);
  return tensor.shape.length < 2 ? vectorFrame(tensor, drawn, room) : matrixFrame(tensor, drawn, room);
}

/** A vector: its elements side by side, in several rows if they have no room in one. */
function vectorFrame({ around, columns, span }, drawn, room) {
  const [, , first, end] = around;
  const across = fold(end - first, room, Math.max(CELL.numbered, length(span)));
  const line = (column) => Math.floor((column - first) / across);
  const [from, to] = windowOf([0, line(end - 1) + 1], seen(drawn.map(({ column }) => line(column)), 0), MOST_ROWS.vector);
  const wide = Math.min(Math.max(CELL.most, length(span)), Math.floor(room / across));
  const [low, high] = [first + from * across, first + to * across];
  /** @type {Frame["place"]} */
  const place = (row, column) =>
    row !== NOWHERE && column >= low && column < high
      ? [((column - first) % across) * wide, (line(column) - from) * (CELL.high + GAP)]
      : null;
  const shown = range(Math.max(low, 0), Math.min(high, columns)).map((column) => pair(0, column));
  return { place, wide, high: CELL.high, gap: GAP, shown, names: [] };
}

/** A matrix: all of it, or the rows and columns around what is touched. */
function matrixFrame({ around, rows, columns, span }, drawn, room) {
  const [top, bottom, left, right] = around;
  const across = Math.floor((room - EDGE.left) / CELL.least);
  const [first, end] = windowOf([left, right], seen(drawn.map(({ column }) => column), left), across);
  const wide = Math.min(Math.max(CELL.most, length(span)), Math.floor((room - EDGE.left) / Math.max(end - first, 1)));
  const isNumbered = length(span) <= wide + 4;
  const high = !isNumbered ? CELL.low : bottom - top > DENSE ? CELL.dense : CELL.high;
  const most = isNumbered ? MOST_ROWS.matrix : MOST_ROWS.low;
  const [from, to] = windowOf([top, bottom], seen(drawn.map(({ row }) => row), top), most);
  const [x, y] = [(column) => EDGE.left + (column - first) * wide, (row) => EDGE.top + (row - from) * high];
  /** @type {Frame["place"]} */
  const place = (row, column) => (row >= from && row < to && column >= first && column < end ? [x(column), y(row)] : null);
  const [down, over] = [range(Math.max(from, 0), Math.min(to, rows)), range(Math.max(first, 0), Math.min(end, columns))];
  const named = (all, room) => all.filter((n) => n % Math.ceil(TEXT / room) === 0);
  const names = [
    ...named(down, high).map((row) => ({ x: EDGE.left - 12, y: y(row) + high / 2 + 4, text: String(row) })),
    ...named(over, wide - 6).map((column) => ({ x: x(column) + wide / 2, y: 11, text: String(column) })),
  ];
  return { place, wide, high, gap: 0, shown: down.flatMap((row) => over.map((column) => pair(row, column))), names };
}

/** How long the number of an offset is at most, in px. */
const length = ([low, high]) => SIGN * Math.max(String(low).length, String(high - 1).length) + 4;

/** @returns {[number, number]} */
const pair = (a, b) => [a, b];
const range = (low, high) => Array.from({ length: Math.max(high - low, 0) }, (_, k) => low + k);
const least = (all) => all.reduce((a, b) => Math.min(a, b)); // of very many, too
const seen = (all, low) => (all.length ? pair(least(all), 1 - least(all.map((n) => -n))) : pair(low, low + 1));
