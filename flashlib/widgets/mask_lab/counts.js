/** @import { Result } from "./types.js" */
import { div, h, note, panel, setSentence, setText, typeset } from "../shared/elements.js";

const swatch = (kind) => h("i", { class: `flash-mask-swatch flash-mask-swatch-${kind}` });

/** How many tiles there are of each kind, and how many scores are seen. */
export class TileCounts {
  constructor() {
    const rows = { whole: "whole: no mask", cut: "cut: masked", hidden: "hidden: skipped" };
    /** @type {Record<string, HTMLElement>} */
    this.counts = {};
    const list = Object.entries(rows).map(([name, text]) => {
      this.counts[name] = h("dd", { "data-count": name });
      return h("div", {}, h("dt", {}, swatch(name), text), this.counts[name]);
    });
    this.parts = ["seen", "masked", "skipped"].map((name) => h("i", { class: `flash-mask-part-${name}` }));
    this.sentence = h("p", { class: "flash-note flash-mask-sentence" });
    const bar = div("flash-mask-bar", this.parts);
    this.element = panel("mask-counts", "Tiles", (this.all = note()), h("dl", {}, list), bar, this.sentence);
  }

  /** @param {Result} result */
  draw({ tiles, scores, setting, kinds }) {
    for (const [name, dd] of Object.entries(this.counts)) setText(dd, String(tiles[name]));
    setText(this.all, `${kinds.length} × ${kinds[0].length}, of ${setting.B_r} × ${setting.B_c} scores`);
    const { all, computed, seen } = scores;
    [seen, computed - seen, all - computed].forEach((count, k) => (this.parts[k].style.width = `${(100 * count) / all}%`));
    setText(this.sentence, `Scores: ${seen} seen, ${computed - seen} masked, ${all - computed} skipped.`);
  }
}

/** The cost with the mask, compared with the cost without one. */
export class Against {
  /** @type {{ element: HTMLElement, bar: HTMLElement, text: HTMLElement, percent: HTMLElement }[] | undefined} */
  rows;

  constructor() {
    this.list = div("flash-mask-against");
    this.element = panel("mask-dense", "Against no mask", note("fp16, one head"), this.list);
  }

  /** @param {Result} result */
  draw({ against }) {
    const rows = (this.rows ??= against.map(({ name }) => this.#row(name)));
    against.forEach(({ mask, dense, ratio, text, percent }, k) => {
      const row = rows[k];
      row.element.title = `${mask} of ${dense}`;
      row.bar.style.width = `${100 * ratio}%`;
      setText(row.text, text);
      setText(row.percent, percent);
    });
  }

  #row(name) {
    const [bar, text, percent] = [h("i", {}), h("span", {}), h("b", {})];
    const element = h("div", { "data-name": name }, h("span", {}, typeset(name)), text, percent, div("flash-mask-bar", bar));
    this.list.append(element);
    return { element, bar, text, percent };
  }
}

/** How a loop finds the tiles of a row block. */
export class Loop {
  constructor() {
    this.verdict = h("span", { class: "flash-mask-verdict" });
    this.words = h("p", {});
    this.element = panel("mask-loop", "How a loop finds its tiles", this.verdict, this.words);
  }

  /** @param {Result} result */
  draw({ bounds, table, words }) {
    this.element.dataset.bounds = String(bounds);
    setText(this.verdict, bounds ? "↔ by bounds" : `▦ by a table, ${table} B`);
    setSentence(this.words, words[1]);
  }
}
