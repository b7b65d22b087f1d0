// l as a bar: the terms one after another. When m grows it shrinks, from a dashed outline of its old size.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Phase, Scan } from "./types.js" */
import { div, h, note, setText, symbol } from "../shared/elements.js";
import { exact, number } from "../shared/number_text.js";
import { become, compact, factor, isRescaled, measure, percent } from "./charts.js";

export class Sum {
  /** @param {Scan} scan */
  constructor(scan) {
    this.scan = scan;
    this.largest = { true: Math.max(...scan.l) || 1, false: scan.l_wrong[scan.N - 1] || 1 };
    this.pieces = Array.from(scan.x, () => h("i"));
    this.parts = ["bar", "added", "excess"].map((name) => h("span", { class: `flash-online-${name}` }));
    this.parts[0].append(...this.pieces);
    this.ghost = h("span", { class: "flash-online-ghost" });
    this.tag = h("span", { class: "flash-online-tag flash-strong" });
    this.value = h("span", { "data-name": "shown" });
    this.label = note();
    this.reference = h("span", { class: "flash-note", "data-name": "reference" });
    const track = div("flash-online-track", this.parts, this.ghost);
    const value = h("span", { class: "flash-strong" }, symbol("l"), " = ", this.value);
    this.element = div(
      "flash-online-sum",
      div("flash-online-axis"),
      div("flash-online-field", track, this.tag),
      div("flash-online-margin", value),
    );
    this.beside = h("span", {}, this.label, " ", this.reference);
  }

  /**
   * @param {number} j
   * @param {Phase} phase
   * @param {boolean} rescale
   * @param {Motion} motion
   */
  draw(j, phase, rescale, motion) {
    const { l_old, kept, p, l, l_wrong } = this.scan;
    const right = phase === "rescale" ? kept[j] : l[j];
    const wrong_old = j ? l_wrong[j - 1] : 0;
    const shown = rescale ? right : phase === "rescale" ? wrong_old : l_wrong[j];
    const before = phase === "end" ? right : l_old[j];
    const added = rescale && phase === "add" ? p[j] : 0;
    const shrinks = phase === "rescale" && isRescaled(this.scan, j);
    const share = (part) => Math.max(0, part) / this.largest[rescale];
    const size = (part) => percent(share(part));
    if (rescale && phase === "rescale") {
      // the last term shrinks with the others
      this.parts[0].style.width = size(before);
      this.parts[1].style.width = size(0);
    }
    [right - added, added, shown - right].forEach((part, k) => become(this.parts[k], { width: size(part) }, motion));
    this.parts[1].hidden = !parseFloat(size(added));
    this.#drawPieces(phase === "rescale" || added ? j - 1 : j);
    measure(this.ghost, "width", share(shrinks && rescale ? before : 0));
    this.#drawTag(j, phase, rescale, shrinks);
    setText(this.value, compact(shown));
    this.value.title = exact(shown);
    setText(this.label, rescale ? "before:" : "it should be:");
    setText(this.reference, number(rescale ? before : right));
    this.reference.title = exact(rescale ? before : right);
  }

  /** The terms after score j side by side; alpha changes all of them by the same factor. */
  #drawPieces(j) {
    const { N, terms, l } = this.scan;
    const grow = (k) => (j < 0 ? 0 : (100 * terms[j * N + k]) / (l[j] || 1));
    this.pieces.forEach((piece, k) => (piece.style.flexGrow = String(grow(k))));
  }

  /** What happens to l now, below the affected place in the bar. */
  #drawTag(j, phase, rescale, shrinks) {
    const { alpha, l_old, kept, p, l, l_wrong } = this.scan;
    const old = rescale ? l_old[j] : j && l_wrong[j - 1];
    const [start, end] = phase === "rescale" ? [kept[j], old] : rescale ? [kept[j], l[j]] : [old, l_wrong[j]];
    const shrunk = shrinks ? `${rescale ? "" : "✕ no "}${factor(alpha[j])}` : "";
    const text = phase === "add" ? `+ ${number(p[j])}` : shrunk;
    setText(this.tag, text);
    this.tag.style.setProperty("--across", (start + end) / 2 / this.largest[rescale]);
  }
}
