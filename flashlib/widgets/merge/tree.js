// The row of MergeTree and the tree that grows under it. Columns and levels are Python's, pixels are of this page.

const LINE = 17; // px, a line of a card
const LEVEL = 48; // px between two levels of the tree
const CARD = { least: [120, 148], most: 176, between: 6 }; // px, its width: the least for d = 1, and for more
const LABELS = 24; // px, the names beside the row

const SINGLE = ["m", "l"]; // numbers of a State; the others are vectors of d
const valuesOf = (state, name) => (SINGLE.includes(name) ? [state[name]] : state[name]);

/** A number, or several, with the full values under the pointer. */
function show(element, values) {
  setText(element, Array.from(values, number).join(", "));
  element.title = Array.from(values, exact).join(", ");
}

/** A line from (x, y) down to the height `bend`, then over to toX and down to toY. */
const curve = (x, y, bend, toX, toY) =>
  `M${x} ${y}V${bend}C${x} ${bend + 16} ${toX} ${bend} ${toX} ${bend + 20}V${toY}`;

/** A node: its name, the scores it covers, its State, and the edges from its children. */
class Card {
  constructor(k, d, pressed) {
    const numbers = (name) => {
      const count = SINGLE.includes(name) ? 1 : d;
      return Array.from({ length: count }, () => h("span", { class: "flash-merge-number", "data-name": name }));
    };
    this.numbers = Object.fromEntries(["m", "l", "O_acc", "O", "plain"].map((name) => [name, numbers(name)]));
    const line = (name, label = symbol(name)) =>
      h("span", { class: `flash-merge-line flash-merge-line-${name}` }, label, this.numbers[name]);
    this.name = h("span", { class: "flash-merge-name" });
    this.strip = svg("path", {});
    this.element = h(
      "button",
      { type: "button", class: "flash-merge-card", "data-node": k, disabled: isSaved(), onclick: pressed },
      this.name,
      svg("svg", { class: "flash-merge-strip", "aria-hidden": "true", preserveAspectRatio: "none" }, this.strip),
      h(
        "span",
        { class: "flash-merge-line" },
        symbol("m"),
        this.numbers.m,
        h("span", {}, symbol("l"), this.numbers.l),
      ),
      line("O_acc"),
      line("O"),
      line("plain", h("span", { class: "flash-merge-mean" }, "mean")),
    );
    this.alphas = ["a", "b"].map((side) => h("span", { class: "flash-merge-alpha", "data-name": side }));
    this.edges = ["a", "b"].map(() => svg("path", {}));
  }

  draw([name, ranges], state, N, kind) {
    setText(this.name, name);
    this.strip.ownerSVGElement.setAttribute("viewBox", `0 0 ${N} 2`);
    this.strip.setAttribute("d", ranges.map(([start, stop]) => `M${start} 1H${stop}`).join(""));
    for (const [name, elements] of Object.entries(this.numbers))
      elements.forEach((element, k) => show(element, [valuesOf(state, name)[k]]));
    this.element.dataset.kind = kind;
    this.element.classList.toggle("flash-merge-empty", state.m === -Infinity);
    this.alphas.forEach((alpha, k) => {
      setText(alpha, `× ${number(state.alphas[k])}`);
      alpha.title = `alpha_${"ab"[k]} = ${exact(state.alphas[k])}`;
    });
  }

  /** Lay the card at (x, y), and an edge from each of the points above it; without children, one from the row. */
  place(x, y, width, height, from, isLeaf) {
    const [left, top] = [`${x - width / 2}px`, `${y}px`];
    Object.assign(this.element.style, { left, top, width: `${width}px`, height: `${height}px` });
    const turned = from.length > 1 && from[0][0] > from[1][0];
    this.edges.forEach((edge, k) => {
      this.alphas[k].hidden = isLeaf;
      if (!from[k]) return edge.setAttribute("d", "");
      const to = isLeaf ? x : x + ((k === 0) === turned ? width / 4 : -width / 4);
      edge.setAttribute("d", curve(...from[k], isLeaf ? from[k][1] : y - LEVEL + 2, to, y));
      Object.assign(this.alphas[k].style, { left: `${to}px`, top: `${y - 15}px` });
    });
  }

  hide(hidden) {
    for (const element of [this.element, ...this.alphas]) element.hidden = hidden;
    if (hidden) this.edges.forEach((edge) => edge.setAttribute("d", ""));
  }
}

