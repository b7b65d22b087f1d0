// The charts of OnlineSoftmaxLab, with a column for each score. `scan` is what Python computed: arrays by name, with
// one number for each score, and `terms`. j is the current score; phase is "rescale", then "add" for each score, and
// "end" after the last.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Phase, Scan } from "./types.js" */
import { div, h, setText, symbol } from "../shared/elements.js";
import { exact, number, short } from "../shared/number_text.js";

export const ROOM = 0.92; // of the height of a chart; the rest stays free

/** @param {number} part */
export const percent = (part) => `${(100 * part).toFixed(2)}%`;

/**
 * A number in at most eight characters.
 * @param {number} x
 */
export const compact = (x) => (number(x).length > 8 ? short(x) : number(x));

/** @param {number} alpha */
export const factor = (alpha) => `× ${compact(alpha)}`;

/**
 * Give an element a size from 0 to 1, as its "width" or "height"; at 0 neither it nor its outline is shown.
 * @param {HTMLElement} element
 * @param {"width" | "height"} side
 * @param {number} part
 */
export function measure(element, side, part) {
  element.style[side] = percent(part);
  element.hidden = !parseFloat(percent(part));
}

/**
 * Give an element a look, such as { width: "20%" }; if it had a different one, it moves from there.
 * @param {HTMLElement} element
 * @param {Record<string, string>} look
 * @param {Motion} motion
 */
export function become(element, look, motion) {
  const names = Object.keys(look);
  const before = names.map((name) => element.style[name]);
  Object.assign(element.style, look);
  const moved = names.flatMap((name, k) =>
    before[k] && before[k] !== element.style[name] ? [[name, before[k]]] : [],
  );
  if (moved.length) motion.from(element, Object.fromEntries(moved));
}

/** A column for each score: an area for the drawing, and words below. On the left the axis, on the right a margin. */
class Chart {
  /**
   * @param {string} name
   * @param {number} N
   * @param {[number, string][]} marks
   * @param {(column: { element: HTMLElement, area: HTMLElement, value: HTMLElement }, k: number) => void} draw
   */
  constructor(name, N, marks, draw) {
    this.columns = Array.from({ length: N }, (_, k) => {
      const area = div("flash-online-area");
      const value = h("span", { class: "flash-online-value" });
      const column = { element: div("flash-online-column", area, value), area, value };
      draw(column, k);
      return column;
    });
    const axis = marks.map(([at, text]) => h("span", { style: `bottom:${percent(at)}` }, text));
    this.field = div("flash-online-columns", this.columns.map(({ element }) => element));
    this.margin = div("flash-online-margin");
    const parts = [div("flash-online-axis", axis), this.field, this.margin];
    this.element = h("div", { class: "flash-online-chart", role: "img", "data-name": name }, parts);
  }

  /**
   * @param {number} j
   * @param {Phase} phase
   * @param {string} label
   */
  show(j, phase, label) {
    this.columns.forEach(({ element }, k) => {
      const state = k > j ? "pending" : k === j && phase !== "end" ? "now" : "seen";
      if (element.dataset.state !== state) element.dataset.state = state;
    });
    this.element.setAttribute("aria-label", label);
  }
}

/**
 * The heights of scores, 0 to 1, and of zero. If zero is far from all of them it is left out: `cut` says so.
 * @param {Float64Array} x
 */
function heightsOf(x) {
  const finite = [...x].filter(Number.isFinite);
  const size = Math.max(...finite.map(Math.abs)) || 1; // divided by it, differences stay finite
  const [low, high] = [Math.min(...finite) / size, Math.max(...finite) / size];
  const cut = low < high && Math.min(Math.abs(low), Math.abs(high)) > 3 * (high - low) && low * high > 0;
  const below = cut ? (high - low) / 4 : 0; // so that the smallest also has a bar
  let from = cut ? low - (low > 0 ? below : 0) : Math.min(0, low);
  const to = cut ? high + (low < 0 ? below : 0) : Math.max(0, high);
  if (from === to) from = -1;
  const place = (value) => (1 - ROOM) / 2 + (ROOM * (value / size - from)) / (to - from);
  const zero = cut ? Number(high < 0) : place(0);
  /** @type {[number, string][]} */
  const ends = [high, low].map((value) => [place(value * size), short(value * size)]);
  /** @type {[number, string][]} */
  const marks = [[zero, cut ? `${zero ? "↑" : "↓"} 0` : "0"]];
  for (const end of ends) if (marks.every(([at]) => Math.abs(at - end[0]) > 0.14)) marks.push(end);
  return { place, zero, cut, marks: finite.length ? marks : [] };
}

