/** @import { Colours } from "../shared/colours.js" */
/** @import { Place, Result, State } from "./types.js" */
import { div, h, svg, symbol, typeset } from "../shared/elements.js";
import { short } from "../shared/number_text.js";
import { watchRoom } from "./axes.js";
import { drawMerges, edgesOf, factorsOf, placesOf } from "./merges.js";

const GUTTER = { wide: 146, narrow: 92 }; // px, of the names on the left
const NARROW = 480; // px, of the picture
const RIGHT = 14; // px, on the right
const READABLE = 44; // px, of a part with legible numbers
const SCORES = 34; // px, the height of the scores
const CELL = 12; // px, of a number of O_acc

/** The keys of one query, cut into parts; below each part its State, and the merges of the States. */
export class Parts {
  /** @type {Result} */
  sent;
  /** @type {State[]} */
  states;
  /** @type {Float64Array} */
  outline;
  /** @type {number} */
  room;
  /** @type {number} */
  gutter;
  /** @type {[left: number, right: number][]} */
  boxes;
  /** @type {Place[]} */
  at;
  /** @type {Record<string, number>} */
  rows;
  /** @type {SVGRectElement} */
  mark;
  /** @type {SVGCircleElement} */
  ring;
  /** @type {SVGGElement} */
  chosen;

  /**
   * moved: called with the node under the pointer, or null; pressed: called with a node that was clicked.
   * @param {(node: number | null) => void} moved
   * @param {(node: number) => void} pressed
   */
  constructor(moved, pressed) {
    this.svg = svg("svg", { role: "img" });
    this.names = div("flash-split-names");
    this.element = div("flash-split-picture", this.svg, this.names);
    this.node = 0;
    /** @type {Colours | null} */
    this.colour = null; // the scale of the theme
    this.resized = watchRoom(this.element, this, () => this.draw());
    this.svg.addEventListener("pointermove", (event) => moved(this.#under(event)));
    this.svg.addEventListener("pointerleave", () => moved(null));
    this.svg.addEventListener("click", (event) => {
      const node = this.#under(event);
      if (node !== null) pressed(node);
    });
  }

  /**
   * @param {Result} sent
   * @param {State[]} states
   * @param {Float64Array} outline
   */
  take(sent, states, outline) {
    this.sent = sent;
    this.states = states;
    this.outline = outline;
    this.draw();
  }

  draw() {
    if (!this.room || !this.sent) return; // not on the page yet
    const { ranges, setting, n, nodes, D } = this.sent;
    this.gutter = this.room < NARROW ? GUTTER.narrow : GUTTER.wide;
    const wide = this.room - this.gutter - RIGHT;
    const x = (key) => this.gutter + (wide * key) / setting.N_k;
    /** @type {[number, number][]} */
    const boxes = ranges.map(([begin, end]) => [x(begin), x(end)]);
    const readable = wide / n >= READABLE;
    const rows = this.#rows(readable, D);
    const middles = boxes.map(([left, right]) => (left + right) / 2);
    const step = setting.order === "row" ? 21 : n > 64 ? 15 : n > 12 ? 22 : 32;
    const at = placesOf(nodes, setting.order, middles, rows.end, step);
    const height = Math.max(...at.map(([, y]) => y)) + (setting.order === "row" ? 29 : 24);
    this.boxes = boxes;
    this.at = at;
    this.rows = rows;
    this.svg.setAttribute("viewBox", `0 0 ${this.room} ${height}`);
    this.svg.setAttribute("height", height);
    this.mark = svg("rect", { class: "flash-split-mark", y: 0, rx: 3, height: rows.end + 2 });
    this.ring = svg("circle", { class: "flash-split-ring" });
    this.chosen = svg("g", {});
    this.svg.replaceChildren(
      this.mark,
      ...this.#scores(x, wide, rows.scores),
      ...this.#boxes(rows.part),
      ...this.#numbers(rows, readable),
      ...drawMerges(nodes, at),
      this.chosen,
      this.#end(at[at.length - 1]),
      this.ring,
    );
    this.svg.setAttribute("aria-label", `${setting.N_k} keys in ${n} parts, and the merges of their States`);
    this.#name(rows, n);
    this.choose(this.node);
  }

  /** The heights at which the rows begin; if numbers would be illegible, l is a bar. */
  #rows(readable, D) {
    const sizes = { scores: SCORES, part: 22, m: readable ? 18 : 0, l: 18, weight: readable ? 34 : 28, O_acc: D * CELL + 2 };
    let y = 4;
    /** @type {Record<string, number>} */
    const rows = {};
    for (const [name, size] of Object.entries(sizes)) {
      if (size) rows[name] = y;
      y += size + (size ? 2 : 0);
    }
    rows.end = y + 2;
    return rows;
  }

  /** The outline of the scores, and m of each part and of all parts. */
  #scores(x, wide, top) {
    const { outline, states, sent } = this;
    const [most, least] = [Math.max(...outline), Math.min(...outline, 0)];
    const y = (score) => top + 4 + ((SCORES - 6) * (most - score)) / (most - least || 1);
    const bin = wide / outline.length;
    const line = [...outline].map((score, k) => `L${this.gutter + k * bin} ${y(score)}h${bin}`).join("");
    const bottom = top + SCORES;
    const area = svg("path", { class: "flash-split-scores", d: `M${this.gutter} ${bottom}${line}V${bottom}z` });
    const m = this.boxes.map(([left, right], k) => `M${left + 0.5} ${y(states[k].m)}H${right - 0.5}`).join("");
    const all = `M${this.gutter} ${y(states[states.length - 1].m)}H${x(sent.setting.N_k)}`;
    return [area, svg("path", { class: "flash-split-all", d: all }), svg("path", { class: "flash-split-m", d: m })];
  }

