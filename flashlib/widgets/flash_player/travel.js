// What travels between HBM and SRAM: slices in at a load, and out at a store.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Colours } from "../shared/colours.js" */
/** @import { Trace } from "./frames.js" */
/** @import { Hbm } from "./memory.js" */
import { Matrix } from "./matrix.js";

/**
 * The box of an element, or of several, on the page.
 * @param {Element | Element[]} elements
 */
function boxOf(elements) {
  const boxes = [elements].flat().map((element) => element.getBoundingClientRect());
  const [left, top] = ["left", "top"].map((side) => Math.min(...boxes.map((box) => box[side])));
  const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...boxes.map((box) => box[side])));
  return { left, top, width: right - left, height: bottom - top };
}

/** The transform from the box `to` to the box `from`. */
const across = (from, to) =>
  `translate(${from.left - to.left}px, ${from.top - to.top}px) scale(${from.width / to.width}, ${from.height / to.height})`;

/** @typedef {{ tile: (name: string) => HTMLElement }} Tiles */
/** @typedef {{ memory: Hbm<any>, chip: Tiles }} Places */
/** @typedef {{ frames: Trace<any>, views: { made: Places }, motion: Motion, detail: boolean }} Carrier */

const edge = (kind) => ({ outline: `2px solid var(--flash-${kind})`, zIndex: 2 });

/**
 * Move an element of SRAM from its slice in HBM to its place.
 * @param {Motion} motion
 * @param {HTMLElement} slice
 * @param {HTMLElement} element
 */
function bring(motion, slice, element) {
  const way = across(boxOf(slice), boxOf(element));
  motion.play(element, [
    { ...edge("read"), transform: way },
    { ...edge("read"), transform: "none" },
  ]);
}

/**
 * Move a copy of rows from one place to another: `matrix` is [numbers, offset, rows, cols, peak]. The destination shows
 * them on arrival.
 * @param {Motion} motion
 * @param {HTMLElement} air
 * @param {"read" | "written"} kind
 * @param {Element | Element[]} from
 * @param {Element | Element[]} to
 * @param {[data: Float64Array, offset: number, rows: number, cols: number, peak: number]} matrix
 * @param {Colours} colour
 */
export function send(motion, air, kind, from, to, matrix, colour) {
  const [start, end, origin] = [boxOf(from), boxOf(to), air.getBoundingClientRect()];
  const [data, offset, rows, cols, peak] = matrix;
  const size = { rows, cols, width: end.width / cols, height: end.height / rows, numbers: false };
  const copy = new Matrix("on its way", size);
  copy.draw(data, offset, rows, cols, peak, colour);
  const { element } = copy;
  Object.assign(element.style, { left: `${end.left - origin.left}px`, top: `${end.top - origin.top}px` });
  air.append(element);
  const looks = [
    { ...edge(kind), transform: across(start, end) },
    { ...edge(kind), transform: "none" },
  ];
  motion.play(element, looks, () => element.remove());
  const covered = kind === "written" ? { backgroundColor: "var(--flash-panel)" } : { opacity: 0 };
  for (const place of [to].flat()) motion.play(place, [covered, covered]);
}

/**
 * At a load, move its slices from HBM; in other parts, highlight the tiles of SRAM that are read. slices: for each matrix,
 * its tile and the index that selects it; lit: for each part of a step, the tiles that it reads.
 * @param {Carrier} player
 * @param {{ k: number, part: string }} at
 * @param {Record<string, [tile: string, index: "i" | "j"]>} slices
 * @param {Record<string, string[]>} lit
 */
export function bringOrLight({ frames, views, motion, detail }, { k, part }, slices, lit) {
  const { memory, chip } = views.made;
  if (part === "load" || !detail) {
    for (const [name, [tile, index]] of Object.entries(slices))
      if (frames.loads(k, index)) bring(motion, memory.slice(name), chip.tile(tile));
  } else {
    const look = (colour) => ({ boxShadow: `0 0 0 3px ${colour}` });
    for (const tile of lit[part] ?? [])
      motion.play(chip.tile(tile), [look("var(--flash-read)"), look("transparent")]);
  }
}
