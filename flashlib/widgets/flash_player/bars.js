// One row of the block as bars: its sums shrink by alpha where its maximum grew.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Frames } from "./frames.js" */
/** @import { At, ForwardStep } from "./types.js" */
import { div, h, panel, setText, symbol } from "../shared/elements.js";
import { between, exact, number } from "../shared/number_text.js";

/**
 * Whether the sums change in this part of a step.
 * @param {string} part
 */
export const sums = (part) => part === "rescale" || part === "add";

const COLUMNS = 32; // of O_acc, at most

/** m, alpha, l and O_acc of one row, as numbers and bars, with dashed outlines of their values before this step. */
export class RowBars {
  static key = ({ d }) => d;

  /** @type {Frames} */
  frames;
  /** @type {boolean} */
  same;
  /** @type {number} */
  shown;

  /** @param {Frames} frames */
  constructor(frames) {
    const bar = (name) => h("i", { class: `flash-${name}` });
    /** @type {Record<string, { text: HTMLElement, bars: HTMLElement[] }>} */
    this.items = {};
    const item = (name, ...bars) => {
      const text = h("span", { class: "flash-value" });
      this.items[name] = { text, bars };
      return [symbol(name), text, h("div", { class: "flash-track", "data-name": name }, bars)];
    };
    this.columns = Array.from({ length: Math.min(frames.d, COLUMNS) }, () => [bar("before"), bar("after")]);
    const pairs = this.columns.map((pair) => h("b", {}, pair));
    this.name = h("span", { class: "flash-row-name" });
    this.factor = h("b", { class: "flash-factor" });
    const dashed = frames.d > COLUMNS ? `dashed: before; ${COLUMNS} of ${frames.d} columns` : "dashed: before";
    const header = h("span", { class: "flash-note", title: "before this step" }, dashed);
    const rows = [
      item("m", bar("before"), bar("kept")),
      item("alpha", bar("kept")),
      item("l", bar("before"), bar("kept"), bar("added")),
      [symbol("O_acc"), this.factor, div("flash-track flash-columns", pairs)],
    ];
    this.element = panel("row", this.name, header, div("flash-bars", rows));
  }

  /** @param {Frames} frames */
  take(frames) {
    this.frames = frames;
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {number} selected
   * @param {Motion} motion
   */
  draw(at, selected, motion) {
    const { step, reached } = at;
    this.element.classList.toggle("flash-unused", !step);
    setText(this.name, this.frames.rowName(selected));
    this.same = this.shown === selected; // else the bars change because they belong to another row
    this.shown = selected;
    if (!step) return;
    const { peaks, learner } = this.frames;
    const r = selected - step.rows[0];
    const row = this.frames.row(step, r);
    const now = this.frames.now(at);
    const rescaled = reached("rescale");
    // What a learner's code did with alpha is unknown: only its results are known.
    setText(this.factor, rescaled && !learner && row.m_old > -Infinity ? `× ${number(row.alpha)}` : "");
    this.factor.classList.toggle("flash-shrinks", row.alpha < 1);
    this.#signed(0, row.m_old, peaks.m);
    this.#signed(1, row[now.m], peaks.m);
    this.#put("m", row[now.m]);
    this.#put("alpha", rescaled ? row.alpha : undefined);
    this.#span(this.items.alpha.bars[0], 0, rescaled ? row.alpha : 0);
    this.#put("l", row[now.l]);
    const [before, kept, added] = this.items.l.bars;
    const most = this.frames.rowPeak("l", selected);
    const size = (x) => x / most;
    const l = rescaled && !learner ? row.l_rescaled : row.l_old;
    this.#span(before, 0, size(row.l_old));
    this.#span(kept, 0, size(l), this.same && at.part === "rescale" && motion);
    this.#span(added, size(l), reached("add") ? size(row.l - l) : 0);
    this.#drawColumns(at, step, r, this.frames.rowPeak("O_acc", selected), motion);
    if (at.part === "add") motion.from(added, { width: "0%" });
  }

  /**
   * O_acc, and as an outline its value before this step.
   * @param {At<ForwardStep>} at
   * @param {ForwardStep} step
   * @param {number} r
   * @param {number} peak
   * @param {Motion} motion
   */
  #drawColumns({ part, reached }, step, r, peak, motion) {
    const { numbers, d } = this.frames;
    const now = this.frames.now({ reached }).O_acc;
    this.columns.forEach(([before, after], c) => {
      const old = { height: after.style.height, bottom: after.style.bottom };
      for (const [k, bar] of [before, after].entries()) {
        const x = numbers[step[k ? now : "O_acc_old"] + r * d + c] / peak;
        const height = 50 * between(-1, Number.isFinite(x) ? x : 0, 1);
        bar.style.height = `${Math.abs(height)}%`;
        bar.style.bottom = `${50 + Math.min(0, height)}%`;
        bar.dataset.sign = String(Math.sign(height));
      }
      if (this.same && sums(part) && after.style.height !== old.height) motion.from(after, old);
    });
  }

  /**
   * @param {string} name
   * @param {number | undefined} x
   */
  #put(name, x) {
    const { text } = this.items[name];
    setText(text, x === undefined ? "" : number(x));
    text.title = x === undefined ? "" : exact(x);
  }

  /** A bar of m from the middle to x. */
  #signed(which, x, peak) {
    const t = between(-1, Number.isFinite(x) ? x / (peak || 1) : 0, 1);
    this.#span(this.items.m.bars[which], (1 + Math.min(0, t)) / 2, Math.abs(t) / 2);
  }

  /**
   * A bar with this left end and width, both as shares of the track.
   * @param {HTMLElement} bar
   * @param {number} left
   * @param {number} width
   * @param {Motion | false} [motion]
   */
  #span(bar, left, width, motion) {
    const old = bar.style.width;
    bar.style.left = `${100 * between(0, left, 1)}%`;
    bar.style.width = `${100 * between(0, Number.isFinite(width) ? width : 0, 1)}%`;
    if (motion && old !== bar.style.width) motion.from(bar, { width: old });
  }
}
