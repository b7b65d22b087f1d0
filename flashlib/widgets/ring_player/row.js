/** @import { Result, Standing, State } from "./types.js" */
import { slider } from "../shared/controls.js";
import { div, h, panel, setSentence, setText, symbol, typeset } from "../shared/elements.js";
import { exact, number } from "../shared/number_text.js";
import { outputOf, statesOf } from "./standing.js";

const norm = (X) => Math.hypot(...X);

/** One row and its State: m, l and O_acc after each hop, as the hops are merged. */
export class RingRow {
  /** @type {Result} */
  result;
  /** @type {State[]} */
  states;
  /** @type {HTMLTableRowElement[]} */
  rows;
  /** @type {number} */
  rank;

  /** @param {(row: number) => void} choose */
  constructor(choose) {
    this.slider = slider("row", "row of Q that is shown (arrow up, arrow down)", choose);
    this.title = h("span", {});
    const names = [["after hop", "keys of"], ["alpha", "m", "l", "O_acc"]];
    const head = [...names[0].map((name) => h("th", { scope: "col" }, name)), ...names[1].map((name) => h("th", { scope: "col" }, name === "O_acc" ? ["|", symbol(name), "|"] : symbol(name)))];
    this.body = h("tbody", {});
    this.ends = h("p", {});
    this.equal = h("p", { class: "flash-note" });
    const factor = h("p", { class: "flash-note" }, typeset("alpha = exp(m before − m): what the sums so far, l and O_acc, are multiplied by; 0 at first."));
    const table = h("table", {}, h("thead", {}, h("tr", {}, head)), this.body);
    this.element = panel("ring-state", this.title, this.slider.element, factor, div("flash-ring-merges", table), this.ends, this.equal);
  }

  /**
   * @param {Result} result
   * @param {Float64Array} numbers
   * @param {number} row
   * @param {{ rank: number[], place: number[] }} which rank has each token, and where
   */
  take(result, numbers, row, { rank, place }) {
    this.result = result;
    this.rank = rank[row];
    this.slider.show(row, [0, result.setting.N - 1]);
    setText(this.title, `Row ${row}, of rank ${this.rank}`);
    this.states = statesOf(result, numbers, this.rank, place[row]);
    let before = -Infinity;
    this.rows = result.computes[this.rank].map(([source, hop], k) => {
      const { m, l, O_acc } = this.states[k];
      const alpha = m === -Infinity ? 1 : Math.exp(before - m); // nothing seen yet: nothing to rescale
      before = m;
      const cells = [hop, source, alpha, m, l, norm(O_acc)].map((value, n) => h("td", { title: exact(value), class: n === 1 && "flash-ring-whose", style: n === 1 && `--whose: var(--flash-ring-${source})` }, h("span", {}, number(value))));
      return h("tr", {}, cells);
    });
    this.body.replaceChildren(...this.rows);
    const { O, lse } = outputOf(result, numbers, row);
    const done = Number.isNaN(lse) ? "O = O_acc / l, once all hops are merged." : `O = O_acc / l = (${Array.from(O, number).join(", ")}), lse = ${number(lse)}`;
    setSentence(this.ends, done);
    setSentence(this.equal, result.words[2]);
  }

  /** @param {Standing} at */
  draw(at) {
    const done = at.done[this.rank];
    this.rows.forEach((row, k) => {
      row.className = k < done ? (k === done - 1 ? "flash-ring-last" : "") : "flash-ring-later";
      row.setAttribute("aria-hidden", k >= done);
    });
    this.ends.classList.toggle("flash-ring-later", done < this.rows.length);
  }

  /** The State of the row, in words. */
  said(at) {
    const k = at.done[this.rank] - 1;
    return k < 0 ? "" : `The row has m = ${number(this.states[k].m)}, l = ${number(this.states[k].l)}.`;
  }
}
