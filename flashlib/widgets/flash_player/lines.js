// The algorithm: the equation of each part of a step, and beside it the line of the source that does it.

import { div, h, typeset } from "../shared/elements.js";

/** The equations of a step, and beside each the line of the source that does it; the one at work is lit. */
export class Lines {
  /**
   * lines: of the source, for each part; equations: of each part of a step, what it does in a word or two, and as an equation.
   * @param {Record<string, string[]>} lines
   * @param {Record<string, [name: string, text: string]>} equations
   */
  constructor(lines, equations) {
    this.rows = Object.entries(equations).map(([part, [name, text]]) => {
      const code = lines[part].map((line) => h("code", {}, line));
      const row = h(
        "tr",
        { "data-part": part },
        h("th", { scope: "row" }, name),
        h("td", { class: "flash-equation" }, typeset(text)),
        h("td", { class: "flash-code" }, code),
      );
      return { part, row };
    });
    const rows = this.rows.map(({ row }) => row);
    const table = h("table", { "aria-label": "the algorithm: equation and NumPy line" }, h("tbody", {}, rows));
    this.element = div("flash-lines", table);
    const most = Math.max(...Object.keys(equations).map((part) => lines[part].length), 1);
    this.element.style.setProperty("--lines", most); // the room of the longest: what is below must not jump
  }

  take() {}

  /** @param {{ part: string }} at */
  draw({ part }) {
    for (const { part: own, row } of this.rows) {
      if (own === part) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    }
  }
}
