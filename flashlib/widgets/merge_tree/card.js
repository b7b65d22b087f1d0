// A node of the tree: a card with its State, and the edges from its children with their factors.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Node as Sent, Numbers } from "./types.js" */
import { h, setText, svg, symbol } from "../shared/elements.js";
import { exact, number, short } from "../shared/number_text.js";

const SINGLE = ["m", "l"]; // numbers of a State; the others are vectors of d
const LABEL = 16; // px, of alpha, below a card

/**
 * @param {Numbers} state
 * @param {string} name
 * @returns {ArrayLike<number>}
 */
export const valuesOf = (state, name) => (SINGLE.includes(name) ? [state[name]] : state[name]);

/**
 * A number, or several, with the full values under the pointer.
 * @param {HTMLElement} element
 * @param {ArrayLike<number>} values
 * @param {(x: number) => string} [written]
 */
export function show(element, values, written = number) {
  setText(element, Array.from(values, written).join(", "));
  element.title = Array.from(values, exact).join(", ");
}

/**
 * A number in little room: 0.25, −12.3, 1.
 * @param {number} x
 */
export const brief = (x) => (Number.isInteger(x) ? number(x) : short(x));

/** A line from (x, y) down to the height `bend`, over to toX, and down to toY. */
const curve = (x, y, bend, toX, toY) =>
  `M${x} ${y}V${bend}C${x} ${toY - 1} ${toX} ${bend} ${toX} ${Math.max(bend, toY - 3)}V${toY}`;

export class Card {
  /** @type {Numbers} */
  state;
  /** @type {boolean} */
  isLeaf;

  /**
   * @param {number} k
   * @param {number} d
   * @param {{ pick: (k: number) => void, look: (k: number | null) => void }} heard
   */
  constructor(k, d, { pick, look }) {
    const numbers = (name) => {
      const count = SINGLE.includes(name) ? 1 : d;
      return Array.from({ length: count }, () => h("span", { class: "flash-merge-number", "data-name": name }));
    };
    this.numbers = Object.fromEntries(["m", "l", "O_acc", "O", "plain"].map((name) => [name, numbers(name)]));
    const vector = (name, label) =>
      h("span", { class: `flash-merge-line flash-merge-line-${name}` }, label, this.numbers[name]);
    const single = (name) => h("span", {}, symbol(name), this.numbers[name]);
    this.name = h("span", { class: "flash-merge-name" });
    this.strip = svg("path", {});
    this.element = h(
      "button",
      {
        type: "button",
        class: "flash-merge-card",
        "data-node": k,
        onclick: () => pick(k),
        onfocus: () => look(k),
        onblur: () => look(null),
      },
      this.name,
      svg("svg", { class: "flash-merge-strip", "aria-hidden": "true", preserveAspectRatio: "none" }, this.strip),
      h("span", { class: "flash-merge-singles" }, SINGLE.map(single)),
      vector("O_acc", symbol("O_acc")),
      vector("O", symbol("O")),
      vector("plain", h("span", { class: "flash-merge-mean" }, "mean")),
    );
    this.alphas = ["a", "b"].map((side) => h("span", { class: "flash-merge-alpha", "data-name": side }));
    this.edges = ["a", "b"].map(() => svg("path", {}));
  }

  /**
   * @param {Sent} node
   * @param {Numbers} state
   * @param {number} N
   * @param {string} kind
   */
  draw([name, ranges, children], state, N, kind) {
    setText(this.name, name);
    this.strip.ownerSVGElement?.setAttribute("viewBox", `0 0 ${N} 2`);
    this.strip.setAttribute("d", ranges.map(([start, stop]) => `M${start} 1H${stop}`).join(""));
    this.state = state;
    this.isLeaf = !children.length;
    this.element.dataset.kind = kind;
    this.element.classList.toggle("flash-merge-empty", state.m === -Infinity);
    this.edges.forEach((edge, k) => {
      const alpha = this.isLeaf ? 0 : state.alphas[k]; // NaN at a leaf
      edge.setAttribute("stroke-width", 1 + 3 * alpha);
      edge.classList.toggle("flash-merge-nothing", !this.isLeaf && alpha === 0);
      this.alphas[k].hidden = this.isLeaf;
      this.alphas[k].title = `alpha_${"ab"[k]} = ${exact(alpha)}`;
      this.alphas[k].classList.toggle("flash-strong", alpha < 1);
    });
  }

  /** Write the numbers, in columns of this many px. */
  write(written, column) {
    for (const [name, elements] of Object.entries(this.numbers))
      elements.forEach((element, k) => show(element, [valuesOf(this.state, name)[k]], written));
    this.alphas.forEach((alpha, k) => {
      const text = number(this.state.alphas[k]);
      const fits = 20 + 8 * text.length < column;
      setText(alpha, `× ${fits ? text : brief(this.state.alphas[k])}`);
    });
  }

  /** Place the card at (x, y), with an edge from each of the points above it. */
  place([x, y], { width, height, gap }, from) {
    const [left, top] = [`${x - width / 2}px`, `${y}px`];
    Object.assign(this.element.style, { left, top, width: `${width}px`, height: `${height}px` });
    const turned = from.length > 1 && from[0][0] > from[1][0];
    this.edges.forEach((edge, k) => {
      if (!from[k]) return edge.setAttribute("d", "");
      const to = this.isLeaf ? x : x + ((k === 0) === turned ? width / 4 : -width / 4);
      const bend = this.isLeaf ? from[k][1] : y - gap + LABEL;
      edge.setAttribute("d", curve(...from[k], bend, to, y));
      Object.assign(this.alphas[k].style, { left: `${from[k][0]}px`, top: `${from[k][1] + LABEL / 2}px` });
    });
  }

  hide(hidden) {
    for (const element of [this.element, ...this.alphas]) element.hidden = hidden;
    if (hidden) this.edges.forEach((edge) => edge.setAttribute("d", ""));
  }

  /**
   * Move the card down from its children.
   * @param {Motion} motion
   */
  come(motion) {
    motion.from(this.element, { opacity: 0, transform: "translateY(-24px)" });
    for (const element of [...this.alphas, ...this.edges]) motion.from(element, { opacity: 0 });
  }
}
