/** @import { Frame } from "./types.js" */
import { h, note, panel, setText } from "../shared/elements.js";

const NOW = {
  decode: "requests that decode",
  read: "prompt tokens read",
  taken: "slots taken",
  wait: "requests that wait",
  used: "pages used",
  kept: "pages kept",
  free: "pages free",
};

/** A table with a column for each run. */
export class Columns {
  constructor(name, title, names, ...below) {
    this.body = h("tbody", {});
    const head = h("tr", {}, h("td", {}), names.map((run) => h("th", { scope: "col" }, run)));
    this.note = note();
    const table = h("table", { "aria-label": title }, h("thead", {}, head), this.body);
    this.element = panel(`serving-${name}`, title, this.note, table, below);
  }

  /** rows: for each its name, and a text for each run. */
  show(rows) {
    if (this.rows?.length !== rows.length) {
      this.rows = rows.map(([, ...values]) => [h("th", { scope: "row" }), ...values.map(() => h("td", {}))]);
      this.body.replaceChildren(...this.rows.map((cells) => h("tr", {}, cells)));
    }
    rows.forEach((texts, k) => texts.forEach((text, column) => setText(this.rows[k][column], text)));
  }
}

/**
 * The rows of a step, from a frame of each run.
 * @param {Frame[]} frames
 * @param {number} batch
 */
export const rowsOf = (frames, batch) =>
  Object.entries(NOW).map(([name, label]) => [
    label,
    ...frames.map((frame) => (name === "taken" ? `${frame.taken} of ${batch}` : String(frame[name]))),
  ]);
