/** @import { Result } from "./types.js" */
import { h, put, setText, symbol } from "../shared/elements.js";
import { exact, number } from "../shared/number_text.js";

export const COLUMNS = ["x", "e", "naive", "shifted", "e_safe", "safe", "exact"];
const SUMS = ["l", "naive_total", "l_safe", "safe_total"];
const MARKS = { overflow: "▲ overflow", underflow: "▼ underflow", subnormal: "≈ subnormal", wrong: "✕ wrong" };
const SCROLLS = { tabindex: 0, role: "group", "aria-label": "the numbers" }; // on a narrow page, also by keyboard

const shown = (x) => (x === Infinity ? "inf" : number(x));

/** exp(x_j), exp(x_j − m) and the like as elements. */
export const exps = (...parts) => h("span", {}, "exp(", parts, ")");

/** A number above the word that marks it; `draw` shows a different one. */
class Value {
  constructor(name) {
    this.text = h("span", { class: "flash-overflow-number" });
    this.word = h("span", { class: "flash-overflow-word" });
    this.element = h("td", { "data-name": name }, this.text, this.word);
  }

  draw(x, mark = "", text = shown(x)) {
    setText(this.text, text);
    setText(this.word, MARKS[mark] ?? "");
    put(this.element, "title", x === Infinity ? "inf" : exact(x));
    put(this.element, "data-mark", mark);
  }
}

/** The numbers of n scores and their sums. */
export class Table {
  constructor(n) {
    this.values = Array.from({ length: n }, () => COLUMNS.map((name) => new Value(name)));
    this.sums = Object.fromEntries(SUMS.map((name) => [name, new Value(name)]));
    this.caption = h("th", { scope: "row", colspan: 2 });
    const columns = ["j", "x"].map((name) => h("col", { class: `flash-overflow-col-${name}` }));
    this.table = h(
      "table",
      { class: "flash-overflow-table" },
      [h("colgroup", {}, columns), h("thead", {}, this.#head())],
      [h("tbody", {}, this.#rows()), h("tfoot", {}, this.#foot())],
    );
    this.element = h("div", { class: "flash-panel flash-overflow-numbers", ...SCROLLS }, this.table);
  }

  #head() {
    const head = (...children) => h("th", { scope: "col" }, children);
    const group = (text, colspan) => h("th", { scope: "colgroup", colspan }, text);
    const minus = () => [symbol("x_j"), " − ", symbol("m")];
    return [
      h("tr", {}, h("td", { colspan: 2 }), group("naive", 2), group("safe", 3), group("exact", 1)),
      h(
        "tr",
        {},
        [head(symbol("j")), head(symbol("x_j")), head(exps(symbol("x_j"))), head("weight")],
        [head(minus()), head(exps(minus())), head("weight"), head("weight")],
      ),
    ];
  }

  #rows() {
    return this.values.map((values, j) => {
      const cells = values.map(({ element }) => element);
      return h("tr", {}, h("th", { scope: "row" }, j + 1), cells);
    });
  }

  #foot() {
    const { l, naive_total, l_safe, safe_total } = this.sums;
    const naive = [this.caption, l.element, naive_total.element, h("td", {})];
    return h("tr", {}, naive, [l_safe.element, safe_total.element, h("td", {}, "1")]);
  }

  /**
   * @param {Result} sent
   * @param {Record<string, any>} columns
   */
  draw({ scores, marks, n, asked }, columns) {
    for (const [j, values] of this.values.entries())
      for (const [k, name] of COLUMNS.entries())
        values[k].draw(columns[name][j], marks[name]?.[j], name === "x" ? scores[j] : undefined);
    for (const name of SUMS) this.sums[name].draw(columns[name], marks[name][0]);
    setText(this.caption, `sum of ${n * asked.copies}`);
  }
}
