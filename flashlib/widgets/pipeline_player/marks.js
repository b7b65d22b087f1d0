// The marks on a row. Their kinds are those of Span in pipeline/timeline.py, and "act" and "fault".

/** @import { Program, Row } from "./types.js" */
import { h, svg, typeset } from "../shared/elements.js";

const PIPE_KINDS = {
  fma: "low bar: multiply-adds",
  copy: "copies from global memory",
  store: "stores to global memory",
  write: "writes to shared memory",
  wait: "waits",
  fill: "a tile comes into the slot",
  hold: "it is there",
  read: "it is read",
  act: "a role's action",
  fault: "it goes wrong",
  tick: "a phase of the barrier completes; its number; odd ones are shaded",
};
/** The meaning of names, [pattern, explanation], in the course's letters. */
const PIPE_NAMES = /** @type {const} */ ([
  [/^S\d/, "S0: scores of tile 0"],
  [/^PV\d/, "PV0: its weights times V"],
  [/^[KV]\d/, "K0, V0: tile 0 of K, of V"],
]);
const PIPE_RESCALE = /^rescale/;
/** Shown below the lanes in which alpha is used, in place of a mark in the legend. */
export const PIPE_ALPHA =
  "A low bar is multiply-adds. “rescale” multiplies O_acc by alpha = exp(m_old − m), so that old sums fit the new maximum m.";
/** @param {Row[]} rows */
export const pipeRescales = (rows) => rows.some(({ spans }) => spans.some(([kind, name]) => kind === "fma" && PIPE_RESCALE.test(name)));
const PIPE_UNITS = { exp: "exponentials", fma: "multiply-adds (fma)" };
/** The name of a row, in words if the course has short ones. */
export const pipeRowName = ({ name, group }) => (group === "units" && PIPE_UNITS[name]) || name;
export const PIPE_NAMED = new Set(["copy", "store", "write", "product", "exp", "fma", "wait", "fill", "hold"]);
export const PIPE_FILLED = new Set(["product", "exp", "fma"]); // in the role's colour
const PIPE_ROLES = 5; // colours, after which they repeat
export const PIPE_DIGIT = 6.3; // px, of a letter

export const pipeBox = (x, y, wide, high) => `M${x} ${y}h${wide}v${high}h${-wide}z`;

/** The class of a mark: that of a filled one also has its role. */
export function pipeClass(kind, role) {
  if (PIPE_FILLED.has(kind)) return `flash-pipelining-role${role % PIPE_ROLES}`;
  return `flash-pipelining-${kind === "write" ? "store" : kind}`;
}

/** A mark as a path, on a row at y that is `high`. */
export function pipePath(kind, x, y, wide, high) {
  const [middle, arm] = [y + high / 2, 4];
  switch (kind) {
    case "wait":
      return `M${x} ${y + high - 1}h${wide}`; // below its name
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

/** A bar at the bottom or the top of a role's marks, so that roles differ not only by colour. */
export function pipeEdge(role, x, y, wide, high) {
  const [foot, head] = [pipeBox(x, y + high - 3, wide, 2), pipeBox(x, y + 1, wide, 2)];
  return ["", foot, head, foot + head, ""][role % PIPE_ROLES];
}

/**
 * The names of the drawn roles that have each colour.
 * @param {[Program, Row[]][]} drawn
 */
function pipeRoles(drawn) {
  /** @type {Set<string>[]} */
  const names = [];
  for (const [{ roles }, rows] of drawn) {
    for (const [kind, , , , role] of rows.flatMap(({ spans }) => spans)) {
      if (PIPE_FILLED.has(kind)) (names[role % PIPE_ROLES] ??= new Set()).add(roles[role]);
    }
  }
  return names.map((found) => [...found].join(", "));
}

/**
 * The meaning of the marks and names that are drawn, and of no others.
 * @param {[Program, Row[]][]} drawn the programs, and the rows of each
 */
export function pipeLegend(drawn) {
  const picture = (...paths) => svg("svg", { viewBox: "0 0 20 16", "aria-hidden": "true" }, paths);
  const path = (name, d) => svg("path", { class: name, d });
  const rows = drawn.flatMap(([, rows]) => rows);
  const spans = rows.flatMap((row) => row.spans);
  const told = pipeRescales(rows) ? ["fma"] : []; // explained below the lanes
  const there = new Set([...spans.map(([kind]) => kind), ...(rows.some(({ ticks }) => ticks.length) ? ["tick"] : [])]);
  const alike = (kind) => (PIPE_FILLED.has(kind) ? "flash-pipelining-any" : pipeClass(kind, 0));
  const shown = Object.keys(PIPE_KINDS).filter((kind) => there.has(kind) && !told.includes(kind));
  const marks = [...Map.groupBy(shown, alike)].map(([name, [kind, ...others]]) => {
    const drawn = pipePath(kind, kind === "tick" ? 10 : 1, 0, 18, kind === "wait" ? 9 : 16);
    return h("span", {}, picture(path(name, drawn)), [kind, ...others].map((of) => PIPE_KINDS[of]).join("; "));
  });
  const whose = pipeRoles(drawn).map((role, k) => {
    const paths = [path(pipeClass("product", k), pipePath("product", 1, 0, 18, 16))];
    paths.push(path("flash-pipelining-edge", pipeEdge(k, 1.5, 0.5, 17, 15)));
    return h("span", {}, picture(paths), role);
  });
  const later = [path(pipeClass("product", 0), pipeBox(1, 1.5, 18, 13)), path("flash-pipelining-cover", pipeBox(10, 0, 10, 16))];
  const cursor = path("flash-pipelining-cursor", "M10 0V16");
  const times = [h("span", {}, picture(cursor), "now"), h("span", {}, picture(later), "faint: to come")];
  const names = PIPE_NAMES.filter(([pattern]) => spans.some(([, name]) => pattern.test(name)));
  return [times, whose, marks, names.map(([, text]) => h("span", {}, h("span", {}, typeset(text))))];
}
