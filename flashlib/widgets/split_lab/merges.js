// The merges below the parts: where each node lies, and the edges that lead to it.

/** @import { Place, Result } from "./types.js" */
import { svg } from "../shared/elements.js";
import { short } from "../shared/numbers.js";

/**
 * The places of nodes, [x, y]: of the parts at `middles` and at the height `top`, and of what they are merged to; a
 * tree goes down by `step` a level, a row lies on one line.
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

/**
 * What the children of each node are multiplied by, beside their edges: [x, y, text, anchor].
 * @param {Result["nodes"]} nodes
 * @param {string} order
 * @param {Place[]} at
 * @param {number[][]} alphas
 * @returns {[x: number, y: number, text: string, anchor: string][]}
 */
export function factorsOf({ children }, order, at, alphas) {
  const parts = at.length - children.length;
  return children.flatMap(([a, b], k) => {
    const [, y] = at[parts + k];
    const texts = alphas[parts + k].map((alpha) => `× ${short(alpha)}`);
    if (order === "tree") return [a, b].map((child, side) => [at[child][0] + 5, y - 5, texts[side], "start"]);
    return [
      [(at[a][0] + at[b][0]) / 2, y + 14, texts[0], "middle"],
      [at[b][0] - 5, y - 8, texts[1], "end"],
    ];
  });
}

/**
 * The edges, as wide as what is multiplied on them, and a dot for each merge.
 * @param {Result["nodes"]} nodes
 * @param {string} order
 * @param {Place[]} at
 * @param {number[][]} alphas
 */
export function drawMerges(nodes, order, at, alphas) {
  const parts = at.length - nodes.children.length;
  const thin = parts > 64 ? 0.4 : 1;
  const edges = nodes.children.flatMap((pair, k) =>
    pair.map((child, side) => {
      const alpha = alphas[parts + k][side];
      const path = svg("path", { class: "flash-split-edge", d: edge(at[child], at[parts + k]) });
      path.style.strokeWidth = `${thin * (1 + 2.5 * alpha)}px`;
      return path;
    }),
  );
  const radius = parts > 64 ? 1.5 : parts > 24 ? 2.5 : 4;
  const dots = at
    .slice(parts)
    .map(([x, y], k) => svg("circle", { class: "flash-split-dot", "data-node": parts + k, cx: x, cy: y, r: radius }));
  return [...edges, ...dots];
}
