// The merges below the parts: the place of each node, and the edges that lead to it.

/** @import { Place, Result } from "./types.js" */
import { svg } from "../shared/elements.js";
import { short } from "../shared/number_text.js";

/**
 * The places of nodes, [x, y]: of the parts at `middles` and the height `top`, and of their merges; a tree goes down by
 * `step` per level, a row is on one line.
 * @param {Result["nodes"]} nodes
 * @param {string} order
 * @param {number[]} middles
 * @param {number} top
 * @param {number} step
 */
export function placesOf({ children, levels }, order, middles, top, step) {
  /** @type {Place[]} */
  const at = middles.map((x) => [x, top]);
  children.forEach(([a, b], k) => {
    const level = order === "row" ? 1 : levels[middles.length + k];
    at.push([order === "row" ? at[b][0] : (at[a][0] + at[b][0]) / 2, top + level * step]);
  });
  return at;
}

/**
 * An edge from a child down to the height of its parent, then over to it.
 * @param {Place} from
 * @param {Place} to
 */
const edge = ([x, y], [toX, toY]) => `M${x} ${y}V${toY}H${toX}`;

const BESIDE = { row: 44, tree: 90 }; // px between the children of a merge, for each factor next to its edge

/**
 * The factors of a merge's two children, next to their edges, or next to the dot if the edges are too close.
 * @param {Result["nodes"]} nodes
 * @param {string} order
 * @param {Place[]} at
 * @param {number} node
 * @param {number[]} alphas
 * @returns {[x: number, y: number, text: string, anchor: string][]}
 */
export function factorsOf({ children }, order, at, node, alphas) {
  const [a, b] = children[node - (at.length - children.length)].map((child) => at[child][0]);
  const [x, y] = at[node];
  const [left, right] = alphas.map((alpha) => `× ${short(alpha)}`);
  const isLeft = x < (at[0][0] + at[children.length][0]) / 2; // of the middle: there is room on the right
  if (b - a < BESIDE[order]) return [[x + (isLeft ? 9 : -9), y + 14, `${left} and ${right}`, isLeft ? "start" : "end"]];
  if (order === "row") return [[(a + b) / 2, y + 14, left, "middle"], [b - 5, y - 8, right, "end"]];
  return [[a + 5, y - 5, left, "start"], [b - 5, y - 5, right, "end"]];
}

/**
 * The edges that lead to a merge.
 * @param {Result["nodes"]} nodes
 * @param {Place[]} at
 * @param {number} node
 */
export const edgesOf = ({ children }, at, node) =>
  children[node - (at.length - children.length)].map((child) => edge(at[child], at[node]));

/**
 * All edges, and a dot for each merge.
 * @param {Result["nodes"]} nodes
 * @param {Place[]} at
 */
export function drawMerges(nodes, at) {
  const parts = at.length - nodes.children.length;
  const edges = nodes.children.flatMap((_, k) =>
    edgesOf(nodes, at, parts + k).map((d) => svg("path", { class: "flash-split-edge", d })),
  );
  if (parts > 64) for (const path of edges) path.style.strokeWidth = "0.7px";
  const radius = parts > 64 ? 1.5 : parts > 24 ? 2.5 : 4;
  const dots = at
    .slice(parts)
    .map(([x, y], k) => svg("circle", { class: "flash-split-dot", "data-node": parts + k, cx: x, cy: y, r: radius }));
  return [...edges, ...dots];
}
