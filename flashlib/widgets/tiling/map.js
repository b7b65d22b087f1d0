// The map of TilingLab over all block sizes, and the lab itself.

const STAR = "M6 .8l1.6 3.5 3.8.4-2.8 2.6.8 3.8L6 9.2l-3.4 1.9.8-3.8L.6 4.7l3.8-.4z";

/** What an order moves over what standard attention moves, for all B_r and B_c; arrow keys and clicks choose. */
class TileMap {
  constructor(id, blocks, { asked, chosen }, order) {
    Object.assign(this, { id, blocks, asked, chosen });
    const n = blocks.length;
    const size = { width: n * CELL[0], height: n * CELL[1] };
    this.marks = svg(
      "svg",
      { class: "flash-tiling-marks", ...size, "aria-hidden": "true" },
      svg("defs", {}, hatched(`${id}-unfit`)),
      (this.unfit = svg("path", { fill: `url(#${id}-unfit)` })),
      (this.even = svg("path", { class: "flash-tiling-even" })),
      (this.best = svg("path", { class: "flash-tiling-best", d: STAR })),
      (this.here = svg("rect", { class: "flash-tiling-now", width: CELL[0], height: CELL[1] })),
    );
    const field = div("flash-tiling-field", this.#table());
    this.cells[0][0].cell.append(this.marks); // so they lie where the cells lie: over their colours, under their numbers
    this.words = h("p", { class: "flash-tiling-map-words" });
    this.element = panel(
      "tiling-map",
      "Traffic over standard attention",
      order,
      field,
      this.#legend(),
      this.words,
    );
  }

  #table() {
    const { blocks, id } = this;
    this.cells = blocks.map((B_r, r) =>
      blocks.map((B_c, c) => {
        const text = h("span", {});
        const cell = h("td", { id: `${id}-${r}-${c}`, onclick: () => this.chosen({ B_r, B_c }) }, text);
        cell.dataset.cell = `${B_r},${B_c}`;
        return { cell, text, drawn: {} };
      }),
    );
    const columns = blocks.map((B_c) => h("th", { scope: "col" }, B_c));
    const rows = this.cells.map((cells, r) => {
      const elements = cells.map(({ cell }) => cell);
      return h("tr", {}, h("th", { scope: "row" }, blocks[r]), elements);
    });
    const attributes = {
      role: "grid",
      tabindex: 0,
      "aria-label": "Map of B_r (down) and B_c (across): arrow keys choose",
    };
    const corner = h("td", { class: "flash-tiling-corner" }, symbol("B_r"), " \\ ", symbol("B_c"));
    const head = h("thead", {}, h("tr", {}, corner, columns));
    this.table = h("table", { ...attributes, onkeydown: (event) => this.#key(event) }, head, h("tbody", {}, rows));
    return this.table;
  }

  #legend() {
    const sample = (t) => h("b", { "data-t": t });
    const star = svg(
      "svg",
      { class: "flash-tiling-key", viewBox: "0 0 12 12" },
      svg("path", { class: "flash-tiling-best", d: STAR }),
    );
    return div(
      "flash-legend",
      h(
        "span",
        {},
        "16 ×",
        h("span", { class: "flash-scale" }, [-1, -0.6, -0.2, 0, 0.2, 0.6, 1].map(sample)),
        "1/16",
      ),
      key("even", "break-even"),
      key("unfit", "does not fit"),
      key("now", "this tile"),
      h("span", {}, star, "moves least of those that fit"),
    );
  }

  #key(event) {
    const steps = { ArrowUp: ["B_r", -1], ArrowDown: ["B_r", 1], ArrowLeft: ["B_c", -1], ArrowRight: ["B_c", 1] };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault(); // the page would scroll
    const [name, by] = steps[event.key];
    const beyond = this.blocks.filter((B) => (by > 0 ? B > this.asked(name) : B < this.asked(name)));
    if (beyond.length) this.chosen({ [name]: by > 0 ? beyond[0] : beyond.at(-1) });
  }

  draw({ map, order, B_r, B_c }, colour) {
    const { blocks, cells } = this;
    const [width, height] = CELL;
    const n = blocks.length;
    const { ratios, fits, best } = map;
    let [unfit, even] = ["", ""];
    for (let r = 0; r < n; r++) {
      for (let c = 0; c < n; c++) {
        this.#cell(cells[r][c], ratios[r][c], fits[r][c], colour);
        const [x, y, more] = [c * width, r * height, ratios[r][c] > 1];
        if (!fits[r][c]) unfit += box(x, y, width, height);
        if (r + 1 < n && more !== ratios[r + 1][c] > 1) even += `M${x} ${y + height}h${width}`;
        if (c + 1 < n && more !== ratios[r][c + 1] > 1) even += `M${x + width} ${y}v${height}`;
      }
    }
    this.unfit.setAttribute("d", unfit);
    this.even.setAttribute("d", even);
    const place = (B) => Math.log2(B / blocks[0]); // between two cells if B is no power of two
    this.here.setAttribute("transform", `translate(${place(B_c) * width} ${place(B_r) * height})`);
    this.best.style.visibility = best ? "visible" : "hidden";
    if (best) {
      const [x, y] = [(place(best.B_c) + 1) * width - 13, (place(best.B_r) + 1) * height - 12];
      this.best.setAttribute("transform", `translate(${x} ${y})`);
    }
    this.#select(blocks.indexOf(B_r), blocks.indexOf(B_c));
    setText(this.words, map.words);
    Object.assign(this.element.dataset, { order, best: best ? `${best.B_r},${best.B_c}` : "" });
  }

