// MergeTree: the parts of a row, each with its State, merged in any order, as Python computed it.

const ORDERS = ["left to right", "balanced", "random order"];
const COMPARED = ["m", "l", "O", "plain"];
const HINT = "Pick a node with a thick border, then another: they are merged.";

/** The numbers of a node, as Python packed them, by name. */
function unpack(numbers, offset, d) {
  const at = (from, count) => numbers.subarray(offset + from, offset + from + count);
  const [m, l] = at(0, 2);
  const [O_acc, O, plain] = [0, 1, 2].map((k) => at(2 + k * d, d));
  return { m, l, O_acc, O, plain, alphas: at(2 + 3 * d, 2) };
}

function inWords(difference, wrong) {
  if (difference === 0) return "equal to the last bit";
  return wrong ? `wrong by ${number(difference)}` : `${number(difference)}, rounding`;
}

const headings = (names) =>
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      names.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {}))),
    ),
  );

function legend() {
  const key = (name, words) => h("span", {}, h("i", { class: `flash-merge-key flash-merge-key-${name}` }), words);
  return div(
    "flash-legend flash-note",
    key("joined", "cut here"),
    key("cut", "join here"),
    key("strip", "the scores that a node covers"),
    key("free", "no parent yet: can be picked"),
    key("empty", "the identity: no scores, or only −∞"),
    h("span", {}, h("b", {}, "× alpha"), "alpha = exp(m of the child − m): its l and O_acc are multiplied by it"),
    h(
      "span",
      { class: "flash-merge-key-plain" },
      h("b", {}, "mean"),
      "(O_a + O_b) / 2, the plain mean of two outputs: wrong",
    ),
  );
}

