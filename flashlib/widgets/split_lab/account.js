/** @import { Result, State } from "./types.js" */
import { div, h, panel, setSentence, setText, symbol, typeset } from "../shared/elements.js";
import { counted } from "../shared/language.js";
import { exact, inBrackets, number } from "../shared/number_text.js";

const vector = (values) => `(${Array.from(values, number).join(", ")})`;

/**
 * How the State of a part was computed, line by line, with its numbers.
 * @param {number} k
 * @param {Result} result
 * @param {State[]} states
 */
function ofPart(k, { ranges, tile }, states) {
  const [begin, end] = ranges[k];
  const tiles = Math.ceil((end - begin) / tile);
  const { m, l, O_acc } = states[k];
  const all = states[states.length - 1].m;
  const keys = end - begin === 1 ? `Key ${begin}` : `Keys ${begin} to ${end - 1}`;
  return [
    `${keys}, ${counted(tiles, "tile", "tiles")}. Its State:`,
    `m_${k} = ${number(m)}, the largest of its scores`,
    `l_${k} = ${number(l)}, the sum of exp(score − m_${k})`,
    `O_acc is ${vector(O_acc)}, the sum of exp times V`,
    `Merging multiplies both by alpha_${k} = exp(m_${k} − m) = exp(${number(m)} − ${inBrackets(all)}) = ${number(Math.exp(m - all))}.`,
  ];
}

/**
 * How the State of a merge was computed, likewise.
 * @param {number} k
 * @param {Result} result
 * @param {State[]} states
 */
function ofMerge(k, { n, nodes }, states) {
  const { m, l, O_acc, alphas } = states[k];
  const [a, b] = nodes.children[k - n].map((child) => states[child]);
  const [first, second] = nodes.children[k - n].map((child) => nameOfSpan(nodes.spans[child]));
  const factor = (state, alpha) => `exp(${number(state.m)} − ${inBrackets(m)}) = ${number(alpha)}`;
  return [
    `a: ${first}, b: ${second}.`,
    `m = max(${number(a.m)}, ${number(b.m)}) = ${number(m)}`,
    `alpha_a = ${factor(a, alphas[0])}, alpha_b = ${factor(b, alphas[1])}`,
    `l = ${number(alphas[0])} · ${number(a.l)} + ${number(alphas[1])} · ${number(b.l)} = ${number(l)}`,
    `O_acc = ${vector(O_acc)}, likewise`,
  ];
}

const nameOfSpan = ([first, end]) =>
  end === first + 1 ? `part ${first}` : `parts ${first} ${end === first + 2 ? "and" : "to"} ${end - 1}`;

/** The State of one node, a part or a merge, with buttons to the previous and the next one. */
export class Account {
  /** @type {string[]} */
  text;

  constructor(step) {
    this.title = h("span", {});
    this.lines = div("flash-split-lines");
    const button = (by, sign, label) =>
      h(
        "button",
        { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: () => step(by) },
        sign,
      );
    const stepper = div(
      "flash-split-stepper",
      button(-1, "◀", "previous State (left arrow)"),
      button(1, "▶", "next State (right arrow)"),
    );
    this.element = panel("split-account", this.title, stepper, this.lines);
  }

  /**
   * @param {number} k
   * @param {Result} sent
   * @param {State[]} states
   */
  draw(k, sent, states) {
    const isPart = k < sent.n;
    const name = isPart ? `Part ${k}` : `Merge ${k - sent.n + 1}`;
    setText(this.title, `${name}, of ${isPart ? sent.n : sent.n - 1}`);
    this.text = isPart ? ofPart(k, sent, states) : ofMerge(k, sent, states);
    this.lines.replaceChildren(...this.text.map((line) => h("p", {}, typeset(line))));
  }
}

const ENDS = { merged: "merged", whole: "in one go" };

/** The merge of all States, next to attention in one go. */
export class Finished {
  constructor() {
    const names = ["lse", ...[0, 1, 2, 3].map((k) => `O_${k}`)];
    const head = [h("td", {}), ...Object.values(ENDS).map((label) => h("th", { scope: "col" }, label))];
    this.cells = Object.keys(ENDS).map((end) => names.map((name) => h("td", { "data-name": `${end}-${name}` })));
    const rows = names.map((name, k) => h("tr", {}, h("th", { scope: "row" }, symbol(name)), this.cells.map((one) => one[k])));
    this.equal = h("p", {});
    const table = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
    const own = h("span", { class: "flash-note", title: "the query that is shown has 4 columns, whatever d is" }, "4 columns");
    this.element = panel("split-finished", "What comes out", own, table, this.equal);
  }

  /**
   * @param {Result} result
   * @param {Float64Array[]} ends
   */
  draw({ equal }, ends) {
    this.cells.forEach((row, end) =>
      row.forEach((cell, k) => {
        const value = ends[end].at(k - 1) ?? NaN; // lse is the last
        setText(cell, number(value));
        cell.title = exact(value);
      }),
    );
    setSentence(this.equal, equal);
  }
}