/** The row with its cuts, and a card for each node. `cut` is told a place, `pick` a node. */
class Tree {
  constructor({ N, d }, numbers, { cut, pick }) {
    Object.assign(this, { d, pick, cards: [] });
    const cuts = Array.from({ length: N - 1 }, (_, k) => k + 1);
    this.cuts = cuts.map((at) => {
      const label = `cut at ${at}, between x[${at - 1}] and x[${at}]`;
      const left = `calc(${LABELS}px + (100% - ${LABELS}px) * ${at / N})`;
      const button = {
        type: "button",
        disabled: isSaved(),
        class: "flash-merge-cut",
        "aria-label": label,
        "data-cut": at,
        title: label,
      };
      return h("button", { ...button, style: `left:${left}`, onclick: () => cut(at) });
    });
    this.row = this.#row(N, d, numbers);
    this.edges = svg("svg", { class: "flash-merge-edges", "aria-hidden": "true" });
    const cutters = h("div", { class: "flash-merge-cuts", role: "group", "aria-label": "cuts" }, this.cuts);
    this.empty = note("Merged nodes appear here.");
    this.stage = div("flash-merge-stage", this.edges, this.row, cutters, this.empty);
    this.stage.style.setProperty("--flash-merge-lines", 1 + d);
    this.element = div("flash-merge-scroller", this.stage);
    this.resized = new ResizeObserver(() => this.place());
    this.resized.observe(this.element);
  }

  #row(N, d, numbers) {
    const names = ["x", ...Array.from({ length: d }, (_, k) => (d > 1 ? `V_${k}` : "V"))];
    const cell = (value) => h("span", { title: exact(value) }, N > 10 ? short(value) : number(value));
    const at = (line, j) => (line ? numbers[N + j * d + line - 1] : numbers[j]);
    const lines = names.map((name, line) => [
      symbol(name),
      Array.from({ length: N }, (_, j) => cell(at(line, j))),
    ]);
    const style = `grid-template-columns:${LABELS}px repeat(${N}, minmax(0, 1fr))`;
    return h("div", { class: "flash-merge-row", style }, lines);
  }

  draw(sent, states, plain) {
    Object.assign(this, { sent, plain });
    const { nodes, roots, setting } = sent;
    this.cuts.forEach((button, k) => button.setAttribute("aria-pressed", setting.cuts.includes(k + 1)));
    while (this.cards.length < nodes.length) this.#add(this.cards.length);
    this.cards.forEach((card, k) => {
      card.hide(k >= nodes.length);
      if (k >= nodes.length) return;
      const kind = !roots.includes(k) ? "merged" : roots.length > 1 ? "free" : "root";
      card.draw(nodes[k], states[k], sent.N, kind);
    });
    this.place();
  }

  #add(k) {
    const card = new Card(k, this.d, () => this.pick(k));
    this.cards.push(card);
    this.edges.append(...card.edges);
    this.stage.append(...card.alphas, card.element);
  }

  /** Only a node without a parent can be picked. */
  showPicked(picked) {
    this.cards.forEach(({ element }, k) => {
      const free = this.sent.roots.includes(k);
      if (free) element.setAttribute("aria-pressed", k === picked);
      else element.removeAttribute("aria-pressed");
      element.setAttribute("aria-disabled", !free);
    });
  }

  place() {
    const room = this.element.clientWidth;
    if (!room || !this.sent) return; // not on the page yet
    const { nodes, leaves, N } = this.sent;
    const stage = Math.max(room, leaves * (CARD.least[Number(this.d > 1)] + CARD.between));
    const width = Math.min(CARD.most, stage / leaves - CARD.between);
    const height = LINE * (2 + (2 + this.plain) * Math.ceil(this.d / 2)) + 20;
    const rowEnd = this.row.offsetTop + this.row.offsetHeight;
    const at = ([, , , [column, level]]) => [
      ((column + 0.5) * stage) / leaves,
      rowEnd + 34 + level * (height + LEVEL),
    ];
    nodes.forEach((node, k) => {
      const [, ranges, children] = node;
      const middles = ranges.map(([start, stop]) => [
        LABELS + ((stage - LABELS) * (start + stop)) / 2 / N,
        rowEnd + 4,
      ]);
      const under = children.map((child) => at(nodes[child])).map(([x, y]) => [x, y + height]);
      this.cards[k].place(...at(node), width, height, children.length ? under : middles, !children.length);
    });
    this.empty.hidden = nodes.length > leaves;
    this.empty.style.top = `${rowEnd + 34 + height + LEVEL}px`;
    // room for a balanced tree from the beginning: what is below moves for a deeper one only
    const levels = Math.max(Math.ceil(Math.log2(leaves)), ...nodes.map(([, , , [, level]]) => level));
    const end = rowEnd + 34 + levels * (height + LEVEL) + height + 4;
    Object.assign(this.stage.style, { width: `${stage}px`, height: `${end}px` });
  }
}
