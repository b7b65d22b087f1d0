/** @import { Result } from "./types.js" */
import { div, h, svg } from "../shared/elements.js";
import { ringBox, ringFill } from "./look.js";

/**
 * The meaning of the colours and marks.
 * @param {Result} result
 */
export function ringLegend({ setting: { ranks: P }, fault }) {
  const picture = (...paths) => svg("svg", { viewBox: "0 0 20 14", "aria-hidden": "true" }, paths);
  const box = (name, style = "") => svg("path", { class: name, style, d: ringBox(1, 1, 18, 12) });
  const item = (text, ...paths) => h("span", {}, picture(...paths), text);
  const hops = [0, P - 1].map((hop) => svg("path", { style: ringFill(0, hop, P), d: ringBox(hop ? 10 : 0, 1, 10, 12) }));
  return div(
    "flash-legend flash-note",
    item("a rank computes: in full colour in hop 0, paler later", ...hops),
    item("K and V of a rank come", box("flash-ring-copy", "fill: var(--flash-ring-1)")),
    item("nothing to compute", box("flash-ring-idle")),
    fault && item("requested, but never done", box("flash-ring-asked")),
    fault && item("waits for", svg("path", { class: "flash-ring-waits", d: "M1 7h18m-5 -4l5 4l-5 4" })),
  );
}
