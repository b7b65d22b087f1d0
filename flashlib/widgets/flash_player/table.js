// The state of each row of the block, as a table; in each row, the values that alpha multiplies shrink.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Colours } from "../shared/colours.js" */
/** @import { Frames } from "./frames.js" */
/** @import { At, ForwardStep } from "./types.js" */
import { div, h, note, setText, symbol } from "../shared/elements.js";
import { between, exact, number } from "../shared/number_text.js";
import { sums } from "./bars.js";
import { span } from "./frames.js";
import { roomOf } from "./labels.js";
import { CELL, Matrix } from "./matrix.js";
import { copyOf, shrink } from "./shrink.js";

/** What each column holds, in the few words that fit below its name. */
const HEADS = {
  m: "largest score so far; ↑:\u00a0it\u00a0grew",
  alpha: "multiplies the old sums",
  l: "sum of the weights so far",
  O_acc: "weighted sum of rows of V so far",
};
const TABLE = { rows: 8, cut: 6, cols: 4 }; // at most; shown of more; of O_acc, with its numbers

/** m_old, m, alpha, l and O_acc of each row of the block. */
export class StateTable {
  /** @type {number} */
  first;

  /**
   * worded: the columns say what they hold.
   * @param {Frames} frames
   * @param {(row: number) => void} pressed
   * @param {{ worded?: boolean }} [options]
   */
  constructor(frames, pressed, { worded = false } = {}) {
    this.frames = frames;
    this.worded = worded;
    this.group = `flash-row-${Math.random().toString(36).slice(2)}`;
    const { B_r, d, learner, rowWords } = frames;
    const few = B_r <= 4;
    const width = d <= TABLE.cols ? CELL.width[1] : Math.min(12, 96 / d);
    this.cell = { width, height: few && !learner ? 18 : 13 };
    const length = B_r <= TABLE.rows ? B_r : TABLE.cut;
    this.rows = Array.from({ length }, (_, k) => this.#row(() => pressed(this.first + k)));
    this.more = h("p", { class: "flash-note", hidden: B_r <= length });
    const isLong = d > TABLE.cols || rowWords;
    this.emptied = h("p", { class: "flash-emptied" });
    const table = div(`flash-table ${isLong ? "flash-long" : ""}`, this.#table(), this.emptied); // long for a line on a phone
    if (rowWords) table.style.setProperty("--word", `${roomOf(rowWords) + 30}px`); // with its radio button
    this.element = div(few ? "" : "flash-tight", table, this.more);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.frames = frames;
  }

  #table() {
    const head = (name) => h("th", { scope: "col" }, symbol(name), this.worded && HEADS[name] && h("small", {}, HEADS[name]));
    const names = ["m_old", "m", "alpha", "l", "O_acc"].map(head);
    const title = this.frames.rowWords ? "word" : "row";
    const row = h("th", { scope: "col", title: "pick a row to follow it" }, title);
    return h(
      "table",
      { class: "flash-rows", "aria-label": "the state of each row; pick a row to follow it" },
      h("thead", {}, h("tr", {}, row, names)),
      h("tbody", {}, ...this.rows.map((row) => row.element)),
    );
  }

  #row(press) {
    const { d, learner } = this.frames;
    const vector = { rows: 1, cols: d, ...this.cell, numbers: d <= TABLE.cols };
    const O_acc = new Matrix("O_acc", vector);
    const ghost = learner && new Matrix("O_acc, true", vector);
    const radio = h("input", { type: "radio", name: this.group, onchange: press });
    const cells = { row: h("td", { "data-name": "row" }, h("label", {}, radio, h("span", {}))) };
    for (const name of ["m_old", "m", "alpha", "l"])
      cells[name] = h("td", { "data-name": name }, h("span", {}), learner && h("span", { class: "flash-true" }));
    const sizes = { was: h("i", { class: "flash-was" }), now: h("i", { class: "flash-size" }) };
    cells.l.append(sizes.was, sizes.now);
    const none = note();
    if (this.worded) cells.alpha.append(none);
    const name = h("span", { class: "flash-cell-name" }, symbol("O_acc"));
    const last = h("td", {}, name, O_acc.element, ghost && div("flash-true", h("span", {}, "≠"), ghost.element));
    const element = h("tr", { onclick: press }, Object.values(cells), last);
    return { element, cells, radio, none, sizes, O_acc, ghost };
  }

