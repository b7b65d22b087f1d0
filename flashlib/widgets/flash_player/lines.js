// The algorithm: the equation of each part of a step, next to the line of source that computes it.

import { div, h, note, setSentence, typeset } from "../shared/elements.js";

/**
 * The names that an equation sets: l and O_acc of "l = alpha · l_old;  O_acc = ...".
 * @param {string} equation
 */
const setBy = (equation) =>
  equation.split(";").flatMap((part) => part.match(/^\s*(\w+) (?:=|\+=) /)?.slice(1) ?? []);

/**
 * A line of code with each name as an element.
 * @param {string} line
 */
const named = (line) =>
  line.split(/\b([A-Za-z]\w*)\b/).map((part, k) => (k % 2 ? h("span", { "data-symbol": part }, part) : part));

/** The equations of a step, each next to its line of source; the current one is highlighted. */
export class Lines {
  /**
   * lines: of the source, for each part; equations: what each part of a step does, in a word or two, and as an equation.
   * learner: the lines are the learner's.
   * @param {Record<string, string[]>} lines
   * @param {Record<string, [name: string, text: string]>} equations
   * @param {{ learner?: boolean }} [options]
   */
  constructor(lines, equations, { learner = false } = {}) {
    this.rows = Object.entries(equations).map(([part, [name, text]]) => {
      const code = lines[part].map((line) => h("code", {}, named(line)));
      const whose = learner && code.length > 0 && note();
      const row = h(
        "tr",
        { "data-part": part },
        h("th", { scope: "row" }, name),
        h("td", { class: "flash-equation" }, typeset(text)),
        h("td", { class: "flash-code" }, whose, code),
      );
      return { part, row, whose, yours: code.length === 1 ? "your line" : "your lines", sets: setBy(text) };
    });
    const rows = this.rows.map(({ row }) => row);
    const table = h("table", { "aria-label": "the algorithm: equation and NumPy line" }, h("tbody", {}, rows));
    this.element = div("flash-lines", table);
    const most = Math.max(...Object.keys(equations).map((part) => lines[part].length), 1) + Number(learner);
    this.element.style.setProperty("--lines", most); // room for the longest: the page below must not jump
  }

  take() {}

  /**
   * wrong: the name that goes wrong here, which the line at work should set.
   * @param {{ part: string }} at
   * @param {string} [wrong]
   */
  draw({ part }, wrong) {
    for (const { part: own, row, whose, yours } of this.rows) {
      if (own === part) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
      if (!whose) continue;
      const here = own === part && wrong !== undefined;
      row.classList.toggle("flash-went-wrong", here);
      setSentence(whose, here ? `${yours}: here ${wrong} is wrong for the first time` : yours);
    }
  }

  /**
   * Show the line that sets a name, in place of the current line if that does not contain it; null: the current line alone.
   * @param {string | null} name
   */
  point(name) {
    const at = this.rows.find(({ row }) => row.ariaCurrent);
    const there = !name || at?.row.querySelector(`[data-symbol="${name}"]`);
    const other = there ? undefined : this.rows.find(({ sets }) => sets.includes(name));
    for (const { row } of this.rows) row.classList.toggle("flash-pointed", row === other?.row);
    this.element.classList.toggle("flash-elsewhere", other !== undefined);
  }
}
