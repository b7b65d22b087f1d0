/** @import { Motion } from "../shared/motion.js" */
/** @import { Frame, Result } from "./types.js" */
import { div, h, note, panel, setText } from "../shared/elements.js";

/** How many rows hold no token: in the pages in use, and if the longest length were reserved for each sequence. */
export class RowCounts {
  /** @type {number} */
  all;
  /** @type {number} */
  most;
  /** @type {number} */
  longest;

  constructor() {
    this.rows = ["pages", "reserved"].map((name) => {
      const [label, waste] = [h("span", {}), h("b", {})];
      const parts = ["filled", "empty"].map((part) => h("i", { class: `flash-paging-${part}` }));
      const limit = h("i", { class: "flash-paging-limit" });
      const bar = div("flash-paging-bar", parts, limit);
      return { element: h("div", { "data-name": name }, label, waste, bar), label, waste, parts, limit };
    });
    this.limit = note();
    this.element = panel("paging-counts", "Rows that hold no token", this.limit, this.rows.map(({ element }) => element));
  }

  /** @param {Result} result */
  take({ frames, longest, setting: { page, n_pages } }) {
    this.all = n_pages * page;
    this.most = Math.max(this.all, ...frames.map(({ counts }) => counts.reserved));
    this.longest = longest;
    setText(this.limit, `line: all ${this.all} rows there are`);
    for (const { limit } of this.rows) limit.style.left = `${(100 * this.all) / this.most}%`;
  }

  /**
   * @param {Frame} frame
   * @param {Motion} motion
   */
  draw({ counts, tables }, motion) {
    const { rows, filled, waste, tokens, reserved, reserved_waste } = counts;
    const living = Object.keys(tables).length;
    const inPages = `In pages: ${rows} rows for ${tokens} tokens`;
    const shared = tokens > filled ? `${inPages}, ${tokens - filled} shared` : inPages;
    this.#draw(this.rows[0], shared, filled, waste, motion);
    const each = `Reserved: ${living} × ${this.longest} = ${reserved} rows`;
    this.#draw(this.rows[1], reserved > this.all ? `${each}, too many` : each, tokens, reserved_waste, motion);
  }

  #draw({ label, waste: text, parts }, words, filled, waste, motion) {
    setText(label, words);
    setText(text, `${waste} empty`);
    [filled, waste].forEach((rows, k) => {
      const width = `${(100 * rows) / this.most}%`;
      const { style } = parts[k];
      if (style.width && style.width !== width) motion.from(parts[k], { width: style.width });
      style.width = width;
    });
  }
}
