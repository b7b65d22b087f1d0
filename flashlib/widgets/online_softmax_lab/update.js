// The update of m and l in numbers: alpha in large type, the equation, and the error of l.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Phase, Scan } from "./types.js" */
import { div, h, setSentence, setText, svg, symbol } from "../shared/elements.js";
import { counted, say } from "../shared/language.js";
import { exact, inBrackets, number, short } from "../shared/number_text.js";
import { compact, isRescaled, percent, ROOM } from "./charts.js";

/**
 * Words with the names among them set as symbols: names are between bars, as in "l = |alpha| · |l_old|".
 * @param {string} text
 */
export const formula = (text) => say(text).split("|").map((part, k) => (k % 2 ? symbol(part) : part));

export class Update {
  /** @param {Scan} scan */
  constructor(scan) {
    this.scan = scan;
    const names = ["m_old", "m", "l_old", "l"];
    this.cells = names.map((name) => h("td", { "data-name": name }));
    const head = names.map((name) => h("th", { scope: "col" }, symbol(name)));
    const table = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, h("tr", {}, this.cells)));
    this.alpha = h("span", { "data-name": "alpha" });
    this.sign = h("span", {});
    this.large = div("flash-online-alpha", this.sign, this.alpha);
    this.why = div("flash-online-line flash-note");
    this.rule = div("flash-online-rule");
    this.lines = [0, 1].map(() => div("flash-online-line"));
    this.error = new ErrorCurve(scan);
    this.title = h("h3");
    const parts = [
      h("div", {}, this.large, this.why, table),
      h("div", {}, this.rule, this.lines, this.error.element),
    ];
    const name = "flash-panel flash-online-update";
    this.element = h("section", { class: name }, h("header", {}, this.title), div("flash-online-parts", parts));
  }

  /**
   * @param {number} j
   * @param {Phase} phase
   * @param {boolean} rescale
   * @param {Motion} motion
   */
  draw(j, phase, rescale, motion) {
    if (phase === "end") this.#drawDivision((rescale ? this.scan.l : this.scan.l_wrong)[j]);
    else this.#drawAlpha(j, phase, rescale, motion);
    this.#drawCells(j, phase, rescale);
    this.#drawRule(phase, rescale);
    const { x, m, alpha, l_old, kept, p, l, l_wrong } = this.scan;
    const total = rescale ? l : l_wrong;
    const wrong_old = j ? l_wrong[j - 1] : 0;
    const start = rescale ? kept[j] : wrong_old; // the sum to which the new term is added
    let lines = [total[j] ? `= exp(|x| − ${inBrackets(m[j])}) / ${number(total[j])}` : "= 0, since l = 0", ""];
    if (phase !== "end") {
      const added = phase === "add";
      const term = x[j] === -Infinity ? "0" : `exp(${number(x[j])} − ${inBrackets(m[j])})`;
      const product = rescale ? `${number(alpha[j])} · ${number(l_old[j])}` : number(start);
      lines = [`= ${product} + ${added ? term : "…"}`];
      lines.push(`= ${number(start)} + ${added ? `${number(p[j])} = ${number(total[j])}` : "…"}`);
    }
    lines.forEach((line, k) => {
      const element = this.lines[k];
      if (element.dataset.line !== line) element.replaceChildren(...formula(line));
      element.dataset.line = line;
    });
    this.error.draw(phase === "rescale" ? j - 1 : j, rescale);
  }

  #drawAlpha(j, phase, rescale, motion) {
    const { m_old, m, alpha } = this.scan;
    const grew = isRescaled(this.scan, j);
    const left = grew && !rescale;
    setText(this.sign, left ? "✕ no × " : "× ");
    setText(this.alpha, number(alpha[j]));
    this.alpha.title = exact(alpha[j]);
    this.large.classList.toggle("flash-online-at-work", grew && phase === "rescale");
    this.large.classList.toggle("flash-online-left-out", left);
    const first = m_old[j] === -Infinity && m[j] > -Infinity;
    const still = first ? "nothing was summed before" : "m did not grow";
    setSentence(this.why, grew ? `alpha = exp(${number(m_old[j])} − ${inBrackets(m[j])})` : still);
    if (grew && phase === "rescale") motion.from(this.large, { transform: "scale(1.3)" });
  }

  /** At the end each term is divided by l. */
  #drawDivision(total) {
    setText(this.sign, "÷ ");
    setText(this.alpha, number(total));
    this.alpha.title = exact(total);
    this.large.classList.remove("flash-online-at-work", "flash-online-left-out");
    setSentence(this.why, total ? "each term is divided by l" : "every weight is 0");
  }

  #drawCells(j, phase, rescale) {
    const { m_old, m, l_old, l, l_wrong } = this.scan;
    const old = rescale ? l_old[j] : j ? l_wrong[j - 1] : 0;
    const total = phase === "rescale" ? undefined : (rescale ? l : l_wrong)[j];
    [m_old[j], m[j], old, total].forEach((value, k) => {
      setText(this.cells[k], value === undefined ? "…" : compact(value));
      this.cells[k].title = value === undefined ? "" : exact(value);
    });
  }

  /** The equation, with the current part highlighted. */
  #drawRule(phase, rescale) {
    const kind = `${phase} ${rescale}`;
    if (this.rule.dataset.kind === kind) return;
    this.rule.dataset.kind = kind;
    const lit = (at, ...parts) => h("span", { class: phase === at && "flash-online-lit" }, parts);
    const title = phase === "end" ? "|l|, what the terms are divided by" : "|alpha|, the rescale factor";
    this.title.replaceChildren(...formula(title));
    if (phase === "end") return this.rule.replaceChildren(...formula("weight = exp(|x| − |m|) / |l|"));
    const times = formula("|alpha| · ");
    const kept = lit("rescale", rescale ? times : h("s", {}, times), symbol("l_old"));
    this.rule.replaceChildren(symbol("l"), " = ", kept, " + ", lit("add", formula("exp(|x_j| − |m|)")));
  }
}