class MergeTree extends Widget {
  constructor(context) {
    super(context, "merge", "Merge the States of the parts of a row");
    const button = (name, onclick) =>
      h("button", { type: "button", class: "flash-merge-button", "data-name": name, onclick }, name);
    const group = (label, ...children) =>
      h("div", { class: "flash-merge-buttons", role: "group", "aria-label": label }, children);
    this.undo = button("undo", () => this.#move(this.moves.slice(0, -1)));
    this.again = button("start over", () => this.#move([]));
    this.plain = toggle("plain mean of the outputs", (on) => this.#showPlain(on));
    this.controls = this.settings(
      group("merge all", note("merge all:"), ...ORDERS.map((name) => button(name, () => this.#order(name)))),
      button("add the identity", () => this.#move([...this.moves, []])),
      group("go back", this.undo, this.again),
      this.plain.element,
    );
    this.words = h("p", { class: "flash-merge-words" });
    this.hint = note();
    this.hear("plain_mean", () => this.draw());
    this.start("result", { Escape: () => this.pick(null) });
  }

  get moves() {
    return this.sent.setting.moves;
  }

  /** Ask for other moves; asking for those already shown would bring no answer. */
  #move(moves) {
    if (moves.length !== this.moves.length) this.ask({ moves });
  }

  #order(order) {
    if (order !== this.sent.setting.order) this.ask({ order });
  }

  #cut(at) {
    if (isSaved()) return;
    const cuts = this.model.get("cuts"); // those asked for: Python may still be at the last ones
    const others = cuts.filter((cut) => cut !== at);
    this.ask({ cuts: others.length < cuts.length ? others : [...cuts, at].sort((a, b) => a - b) });
  }

  /** Pick a node without a parent, or none; where one is picked already, the two are merged. */
  pick(k) {
    if (isSaved() || (k !== null && !this.sent.roots.includes(k)) || this.sent.roots.length < 2) return;
    if (k !== null && this.picked !== null && k !== this.picked) {
      this.ask({ moves: [...this.moves, [this.picked, k]] });
      return;
    }
    this.picked = k === this.picked ? null : k;
    this.#showPicked();
    this.spoken.say(this.hint.textContent);
  }

  /** Python has computed it already; it is only told. */
  #showPlain(on) {
    this.model.set("plain_mean", on);
    this.model.save_changes();
  }

  load(sent) {
    const { buffer, byteOffset, byteLength } = sent.buffer;
    const numbers = new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength)); // aligned to 8 bytes
    const { N, d, nodes } = sent;
    const state = (k) => unpack(numbers, N * (1 + d) + k * (4 + 3 * d), d);
    const first = !this.sent;
    Object.assign(this, { sent, picked: null });
    this.states = nodes.map((_, k) => state(k));
    this.whole = state(nodes.length);
    this.tried = sent.tried.map((_, k) => state(nodes.length + 1 + k));
    if (first) this.#build(numbers);
    this.draw();
    if (!first) this.spoken.say(sent.words);
  }

  #build(numbers) {
    this.tree = new Tree(this.sent, numbers, { cut: (at) => this.#cut(at), pick: (k) => this.pick(k) });
    this.stops.push(() => this.tree.resized.disconnect());
    this.compared = COMPARED.map((name) => this.#compared(name));
    const rows = this.compared.map(({ element }) => element);
    const names = ["", "root of the tree", "whole row", "difference"];
    const table = h("table", {}, headings(names), h("tbody", {}, rows));
    this.spread = note();
    this.log = h("tbody", {});
    const columns = ["order", "tree", symbol("m"), symbol("l"), symbol("O"), "difference"];
    this.root.append(
      this.controls,
      div(
        "flash-merge-top",
        panel("words", "The last move", null, this.words),
        panel("merge-compare", "Is it the State of the whole row?", null, table),
      ),
      panel("merge-tree", "The row, its parts and the tree", this.hint, this.tree.element, legend()),
      panel("merge-log", "Trees so far", this.spread, h("table", {}, headings(columns), this.log)),
    );
  }

  #compared(name) {
    const cells = ["root", "whole", "difference"].map((kind) => h("td", { "data-name": kind }));
    const label = name === "plain" ? [symbol("O"), " mean"] : symbol(name);
    const element = h("tr", { "data-compared": name }, h("th", { scope: "row" }, label), cells);
    return { name, element, cells };
  }

  paint() {} // the colours are all in the style sheet

  draw() {
    const plain = this.model.get("plain_mean");
    this.plain.show(plain);
    this.root.classList.toggle("flash-merge-plain", plain);
    setText(this.words, this.sent.words);
    for (const button of [this.undo, this.again]) button.setAttribute("aria-disabled", !this.moves.length);
    this.tree.draw(this.sent, this.states, plain);
    this.#showPicked();
    this.#drawCompared();
    this.#drawLog();
  }

  #showPicked() {
    const { roots, nodes } = this.sent;
    this.tree.showPicked(this.picked);
    const picked = this.picked !== null && `${nodes[this.picked][0]} is picked. Pick the one to merge it with.`;
    setText(
      this.hint,
      picked || (roots.length > 1 ? HINT : "One root is left. Try another order, or cut elsewhere."),
    );
  }

  #drawCompared() {
    const { differences, roots } = this.sent;
    const root = differences && this.states.at(-1);
    for (const { name, cells } of this.compared) {
      const [ours, whole, difference] = cells;
      show(ours, root ? valuesOf(root, name) : []);
      show(whole, valuesOf(this.whole, name === "plain" ? "O" : name));
      setText(difference, root ? inWords(differences[name], name === "plain") : "");
    }
    if (!root) setText(this.compared[0].cells[2], `${roots.length} nodes left to merge`);
  }

  #drawLog() {
    const { tried, count, spread } = this.sent;
    const lines = tried.map(([order, tree, difference], k) => {
      const cells = ["m", "l", "O"].map((name) => h("td", { "data-name": name }));
      cells.forEach((cell) => show(cell, valuesOf(this.tried[k], cell.dataset.name)));
      return h("tr", {}, h("td", {}, order), h("td", {}, tree), cells, h("td", {}, inWords(difference)));
    });
    this.log.replaceChildren(...lines);
    const most = spread
      ? `they differ by ${number(spread)} at most, rounding`
      : "equal to one another to the last bit";
    const newest = count > tried.length ? `; the newest ${tried.length} are shown` : "";
    setText(
      this.spread,
      count > 1 ? `${count} trees: ${most}${newest}.` : "Each tree with one root is kept here.",
    );
  }
}

export default {
  render(context) {
    const lab = new MergeTree(context);
    return () => lab.stop();
  },
};