  /** The parts, numbered if there is room. */
  #boxes(top) {
    return this.boxes.flatMap(([left, right], k) => {
      const width = Math.max(right - left - 1, 0.5);
      const box = svg("rect", { class: "flash-split-box", "data-node": k, x: left, y: top, width, height: 20 });
      const fits = right - left > 9 * String(k).length + 4;
      return fits ? [box, this.#text((left + right) / 2, top + 14, String(k), "flash-split-index")] : [box];
    });
  }

  /** m and l, the final weight of the part, and its O_acc in colours, with numbers if there is room. */
  #numbers(rows, readable) {
    const { states } = this;
    const { m } = states[states.length - 1];
    const leaves = states.slice(0, this.boxes.length);
    const peak = Math.max(...leaves.flatMap(({ O_acc }) => [...O_acc].map(Math.abs)));
    const longest = Math.max(...leaves.map(({ l }) => l));
    return this.boxes.flatMap(([left, right], k) => {
      const state = leaves[k];
      const [middle, width] = [(left + right) / 2, Math.max(right - left - 1, 0.5)];
      const bar = (name, y, height, part) => {
        const size = Math.max(height * part, part > 0 ? 0.5 : 0);
        return svg("rect", { class: `flash-split-${name}`, x: left, y: y + height - size, width, height: size });
      };
      const weight = Math.exp(state.m - m);
      const cells = [...state.O_acc].map((value, row) => {
        const fill = this.colour?.css(value, peak) ?? "none";
        return svg("rect", { x: left, y: rows.O_acc + row * CELL, width, height: CELL - 1, style: `fill:${fill}` });
      });
      if (!readable) return [bar("l", rows.l, 18, state.l / longest), bar("weight", rows.weight, 28, weight), ...cells];
      const text = (y, value) => this.#text(middle, y, short(value), "flash-split-number");
      return [
        text(rows.m + 13, state.m),
        text(rows.l + 13, state.l),
        text(rows.weight + 13, weight),
        bar("weight", rows.weight + 18, 15, weight),
        ...cells,
        ...[...state.O_acc].map((value, row) => text(rows.O_acc + row * CELL + 9.5, value)),
      ];
    });
  }

  /**
   * The label of the last node.
   * @param {Place} place
   */
  #end([x, y]) {
    const anchor = x > this.room - 90 ? "end" : "middle";
    const below = this.sent.setting.order === "row" ? 26 : 19; // the factors are above it
    return this.#text(anchor === "end" ? x + 4 : x, y + below, "all keys: O, lse", "flash-split-root", anchor);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {string} text
   * @param {string} name
   * @param {string} [anchor]
   */
  #text(x, y, text, name, anchor = "middle") {
    return svg("text", { class: `flash-split-text ${name}`, x, y, "text-anchor": anchor }, text);
  }

  /** The names of the rows, on the left. */
  #name(rows, n) {
    const name = (row, at, ...nodes) => h("span", { style: `top:${rows[row] + at}px` }, nodes);
    const wide = this.gutter === GUTTER.wide; // then there is room to explain the numbers
    const { order } = this.sent.setting;
    this.names.replaceChildren(
      name("scores", 2, wide ? "scores of the keys;" : "scores,"),
      name("scores", 18, typeset(wide ? "max m_s; of all: m" : "their m_s")),
      name("part", 1, "part s"),
      ...(rows.m ? [name("m", 0, typeset(wide ? "m_s, its largest" : "m_s"))] : []),
      name("l", 0, typeset(wide ? "l_s, sum of exp" : "l_s")),
      ...(wide
        ? [name("weight", rows.m ? 0 : -3, typeset("alpha_s = exp(m_s − m)"))]
        : [name("weight", -3, typeset("alpha_s =")), name("weight", 13, typeset("exp(m_s − m)"))]),
      ...(wide ? [name("weight", rows.m ? 17 : 12, typeset("alpha_s as bars"))] : []),
      ...(wide
        ? [name("O_acc", 9, typeset("O_acc, sum of")), name("O_acc", 24, typeset("exp times V"))]
        : [name("O_acc", 18, symbol("O_acc"))]),
      ...(n > 1
        ? [name("end", 6, order === "row" ? "merged in a row" : "merged as a tree"), name("end", 22, "two at a time")]
        : []),
    );
  }

  /**
   * Mark a node: the keys that it covers, and its place.
   * @param {number} node
   */
  choose(node) {
    this.node = node;
    if (!this.boxes) return;
    const [first, end] = this.sent.nodes.spans[node];
    const [left, right] = [this.boxes[first][0], this.boxes[end - 1][1]];
    Object.entries({ x: left - 2, width: right - left + 3 }).forEach(([name, value]) => this.mark.setAttribute(name, value));
    const [x, y] = this.at[node];
    const r = node < this.boxes.length ? 0 : 7;
    Object.entries({ cx: x, cy: y, r }).forEach(([name, value]) => this.ring.setAttribute(name, value));
    this.#drawChosen(node);
  }

  /**
   * The edges of the chosen merge, with their factors; nothing for a part.
   * @param {number} node
   */
  #drawChosen(node) {
    const { nodes, setting } = this.sent;
    if (node < this.boxes.length) return this.chosen.replaceChildren();
    const edges = edgesOf(nodes, this.at, node).map((d) => svg("path", { class: "flash-split-edge flash-split-at", d }));
    const factors = factorsOf(nodes, setting.order, this.at, node, this.states[node].alphas);
    const texts = factors.map(([x, y, text, anchor]) => this.#text(x, y, text, "flash-split-factor", anchor));
    this.chosen.replaceChildren(...edges, ...texts);
  }

  /** The node under the pointer: a part, or the nearest merge; null outside. */
  #under(event) {
    if (!this.boxes) return null;
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (x < this.gutter || x > this.room - RIGHT) return null;
    if (y < this.rows.end + 8 || this.boxes.length === 1) return this.boxes.findIndex(([, right]) => x <= right);
    const far = this.at.map(([left, top]) => Math.hypot(left - x, top - y));
    const near = far.reduce((best, distance, k) => (k >= this.boxes.length && distance < far[best] ? k : best), far.length - 1);
    return far[near] < 40 ? near : null;
  }
}