/** The scores, as bars from zero, and m, a line that rises in steps. */
export class Scores extends Chart {
  /** @param {Scan} scan */
  constructor({ N, x, m }) {
    const { place, zero, cut, marks } = heightsOf(x);
    super("scores", N, marks, (column, k) => {
      if (x[k] === -Infinity) column.element.classList.add("flash-online-masked");
      else column.area.append(Scores.#bar(zero, place(x[k])));
      if (m[k] > -Infinity) {
        // a line of 2px along the top and, where m grew, up the left side
        const from = k && m[k - 1] > -Infinity ? place(m[k - 1]) : place(m[k]);
        const style = `bottom:${percent(from)};height:calc(${percent(place(m[k]) - from)} + 2px)`;
        const grew = from < place(m[k]) ? " flash-online-grew" : "";
        column.area.append(h("i", { class: `flash-online-m${grew}`, style }));
      }
      column.value.textContent = short(x[k]);
      column.element.title = `score ${k + 1}: ${exact(x[k])}`;
      column.element.append(h("span", { class: "flash-online-index" }, symbol(`x_${k + 1}`)));
    });
    if (marks.length) {
      const name = `flash-online-zero${cut ? " flash-online-cut" : ""}`;
      this.field.append(h("i", { class: name, style: `--up:${zero}` }));
    }
    this.N = N;
    this.m = m;
    this.place = place;
    this.cut = cut; // whether zero is left out
    this.tag = this.margin.appendChild(h("span", { class: "flash-strong" }));
  }

  static #bar(zero, at) {
    const negative = at < zero ? " flash-online-negative" : "";
    const style = `bottom:${percent(Math.min(zero, at))};height:${percent(Math.abs(at - zero))}`;
    return h("i", { class: `flash-online-bar${negative}`, style });
  }

  /**
   * @param {number} j
   * @param {Phase} phase
   * @param {Motion} motion
   */
  draw(j, phase, motion) {
    const m = this.m[j];
    this.show(j, phase, `the scores; after ${j + 1} of ${this.N}, m is ${number(m)}`);
    become(this.tag, { bottom: percent(m > -Infinity ? this.place(m) : 0) }, motion);
    if (this.tag.dataset.m !== String(m)) this.tag.replaceChildren(symbol("m"), ` = ${compact(m)}`);
    this.tag.dataset.m = String(m);
  }
}

/** What each score contributes to l; at the end, the weights. */
export class Terms extends Chart {
  /** @param {Scan} scan */
  constructor(scan) {
    /** @type {[number, string][]} */
    const marks = [0, 0.5, 1].map((term) => [ROOM * term, String(term)]);
    const parts = Array.from({ length: scan.N }, () =>
      ["bar", "excess", "ghost"].map((name) => h("i", { class: `flash-online-${name}` })),
    );
    super("terms", scan.N, marks, ({ area }, k) => area.append(...parts[k]));
    this.parts = parts; // of each column
    this.scan = scan;
    this.tag = this.field.appendChild(h("span", { class: "flash-online-factor flash-strong" }));
  }

  /** For score k the right value, the one shown, and the one to compare it with. */
  #values(k, j, phase, rescale) {
    const { N, p, terms, weight, weight_wrong } = this.scan;
    if (phase === "end") return [weight[k], rescale ? weight[k] : weight_wrong[k], weight[k]];
    if (k > j || (k === j && phase === "rescale")) return [0, 0, 0];
    const right = terms[j * N + k];
    if (!rescale) return [right, p[k], 0];
    return [right, right, phase === "rescale" ? terms[(j - 1) * N + k] : 0];
  }

  /**
   * @param {number} j
   * @param {Phase} phase
   * @param {boolean} rescale
   * @param {Motion} motion
   */
  draw(j, phase, rescale, motion) {
    const { N, alpha } = this.scan;
    this.show(j, phase, `${phase === "end" ? "the weights" : "the terms of l"}, ${j + 1} of ${N} scores`);
    this.columns.forEach((column, k) => {
      const [right, shown, compared] = this.#values(k, j, phase, rescale);
      const [bar, excess, ghost] = this.parts[k];
      const there = phase === "end" || k < j || (k === j && phase === "add");
      become(bar, { height: percent(ROOM * Math.min(right, shown)) }, motion);
      const tooMuch = Math.max(0, shown - right);
      become(excess, { bottom: percent(ROOM * right), height: percent(ROOM * tooMuch) }, motion);
      measure(ghost, "height", compared > shown ? ROOM * compared : 0);
      setText(column.value, there ? short(shown) : "");
      column.element.title = there ? `score ${k + 1}: ${exact(shown)}` : "";
    });
    const shrinks = rescale && phase === "rescale" && isRescaled(this.scan, j);
    setText(this.tag, shrinks ? factor(alpha[j]) : "");
    this.tag.style.left = percent(j / N); // from here on the chart is then empty
  }
}

/**
 * Whether something was summed before score j, and the maximum grows there.
 * @param {Scan} scan
 * @param {number} j
 */
export const isRescaled = ({ m_old, m }, j) => m_old[j] > -Infinity && m[j] > m_old[j];

/**
 * The most instructive position to open at: the first rescale, where all terms shrink; else the end, with the weights.
 * @param {Scan} scan
 */
export function openingOf(scan) {
  const j = Array.from({ length: scan.N }, (_, j) => j).find((j) => isRescaled(scan, j));
  return j === undefined ? 2 * scan.N : 2 * j;
}
