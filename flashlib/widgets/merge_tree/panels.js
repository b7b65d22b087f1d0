// The panels next to the tree of MergeTree: whether it is right, how a node was computed, and the trees so far.

/** @import { Numbers, Result } from "./types.js" */
import { disclosure } from "../shared/controls.js";
import { div, h, note, panel, setText, symbol, typeset } from "../shared/elements.js";
import { number } from "../shared/number_text.js";
import { show, valuesOf } from "./card.js";

const COMPARED = ["m", "l", "O", "plain"];

/**
 * @param {number} difference
 * @param {boolean} [wrong]
 */
function inWords(difference, wrong) {
  if (difference === 0) return "equal to the last bit";
  return wrong ? `✕ wrong by ${number(difference)}` : `${number(difference)}, rounding`;
}

const headings = (names) => {
  const cells = names.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {})));
  return h("thead", {}, h("tr", {}, cells));
};

/** The root of the tree next to the whole row, and their difference. */
export class Comparison {
  constructor() {
    this.rows = COMPARED.map((name) => this.#row(name));
    const names = ["", "root", "whole row", "difference"];
    const body = h("tbody", {}, this.rows.map(({ element }) => element));
    const table = h("table", {}, headings(names), body);
    this.element = panel("merge-compare", "Is it the State of the whole row?", null, table);
  }

  #row(name) {
    const cells = ["root", "whole", "difference"].map((kind) => h("td", { "data-name": kind }));
    const label = name === "plain" ? "mean" : symbol(name);
    const element = h("tr", { "data-compared": name }, h("th", { scope: "row" }, label), cells);
    return { name, element, cells };
  }

  /**
   * last: the numbers of the last node, which is the root once there is only one.
   * @param {Result} result
   * @param {Numbers} last
   * @param {Numbers} whole
   */
  draw({ differences, roots }, last, whole) {
    for (const { name, cells } of this.rows) {
      const [ours, all, difference] = cells;
      show(ours, differences ? valuesOf(last, name) : []);
      show(all, valuesOf(whole, name === "plain" ? "O" : name));
      setText(difference, differences ? inWords(differences[name], name === "plain") : "");
    }
    if (!differences) setText(this.rows[0].cells[2], `${roots.length} nodes left to merge`);
  }
}

/** How a node was computed: the last one, or the one that is looked at. */
export class Account {
  constructor() {
    this.title = h("h3");
    this.lines = h("p", { class: "flash-merge-words" });
    this.hint = note();
    this.element = h(
      "section",
      { class: "flash-panel flash-merge-account" },
      h("header", {}, this.title),
      this.lines,
      this.hint,
    );
  }

  /**
   * @param {string} title
   * @param {string} text
   * @param {string} hint
   */
  draw(title, text, hint) {
    setText(this.title, title);
    setText(this.hint, hint);
    if (this.lines.flashText === text) return;
    this.lines.flashText = text;
    this.lines.replaceChildren(...text.split("\n").map((words) => h("span", {}, typeset(words))));
  }
}

/** The trees with one root so far, and how much the newest differ from the whole row. */
export class Log {
  constructor() {
    this.count = h("h3");
    this.note = h("p", { class: "flash-note" });
    this.rows = h("tbody", {});
    const table = h("table", { hidden: true }, headings(["order and tree", "difference"]), this.rows);
    const open = disclosure("list", (shown) => (table.hidden = !shown));
    const name = "flash-panel flash-merge-log";
    this.element = h("section", { class: name }, h("header", {}, this.count, open), this.note, table);
  }

  /** @param {Result} result */
  draw({ tried, count, spread }) {
    this.element.hidden = count === 0;
    const rows = tried.map(([order, tree, difference]) => {
      const words = [order, h("span", { class: "flash-note flash-merge-nested" }, tree)];
      return h("tr", {}, h("td", {}, words), h("td", {}, inWords(difference)));
    });
    this.rows.replaceChildren(...rows);
    setText(this.count, `Trees so far: ${count}`);
    const most = spread ? `differ by ${number(spread)} at most, rounding` : "are equal to the last bit";
    setText(this.note, count > 1 ? `Their roots ${most}.` : "Try another one.");
  }
}

export function legend() {
  const mark = (name) => h("i", { class: `flash-merge-key flash-merge-key-${name}` });
  const key = (names, ...words) => h("span", {}, names.split(" ").map(mark), h("span", {}, words));
  return div(
    "flash-legend flash-note",
    key("negative positive", "negative, positive"),
    key("joined", "press to cut"),
    key("cut", "press to join"),
    key("strip", "its scores"),
    key("free", "can be picked"),
    key("newest", "the last move"),
    key("empty", "no scores, or −∞"),
    key("alpha", typeset("×\u00a0alpha, as wide as the edge")),
  );
}
