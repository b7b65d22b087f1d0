/** @import { Result } from "./types.js" */
import { div, h, note, panel, setSentence, setText, typeset } from "../shared/elements.js";
import { endOf } from "./nearby.js";
import { percent } from "./words.js";

/** The error of O from each cause alone, as bars, and from all at once, as a stack of their squares. */
export class Causes {
  constructor() {
    this.words = h("p", {});
    this.together = h("p", { class: "flash-note" });
    this.end = note();
    this.stack = div("flash-eight-stack");
    this.before = h("b", { class: "flash-eight-before" });
    this.all = h("b", { "data-cause": "all" });
    this.was = note();
    const bar = div("flash-eight-bar", this.stack, this.before);
    const all = div("flash-eight-all", h("span", {}, "all at once"), this.was, this.all, bar);
    /** @type {{ name: string, how: HTMLElement, error: HTMLElement, bar: HTMLElement, part: HTMLElement }[]} */
    this.rows = [];
    this.list = div("flash-eight-causes-list", all);
    const title = typeset("Where the error of O comes from");
    this.element = panel("eight-causes", title, this.end, this.words, this.list, this.together);
    /** @type {number | null} */
    this.last = null; // the error before the last change
    /** @type {number | null} */
    this.now = null;
  }

  #row({ name }, k) {
    const [how, error] = [note(), h("b", { "data-cause": name })];
    const bar = h("i", { class: `flash-eight-cause-${k}` });
    const part = h("i", { class: `flash-eight-cause-${k}`, title: name }, h("span", {}, typeset(name)));
    const swatch = h("i", { class: `flash-eight-swatch flash-eight-cause-${k}` });
    const title = h("span", {}, swatch, h("span", {}, typeset(name)));
    this.list.append(div("flash-eight-cause", title, how, error, div("flash-eight-bar", bar)));
    this.stack.append(part);
    return { name, how, error, bar, part };
  }

  /** @param {(error: number) => string} width */
  #before(width) {
    const isFirst = this.last === null;
    const before = this.last ?? 0;
    const was = `before the last change ${percent(before)}`;
    setText(this.was, isFirst ? "parts by squares, unlike the bars below" : was);
    this.before.hidden = isFirst;
    this.before.style.left = width(before);
  }

  /** @param {Result} result */
  draw({ total, causes, words }) {
    if (!this.rows.length) this.rows = causes.map((cause, k) => this.#row(cause, k));
    if (this.now !== null && this.now !== total) this.last = this.now;
    this.now = total;
    const end = endOf(Math.max(total, this.last ?? 0, ...causes.map(({ error }) => error)));
    const width = (error) => `${(100 * error) / end}%`;
    setSentence(this.words, words[1]);
    setSentence(this.together, words[2]);
    setText(this.end, `rms, over that of O; a whole bar is ${percent(end)}`);
    setText(this.all, percent(total));
    this.stack.style.width = width(total);
    this.#before(width);
    causes.forEach(({ name, error, part, how }, k) => {
      const row = this.rows[k];
      setSentence(row.how, how);
      setText(row.error, percent(error));
      row.bar.style.width = width(error);
      row.part.style.width = `${100 * part}%`;
      row.part.dataset.narrow = String(part * (total / end) < 0.02 * name.length + 0.02);
    });
  }
}
