/** @import { Access } from "./types.js" */
/** @import { Place } from "./places.js" */
import { div, h, note } from "../shared/elements.js";
import { markOf } from "./places.js";

const MOST = { rows: 8, columns: 8 };

/**
 * Whether the matrix shows a block as the kernel has it: each place to the right of the one before, each row below.
 * @param {Place[]} places
 * @param {number} columns
 */
function isDrawnAlike(places, columns) {
  const [{ row, column }] = places;
  return places.every((place, k) => place.row === row + Math.floor(k / columns) && place.column === column + (k % columns));
}

/**
 * The offsets of an access as numbers, in the shape of its block; nothing if the matrix, whose numbers can be read,
 * shows the same.
 * @param {Access | undefined} access
 * @param {Place[]} places
 * @param {string} kind
 * @param {boolean} isLegible
 */
export function blockOf(access, places, kind, isLegible) {
  if (!access || !places.length) return [];
  const { shape } = access;
  if (isLegible && isDrawnAlike(places, shape.length < 2 ? places.length : /** @type {number} */ (shape.at(-1)))) return [];
  const columns = shape.length < 2 ? Math.min(places.length, MOST.columns) : /** @type {number} */ (shape.at(-1));
  const rows = Math.ceil(places.length / columns);
  const [high, wide] = [Math.min(rows, MOST.rows), Math.min(columns, MOST.columns)];
  const cut = high < rows || wide < columns;
  const numbers = Array.from({ length: high }, (_, row) => places.slice(row * columns, row * columns + wide));
  const text = ({ offset, state }) => {
    const mark = markOf(kind, state);
    return h("code", { "data-mark": mark }, mark === "wrong" ? `✕${offset}` : String(offset));
  };
  const size = shape.join(" × ");
  const several = cut
    ? `its block as the kernel has it, ${size} offsets, begins with`
    : `its block as the kernel has it: ${size} offsets`;
  return [
    note(places.length > 1 ? several : "its offset"),
    div("flash-programs-numbers", numbers.map((row) => div("", row.map(text)))),
  ];
}