/** The relative error of l, as a number, and if nothing is rescaled also as a curve, which is otherwise flat. */
class ErrorCurve {
  /** @param {Scan} scan */
  constructor(scan) {
    this.scan = scan;
    this.peak = Math.max(...scan.error_wrong);
    this.path = svg("path");
    this.dot = div("flash-online-dot");
    this.after = h("span", {});
    this.error = h("span", { class: "flash-strong", "data-name": "error" });
    const top = h("span", { style: `bottom:${percent(ROOM)}` }, this.peak ? short(this.peak) : "");
    const box = { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" };
    const axis = div("flash-online-axis", h("span", { style: "bottom:0" }, "0"), top);
    const curve = div("flash-online-curve", axis, svg("svg", box, this.path), this.dot);
    const line = div("flash-online-line", this.after, " ", this.error);
    this.element = div("flash-online-error", line, curve);
  }

  /**
   * Draw the error as far as score j, -1 for the start.
   * @param {number} j
   * @param {boolean} rescale
   */
  draw(j, rescale) {
    const { N } = this.scan;
    const errors = rescale ? this.scan.error : this.scan.error_wrong;
    const up = (k) => (ROOM * errors[k]) / (this.peak || 1);
    const points = Array.from({ length: j + 1 }, (_, k) => [(k + 1) / N, up(k)]);
    this.path.setAttribute("d", `M0 100${points.map(([x, y]) => `L${100 * x} ${100 - 100 * y}`).join("")}`);
    const [across, height] = points.at(-1) ?? [0, 0];
    this.dot.style.setProperty("--across", across);
    this.dot.style.setProperty("--up", height);
    const error = j < 0 ? 0 : errors[j];
    const after = counted(j + 1, "score", "scores");
    setSentence(this.after, j < 0 ? "Relative error of l:" : `Relative error of l, after ${after}:`);
    setText(this.error, number(error));
    this.error.title = exact(error);
  }
}