  /** Change only what differs in a cell. */
  #cell({ cell, text, drawn }, ratio, fits, colour) {
    const background = colour.css(-Math.log2(ratio), DOUBLINGS);
    if (drawn.background !== background) cell.style.backgroundColor = drawn.background = background;
    if (drawn.ratio === ratio && drawn.fits === fits) return;
    Object.assign(drawn, { ratio, fits });
    setText(text, short(ratio));
    const words = `${number(ratio)} of standard attention, ${fits ? "fits" : "does not fit"}`;
    cell.setAttribute("aria-label", words);
    cell.title = `${cell.dataset.cell.replace(",", " × ")}: ${words}`;
    cell.dataset.fits = fits;
  }

  #select(r, c) {
    this.selected?.removeAttribute("aria-selected");
    this.selected = this.cells[r]?.[c]?.cell;
    this.selected?.setAttribute("aria-selected", "true");
    if (this.selected) this.table.setAttribute("aria-activedescendant", this.selected.id);
    else this.table.removeAttribute("aria-activedescendant");
  }
}

class TilingLab extends Widget {
  constructor(context) {
    super(context, "tiling-lab", "the costs of a tiling");
    this.sliders = Object.entries(SETTINGS).map(([name, [text, label]]) => [
      name,
      stops(name, text, label, (value) => this.ask({ [name]: value })),
    ]);
    this.dtype = choice("dtype", "dtype", DTYPES, (dtype) => this.ask({ dtype }));
    this.causal = toggle("causal", (causal) => this.ask({ causal }));
    const orders = [
      ["fa1", "FA1", "FlashAttention: K and V outside"],
      ["fa2", "FA2", "FlashAttention-2: Q outside"],
    ];
    this.order = choice("order", "order of the map", orders, (order) => this.ask({ order }));
    this.words = [0, 1, 2].map(() => h("p", {}));
    this.id = `flash-tiling-${Math.random().toString(36).slice(2)}`;
    const result = this.model.get("result");
    if (result.map) this.#build(result.map.blocks);
    this.start("result");
  }

  #build(blocks) {
    const saved = isSaved();
    const chosen = (sizes) => saved || this.ask(sizes);
    const order = h("fieldset", { class: "flash-settings", disabled: saved }, this.order.element);
    const map = new TileMap(this.id, blocks, { asked: (name) => this.model.get(name), chosen }, order);
    const [tiles, sram, bytes] = [new Tiles(this.id), new Sram(), new Bytes()];
    this.parts = [tiles, sram, bytes, map];
    const sliders = this.sliders.map(([, { element }]) => element);
    this.root.append(
      div("flash-panel", this.settings(sliders, this.dtype.element, this.causal.element)),
      div("flash-panel flash-words", this.words),
      div(
        "flash-tiling-columns",
        div("flash-tiling-column", tiles.element, sram.element),
        div("flash-tiling-column", bytes.element, map.element),
      ),
    );
  }

  load(result) {
    this.result = result;
    // What was asked last, which may not be answered yet: a slider must not jump back under the hand.
    for (const [name, { show }] of this.sliders) {
      const value = this.model.get(name);
      if (result.stops[name].includes(value)) show(value, result.stops[name], name === "capacity" ? " KB" : "");
    }
    for (const name of ["dtype", "causal", "order"]) this[name].show(this.model.get(name));
    this.draw();
  }

  paint() {
    if (!this.root.isConnected) return; // called again when it is on the page
    this.colour = colourScale(this.root);
    for (const b of this.root.querySelectorAll(".flash-scale b"))
      b.style.backgroundColor = this.colour.css(Number(b.dataset.t), 1);
  }

  draw() {
    if (!this.colour || !this.result) return;
    const started = performance.now();
    for (const part of this.parts) part.draw(this.result, this.colour);
    this.result.words.forEach((words, k) => setText(this.words[k], words));
    this.spoken.say(this.result.words.join(" "));
    this.drawTime = performance.now() - started; // ms
  }
}

export default {
  render(context) {
    const lab = new TilingLab(context);
    return () => lab.stop();
  },
};
