// What happens on a row, as marks. The kinds are those of Span in pipeline/timeline.py, and "act" and "fault".

/** @import { Result } from "./types.js" */
import { div, h, svg } from "../shared/elements.js";

const PIPE_KINDS = {
  copy: "a copy",
  store: "a store, or a role writes",
  product: "a product, or exp",
  fma: "fma",
  wait: "waits for what is named",
  fill: "a tile comes into the slot",
  hold: "it is there",
  read: "it is read",
  act: "a role's action",
  fault: "it goes wrong",
  tick: "a phase completes; its number; odd ones are shaded",
};
export const PIPE_NAMED = new Set(["copy", "store", "write", "product", "exp", "fma", "wait", "fill", "hold"]);
export const PIPE_FILLED = new Set(["product", "exp", "fma"]); // in the colour of the role
const PIPE_ROLES = 5; // colours; then they begin again
export const PIPE_DIGIT = 6.3; // px, of a letter

export const pipeBox = (x, y, wide, high) => `M${x} ${y}h${wide}v${high}h${-wide}z`;

/** The class of a mark: of a filled one it says whose it is. */
export function pipeClass(kind, role) {
  if (PIPE_FILLED.has(kind)) return `flash-pipelining-role${role % PIPE_ROLES}`;
  return `flash-pipelining-${kind === "write" ? "store" : kind}`;
}

/** A mark as a path, on a row at y that is `high`. */
export function pipePath(kind, x, y, wide, high) {
  const [middle, arm] = [y + high / 2, 4];
  switch (kind) {
    case "wait":
      return `M${x} ${y + high - 2.5}h${wide}`;
    case "fma":
      return pipeBox(x, y + 4.5, wide, high - 9);
    case "read":
      return pipeBox(x, y + high - 4, wide, 3);
    case "act":
      return pipeBox(x + 1, y + 5, Math.max(1, wide - 2), high - 10);
    case "fault":
      return `M${x + wide / 2 - arm} ${middle - arm}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`;
    case "tick":
      return `M${x} ${y + 2}v${high - 4}`;
    default:
      return pipeBox(x + 0.5, y + 1.5, Math.max(1, wide - 1), high - 3);
  }
}

/** A bar at the foot or at the head of what a role does, so that roles differ not only by colour. */
export function pipeEdge(role, x, y, wide, high) {
  const [foot, head] = [pipeBox(x, y + high - 3, wide, 2), pipeBox(x, y + 1, wide, 2)];
  return ["", foot, head, foot + head, ""][role % PIPE_ROLES];
}

/**
 * The names of the roles that have each colour, in all programs.
 * @param {Result} result
 */
function pipeRoles({ programs }) {
  const names = [];
  for (const { roles, rows } of programs) {
    for (const [kind, , , , role] of rows.flatMap(({ spans }) => spans)) {
      if (PIPE_FILLED.has(kind)) (names[role % PIPE_ROLES] ??= new Set()).add(roles[role]);
    }
  }
  return names.map((found) => [...found].join(", "));
}

/**
 * What the marks mean.
 * @param {Result} result
 */
export function pipeLegend(result) {
  const picture = (...paths) => svg("svg", { viewBox: "0 0 20 16", "aria-hidden": "true" }, paths);
  const path = (name, d) => svg("path", { class: name, d });
  const acts = result.axis === "actions";
  const used = Object.entries(PIPE_KINDS).filter(([kind]) => acts || !["act", "fault"].includes(kind));
  const kinds = used.map(([kind, text]) => {
    const name = PIPE_FILLED.has(kind) ? "flash-pipelining-any" : pipeClass(kind, 0);
    return h("span", {}, picture(path(name, pipePath(kind, kind === "tick" ? 10 : 1, 0, 18, 16))), text);
  });
  const whose = pipeRoles(result).map((role, k) => {
    const paths = [path(pipeClass("product", k), pipePath("product", 1, 0, 18, 16))];
    paths.push(path("flash-pipelining-edge", pipeEdge(k, 1.5, 0.5, 17, 15)));
    return h("span", {}, picture(paths), role);
  });
  return div("flash-legend flash-note", whose, kinds);
}
