// MergeTree: the parts of a row, each with its State, merged in any order, as Python computed it.

/** @import { Numbers, Result, Traits } from "./types.js" */
import { colourScale } from "../shared/colours.js";
import { toggle } from "../shared/controls.js";
import { div, h, headline, note } from "../shared/elements.js";
import { float64 } from "../shared/number_text.js";
import { Widget } from "../shared/widget.js";
import { Account, Comparison, legend, Log } from "./panels.js";
import { Tree } from "./tree.js";

const ORDERS = ["left to right", "balanced", "random order"];
const HINT = "Pick a node with a thick border, then another: they are merged.";
const DONE = "One root is left. Try another order, or cut elsewhere.";

/**
 * The numbers of a node, as packed by Python, by name.
 * @param {Float64Array} numbers
 * @param {number} offset
 * @param {number} d
 */
function unpack(numbers, offset, d) {
  const at = (from, count) => numbers.subarray(offset + from, offset + from + count);
  const [m, l] = at(0, 2);
  const [O_acc, O, plain] = [0, 1, 2].map((k) => at(2 + k * d, d));
  return { m, l, O_acc, O, plain, alphas: at(2 + 3 * d, 2) };
}

/** @extends {Widget<Traits>} */
class MergeTree extends Widget {
  /** @type {Result} */
  sent;
  /** @type {Numbers[]} */
  states;
  /** @type {Numbers} */
  whole;
  /** @type {Tree} */
  tree;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "merge", "Merge the States of the parts of a row");
    const button = (name, onclick) =>
      h("button", { type: "button", class: "flash-button flash-text", "data-name": name, onclick }, name);
    const group = (label, ...children) =>
      h("div", { class: "flash-merge-buttons", role: "group", "aria-label": label }, children);
    this.undo = button("undo", () => this.#move(this.asked.slice(0, -1)));
    this.again = button("start over", () => this.#move([]));
    this.plain = toggle("plain mean of the outputs", (on) => this.#showPlain(on));
    const settings = this.settings(
      group("merge all", note("merge all:"), ...ORDERS.map((name) => button(name, () => this.ask({ order: name })))),
      button("add the identity", () => this.#move([...this.asked, []])),
      group("go back", this.undo, this.again),
    );
    this.controls = div("flash-controls", settings, this.plain.element);
    /** @type {number | null} */
    this.picked = null;
    /** @type {number | null} */
    this.looked = null;
    this.comparison = new Comparison();
    this.account = new Account();
    this.log = new Log();
    this.hear("plain_mean", () => this.sent && this.draw());
    this.start("result", { Escape: () => this.pick(null) });
  }

  get moves() {
    return this.sent.setting.moves;
  }

  /** The requested moves: Python may still be working on the last ones. */
  get asked() {
    return this.model.get("moves");
  }

  /**
   * Request different moves; requesting the same ones again would bring no answer.
   * @param {number[][]} moves
   */
  #move(moves) {
    if (moves.length !== this.asked.length) this.ask({ moves });
  }

  #cut(at) {
    const cuts = this.model.get("cuts");
    const others = cuts.filter((cut) => cut !== at);
    this.ask({ cuts: others.length < cuts.length ? others : [...cuts, at].sort((a, b) => a - b) });
  }

  /**
   * Pick a node without a parent, or none; if one is already picked, the two are merged.
   * @param {number | null} k
   */
  pick(k) {
    this.looked = k;
    const { roots } = this.sent;
    if (this.off || roots.length < 2 || (k !== null && !roots.includes(k))) return this.#showPicked();
    if (k !== null && this.picked !== null && k !== this.picked) {
      this.ask({ moves: [...this.asked, [this.picked, k]] });
      return;
    }
    this.picked = k === this.picked ? null : k;
    this.#showPicked();
    this.spoken.say(this.account.hint.textContent ?? "");
  }

  /**
   * Describe a node while it is looked at, and otherwise the last move.
   * @param {number | null} k
   */
  #look(k) {
    this.looked = k;
    this.#showPicked();
  }

  /** Python has already computed it; it only takes note. */
  #showPlain(on) {
    this.model.set("plain_mean", on);
    if (!this.off) this.model.save_changes();
  }

  /** @param {Result} sent */
  load(sent) {
    const numbers = float64(sent.buffer);
    const { N, d, nodes } = sent;
    const state = (k) => unpack(numbers, N * (1 + d) + k * (4 + 3 * d), d);
    const first = !this.sent;
    this.sent = sent;
    this.picked = this.looked = null;
    this.states = nodes.map((_, k) => state(k));
    this.whole = state(nodes.length);
    if (first) {
      this.#build(numbers);
      this.paint();
    }
    this.draw();
    if (!first) this.spoken.say(sent.words);
  }

  /** @param {Float64Array} numbers */
  #build(numbers) {
    this.tree = new Tree(this.sent, numbers, {
      cut: (at) => this.#cut(at),
      pick: (k) => this.pick(k),
      look: (k) => this.#look(k),
    });
    this.stops.push(() => this.tree.resized.disconnect());
    const tree = h(
      "section",
      { class: "flash-panel flash-merge-tree", "aria-label": "the row, its parts and the tree" },
      this.tree.element,
      legend(),
    );
    const beside = [this.comparison, this.account, this.log].map(({ element }) => element);
    this.root.prepend(headline("A row in parts: does the order of merging matter?").element);
    this.root.append(this.controls, div("flash-merge-body", tree, div("flash-merge-beside", beside)));
  }

  paint() {
    if (this.root.isConnected) this.tree.row.paint(colourScale(this.root));
  }

  draw() {
    const plain = this.model.get("plain_mean");
    this.plain.show(plain);
    this.root.classList.toggle("flash-merge-plain", plain);
    this.root.classList.toggle("flash-merge-begun", this.moves.length > 0);
    // Not "false": if all settings were off, these would be announced as on.
    for (const button of [this.undo, this.again]) button.ariaDisabled = this.moves.length ? null : "true";
    this.tree.draw(this.sent, this.states, plain);
    this.comparison.draw(this.sent, this.states[this.states.length - 1], this.whole);
    this.log.draw(this.sent);
    this.#showPicked();
  }

  switched() {
    if (this.sent) this.#showPicked();
  }

  #showPicked() {
    const { roots, nodes, accounts, words } = this.sent;
    const { picked, looked } = this;
    this.tree.showPicked(picked);
    const wanted = picked !== null && `${nodes[picked][0]} is picked. Pick the one to merge it with.`;
    const asked = roots.length > 1 ? HINT : nodes.length > 1 ? DONE : "";
    const hint = wanted || (this.off ? "" : asked);
    const newest = nodes.length - 1;
    if (looked === null || (looked === newest && this.moves.length)) this.account.draw("The last move", words, hint);
    else this.account.draw(`A node: ${nodes[looked][0]}`, accounts[looked], hint);
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new MergeTree(context);
    return () => lab.stop();
  },
};