  /**
   * The elements that show a column, one for each row.
   * @param {string} name
   */
  column(name) {
    const shown = this.rows.filter(({ element }) => !element.classList.contains("flash-unused"));
    return shown.map(({ cells, O_acc }) => cells[name]?.firstElementChild ?? O_acc.element);
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {number} selected
   * @param {Colours} colour
   * @param {Motion} motion
   */
  draw(at, selected, colour, motion) {
    const { step } = at;
    const n_r = step?.n_r ?? 0;
    const start = step?.rows[0] ?? 0;
    const { length } = this.rows;
    const first = between(0, Math.floor((selected - start) / length) * length, n_r);
    this.first = start + first;
    this.rows.forEach((row, k) => this.#drawRow(row, at, first + k, selected, colour, motion));
    const shown = [this.first, Math.min(this.first + length, step?.rows[1] ?? 0)];
    const more = step && n_r > length;
    setText(this.emptied, step ? "" : "All rows are finished: what they summed is in O.");
    setText(this.more, more ? `${span("row", shown)} of ${span("row", step.rows)}: up and down arrows move.` : "");
  }

  #drawRow(shown, at, r, selected, colour, motion) {
    const { element, cells, radio, none, sizes, O_acc } = shown;
    const { step, part, reached } = at;
    const used = step && r < step.n_r;
    element.classList.toggle("flash-unused", !used);
    const current = used && step.rows[0] + r === selected;
    radio.checked = current;
    if (current) element.setAttribute("aria-current", "true");
    else element.removeAttribute("aria-current");
    if (!used) return;
    const row = this.frames.row(step, r);
    const now = this.frames.now(at);
    const grew = reached("maximum") && row.m > row.m_old;
    const truth = (part, x) => (this.frames.isOff(at.k) && reached(part) ? x : undefined);
    const index = step.rows[0] + r;
    const same = shown.index === index;
    shown.index = index;
    const shrinks = same && part === "rescale" && row.l_old > row[now.l];
    const copies = shrinks && motion.time > 0 ? [cells.l.firstElementChild, O_acc.element].map(copyOf) : [];
    setText(cells.row.querySelector("span"), this.frames.rowWords?.[index] ?? String(index));
    this.#put(cells.m_old, row.m_old);
    this.#put(cells.m, row[now.m], truth("maximum", row.m_true), grew ? " ↑" : "");
    this.#put(cells.alpha, reached("rescale") ? row.alpha : undefined);
    setText(none, reached("rescale") && row.m_old === -Infinity ? "no old sums yet" : "");
    this.#put(cells.l, row[now.l], truth("add", row.l_true));
    cells.m.classList.toggle("flash-strong", grew);
    cells.alpha.classList.toggle("flash-strong", grew);
    this.#drawSizes(sizes, at, row, same && sums(part) ? motion : undefined);
    if (grew && part === "maximum" && row.m_old > -Infinity) pulse(motion, cells.m);
    this.#drawSum(shown, at, r, colour);
    element.classList.toggle("flash-shrunk", shrinks);
    if (copies.length) shrink(motion, cells.alpha, row.alpha, copies, current);
  }

  /**
   * O_acc of a row, and the true values where a learner's differ.
   * @param {{ O_acc: Matrix, ghost: Matrix | null }} row
   * @param {At<ForwardStep>} at
   * @param {number} r
   * @param {Colours} colour
   */
  #drawSum({ O_acc, ghost }, at, r, colour) {
    const { numbers, peaks, d } = this.frames;
    const step = /** @type {ForwardStep} */ (at.step);
    O_acc.draw(numbers, step[this.frames.now(at).O_acc] + r * d, 1, d, peaks.O_acc, colour);
    if (!ghost) return;
    const isOff = this.frames.isOff(at.k) && at.reached("add");
    const apart = isOff && this.#apart(step.O_acc + r * d, step.O_acc_true + r * d);
    ghost.element.parentElement?.classList.toggle("flash-equal", !apart);
    if (apart) ghost.draw(numbers, step.O_acc_true + r * d, 1, d, peaks.O_acc, colour);
  }

  /**
   * l as a bar, and after a rescale an outline of its old value.
   * @param {{ was: HTMLElement, now: HTMLElement }} bars
   * @param {At<ForwardStep>} at
   * @param {Motion} [motion]
   */
  #drawSizes({ was, now }, at, row, motion) {
    const most = this.frames.peaks.l || 1;
    const part = (l) => `calc(${between(0, l / most, 1) || 0} * (100% - var(--beside)))`;
    const before = now.style.width;
    now.style.width = part(row[this.frames.now(at).l]);
    if (motion && now.style.width !== before) motion.from(now, { width: before });
    was.hidden = !(at.reached("rescale") && row.l_old > row.l_rescaled);
    was.style.width = part(row.l_old);
  }

  /**
   * Whether two rows of O_acc differ in the digits shown.
   * @param {number} a
   * @param {number} b
   */
  #apart(a, b) {
    const { numbers, d } = this.frames;
    for (let c = 0; c < d; c++) if (number(numbers[a + c]) !== number(numbers[b + c])) return true;
    return false;
  }

  /**
   * A number, and next to it the true one if a learner's differs.
   * @param {HTMLElement} cell
   * @param {number | undefined} x
   * @param {number | undefined} [truth]
   */
  #put(cell, x, truth, mark = "") {
    const text = /** @type {HTMLElement} */ (cell.firstElementChild);
    const ghost = cell.querySelector(".flash-true");
    setText(text, x === undefined ? "" : number(x) + mark);
    cell.title = x === undefined ? "" : exact(x);
    if (!ghost) return;
    const apart = x !== undefined && truth !== undefined && number(truth) !== number(x);
    setText(ghost, apart ? `≠ ${number(truth)}` : "");
  }
}

/**
 * Show that a number has just grown.
 * @param {Motion} motion
 * @param {HTMLElement} cell
 */
function pulse(motion, cell) {
  const look = (opacity) => ({ boxShadow: `inset 0 0 0 2px color-mix(in srgb, var(--flash-select) ${opacity}%, transparent)` });
  motion.play(cell, [look(100), look(0)]);
  const text = cell.firstElementChild;
  if (text) motion.from(text, { transform: "scale(1.25)", transformOrigin: "0 50%" });
}
