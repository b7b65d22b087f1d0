// The tree that grows below the row of MergeTree. Python chooses columns and levels, this page the pixels.

/** @import { Node as Sent, Numbers, Result } from "./types.js" */
import { div, svg } from "../shared/elements.js";
import { Motion, motionTime } from "../shared/motion.js";
import { number } from "../shared/number_text.js";
import { brief, Card } from "./card.js";
import { Row } from "./row.js";

const LEAST = 58; // px, of a column
const FROM_ROW = 20; // px, between the row and the leaves
const HIGHEST = 520; // px, of cards with all their numbers if each merge had its own level

/** The size of the cards, and how much fits on them: "full", "wide" or "narrow". */
function sizeOf(column, leaves, d, plain) {
  const width = Math.min(176, column - 4);
  const full = { kind: "full", width, height: 54 + 16 * (plain ? 3 : 2) * Math.ceil(d / 2), gap: 26 };
  if (column >= (d > 1 ? 132 : 110) && leaves * (full.height + full.gap) <= HIGHEST) return full;
  if (column >= 118) return { kind: "wide", width, height: 44, gap: 24 };
  return { kind: "narrow", width, height: 44, gap: 20 };
}

/** The row with its cuts, and a card for each node. `cut` is called with a place, `pick` and `look` with a node. */
export class Tree {
  /** @type {Result} */
  sent;
  /** @type {boolean} */
  plain;
  /** @type {number | undefined} */
  room;

  /**
   * @param {Result} sent
   * @param {Float64Array} numbers
   * @param {{ cut: (at: number) => void, pick: (k: number) => void, look: (k: number | null) => void }} heard
   */
  constructor({ N, d }, numbers, { cut, pick, look }) {
    this.d = d;
    this.heard = { pick, look };
    /** @type {Card[]} */
    this.cards = [];
    this.motion = new Motion();
    this.row = new Row(N, d, numbers, cut);
    this.edges = svg("svg", { class: "flash-merge-edges", "aria-hidden": "true" });
    this.stage = div("flash-merge-stage", this.edges, this.row.element);
    this.element = div("flash-merge-scroller", this.stage);
    this.resized = new ResizeObserver(() => this.element.clientWidth === this.room || this.#measure());
    this.resized.observe(this.element);
  }

  /**
   * @param {Result} sent
   * @param {Numbers[]} states
   * @param {boolean} plain
   */
  draw(sent, states, plain) {
    const before = this.sent;
    this.sent = sent;
    this.plain = plain;
    const { nodes, roots, setting } = sent;
    this.row.draw(setting.cuts);
    while (this.cards.length < nodes.length) this.#add(this.cards.length);
    this.cards.forEach((card, k) => {
      card.hide(k >= nodes.length);
      if (k >= nodes.length) return;
      const kind = !roots.includes(k) ? "merged" : roots.length > 1 ? "free" : "root";
      card.draw(nodes[k], states[k], sent.N, kind);
      card.element.classList.toggle("flash-merge-newest", setting.moves.length > 0 && k === nodes.length - 1);
    });
    if (this.room) this.place();
    else this.#measure();
    if (before && before !== sent) this.#come(before.nodes.length);
  }

  #come(from) {
    this.motion.begin(motionTime(1));
    for (const card of this.cards.slice(from, this.sent.nodes.length)) card.come(this.motion);
  }

  #add(k) {
    const card = new Card(k, this.d, this.heard);
    this.cards.push(card);
    this.edges.append(...card.edges);
    this.stage.append(...card.alphas, card.element);
  }

  /**
   * Only a node without a parent can be picked.
   * @param {number | null} picked
   */
  showPicked(picked) {
    this.stage.classList.toggle("flash-merge-picking", picked !== null);
    this.cards.forEach(({ element }, k) => {
      if (this.sent.roots.includes(k)) element.setAttribute("aria-pressed", k === picked);
      else element.removeAttribute("aria-pressed");
    });
  }

  /** Take the available width: queried only when it may have changed, since the query forces a layout. */
  #measure() {
    this.room = this.element.clientWidth;
    this.place();
  }

  place() {
    const { room } = this;
    if (!room || !this.sent) return; // not on the page yet
    const { nodes, leaves, setting } = this.sent;
    const stage = Math.max(room, leaves * LEAST, this.row.least);
    const size = sizeOf(stage / leaves, leaves, this.d, this.plain);
    this.stage.dataset.size = size.kind;
    const parts = (stage * (setting.cuts.length + 1)) / leaves;
    const rowEnd = this.row.lay(Math.min(stage, Math.max(parts, this.row.least)));
    /**
     * @param {Sent} node
     * @returns {[x: number, y: number]}
     */
    const at = ([, , , [column, level]]) => [
      ((column + 0.5) * stage) / leaves,
      rowEnd + FROM_ROW + level * (size.height + size.gap),
    ];
    nodes.forEach((node, k) => {
      const [, ranges, children] = node;
      const above = children.length
        ? children.map((child) => at(nodes[child])).map(([x, y]) => [x, y + size.height])
        : ranges.map((range) => [this.row.middle(range), rowEnd + 2]);
      this.cards[k].write(size.kind === "narrow" ? brief : number, stage / leaves);
      this.cards[k].place(at(node), size, above);
    });
    const bottom = Math.max(...nodes.map((node) => at(node)[1])) + size.height + 2;
    Object.assign(this.stage.style, { width: `${stage}px`, height: `${bottom}px` });
    this.#letScroll(stage > room);
  }

  /** Make scrolling parts reachable by keyboard. */
  #letScroll(scrolls) {
    const { element } = this;
    if (scrolls) Object.assign(element, { tabIndex: 0, role: "group", ariaLabel: "the row and the tree" });
    else for (const name of ["tabindex", "role", "aria-label"]) element.removeAttribute(name);
  }
}
