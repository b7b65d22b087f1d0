/** @import { Access } from "./types.js" */
/** @import { Place } from "./places.js" */
import { div, h, note } from "../shared/elements.js";
import { markOf } from "./places.js";

const MOST = { rows: 8, columns: 8 };

/**
 * The offsets of an access as numbers, in the shape of its block.
 * @param {Access | undefined} access
 * @param {Place[]} places
 * @param {string} kind
 */
export function blockOf(access, places, kind) {
  if (!access || !places.length) return [];
  const { shape } = access;
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
  const several = cut ? `its block of ${size} offsets begins with` : `its block of ${size} offsets`;
  return [
    note(places.length > 1 ? several : "its offset"),
    div("flash-programs-numbers", numbers.map((row) => div("", row.map(text)))),
  ];
}
