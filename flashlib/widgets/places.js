// The three places of FlashPlayer, HBM, the grid of S and SRAM, each drawn from Frames, and the legend.

const GRID = { width: 240, height: 240, cell: 30 }; // of S, in pixels
const STRIP = { width: 48, height: 240, cell: 12 }; // Q, K, V and O
const cellOf = (cols) => ({ width: cols > 4 ? 28 : 30, height: 20 }); // of a tile shown with its numbers
const NUMBERS = { rows: 16, cols: 8 }; // a larger tile is drawn without them
const TABLE = { rows: 16, cols: 4 }; // of O_acc, with its numbers

/** HBM: Q, K, V and O as strips, the rows in use outlined. */
class Memory {
  constructor(frames) {
    const { N_q, N_k, d } = frames;
    this.frames = frames;
    const height = between(0.5, STRIP.height / Math.max(N_q, N_k, 1), STRIP.cell);
    const width = Math.min(STRIP.width / d, STRIP.cell, Math.max(4 * height, 3));
    const strip = (name, rows) => {
      const matrix = new Matrix({ name, rows, cols: d, width, height, numbers: false });
      const here = h("div", { class: "flash-here", hidden: true });
      const title = div("flash-name", symbol(name), " ", note(`${rows}×${d}`));
      const element = div("flash-strip", title, div("flash-strip-cells", matrix.element, here));
      return { matrix, here, rows, element };
    };
    this.strips = { Q: strip("Q", N_q), K: strip("K", N_k), V: strip("V", N_k), O: strip("O", N_q) };
    this.O = new Float64Array(N_q * d);
    this.held = new Uint8Array(N_q); // 1 for a row of O that was written
    this.note = h("p", { class: "flash-note" });
    const elements = Object.values(this.strips).map((strip) => strip.element);
    const never = h("span", { class: "flash-accent" }, "S and P: never here");
    this.element = panel("memory", "HBM", never, div("flash-strips", elements), this.note);
  }

  /** Draw what does not change from step to step. */
  paint(colour) {
    const { inputs, numbers, peaks, d } = this.frames;
    for (const name of ["Q", "K", "V"])
      this.strips[name].matrix.draw(numbers, inputs[name], this.strips[name].rows, d, peaks[name], colour);
    this.position = null;
  }

  draw(position, step, colour) {
    const { writes, numbers, d, N_q, order, peaks } = this.frames;
    const ahead = this.position !== null && position >= this.position;
    const first = ahead ? this.position + 1 : 0;
    if (!ahead) {
      this.O.fill(NaN);
      this.held.fill(0);
    }
    let changed = !ahead;
    for (const [at, start, stop, offset] of writes) {
      if (at < first || at > position) continue;
      this.O.set(numbers.subarray(offset, offset + (stop - start) * d), start * d);
      this.held.fill(1, start, stop);
      changed = true;
    }
    this.position = position;
    if (changed) this.strips.O.matrix.draw(this.O, 0, N_q, d, peaks.O, colour);

    const now = writes.findLast(([at]) => at === position);
    const written = now && [now[1], now[2]];
    this.#outline("Q", step?.rows);
    this.#outline("K", step?.cols);
    this.#outline("V", step?.cols);
    this.#outline("O", written);
    const held = this.held.reduce((sum, x) => sum + x, 0);
    const news = written ? `${span("row", written)} just now` : "none at this step";
    const where = order === "fa1" && step ? " It is divided by l so far; m and l of all rows lie here too." : "";
    setText(this.note, `O: ${held} of ${N_q} rows written, ${news}.${where}`);
  }

  #outline(name, rows) {
    const strip = this.strips[name];
    strip.here.hidden = !rows;
    if (!rows) return;
    strip.here.style.top = `${(100 * rows[0]) / strip.rows}%`;
    strip.here.style.height = `${(100 * (rows[1] - rows[0])) / strip.rows}%`;
  }
}

/** S: the grid of tiles, each pending, in SRAM now, computed and dropped, or skipped. */
class Grid {
  constructor(frames, pressed) {
    this.frames = frames;
    const { N_q, N_k, B_r, B_c, T_r, T_c } = frames;
    this.width = between(1, GRID.width / Math.max(N_k, 1), GRID.cell);
    this.height = between(1, GRID.height / Math.max(N_q, 1), GRID.cell);
    this.width = Math.min(this.width, Math.max(12, 1.5 * this.height)); // not too far from square
    this.height = Math.min(this.height, Math.max(12, 1.2 * this.width));
    const elements = this.#makeTiles(pressed);
    this.fine = Math.min(B_r * this.height, B_c * this.width) < 8;
    const { width, height } = this;
    const numbers = width >= 27 && height >= 15 && B_r * B_c <= 256;
    this.current = new Matrix({ name: "S_ij in S", rows: B_r, cols: B_c, width, height, numbers });
    this.here = div("flash-here flash-tile-now", this.current.element);
    this.where = note();
    const field = div("flash-field", elements, this.#boundary(), this.here);
    field.style = `width:${N_k * width}px;height:${N_q * height}px`;
    field.role = "img";
    field.ariaLabel = `S, ${N_q} by ${N_k}, in ${T_r} by ${T_c} tiles`;
    const labels = [
      this.#labels("j", "left", T_c, B_c, N_k, width, 30),
      this.#labels("i", "top", T_r, B_r, N_q, height, 14),
    ];
    const title = h("span", {}, symbol("S"), " = ", symbol("Q"), symbol("K"), h("sup", {}, "T"), " · scale");
    this.element = panel("grid", title, this.where, div("flash-axes", field, labels));
  }

  #makeTiles(pressed) {
    const { N_q, N_k, B_r, B_c, T_r, T_c, steps } = this.frames;
    const computed = new Map(steps.map((step, k) => [`${step.i},${step.j}`, k]));
    const elements = [];
    this.tiles = []; // those that are computed, by step
    for (let i = 0; i < T_r; i++) {
      for (let j = 0; j < T_c; j++) {
        const rows = [i * B_r, Math.min((i + 1) * B_r, N_q)];
        const cols = [j * B_c, Math.min((j + 1) * B_c, N_k)];
        const tile = div("flash-tile");
        this.#place(tile, rows, cols);
        tile.title = `tile (${i}, ${j}): ${span("row", rows)}, ${span("column", cols)}`;
        const k = computed.get(`${i},${j}`);
        Object.assign(tile.dataset, { i, j, state: k === undefined ? "skipped" : "pending" });
        if (k !== undefined) {
          this.tiles[k] = tile;
          tile.addEventListener("click", () => pressed(k));
        }
        elements.push(tile);
      }
    }
    return elements;
  }

  #place(element, rows, cols) {
    element.style.left = `${cols[0] * this.width}px`;
    element.style.top = `${rows[0] * this.height}px`;
    element.style.width = `${(cols[1] - cols[0]) * this.width}px`;
    element.style.height = `${(rows[1] - rows[0]) * this.height}px`;
  }

  /** Labels of the T blocks of B that N is cut into, as many as fit where each takes `room` pixels. */
  #labels(name, side, T, B, N, size, room) {
    const labels = [];
    for (let k = 0; k < T; k += Math.ceil(room / (B * size))) {
      const label = h("span", { class: `flash-label flash-label-${name}` }, `${name}=${k}`);
      label.style[side] = `${((k * B + Math.min((k + 1) * B, N)) / 2) * size}px`;
      labels.push(label);
    }
    return labels;
  }

  /** Where the causal mask cuts, if it does. */
  #boundary() {
    const { N_q, N_k, causal } = this.frames;
    if (!causal || !N_q || !N_k) return null;
    const seen = (r) => between(0, r + N_k - N_q + 1, N_k); // keys that row r sees
    let path = `M${seen(0) * this.width} 0`;
    for (let r = 0; r < N_q; r++) path += `H${seen(r) * this.width}V${(r + 1) * this.height}`;
    return svg(
      "svg",
      { class: "flash-boundary", width: N_k * this.width, height: N_q * this.height, "aria-hidden": "true" },
      svg("path", { d: path }),
    );
  }

  draw(position, step, colour) {
    const { T_r, T_c, numbers, peaks, T } = this.frames;
    const last = this.position ?? T;
    for (let k = Math.min(last, position); k <= Math.max(last, position) && k < T; k++)
      this.tiles[k].dataset.state = k < position ? "done" : k === position ? "now" : "pending";
    this.position = position;
    this.here.hidden = !step;
    setText(this.where, `${step ? `tile (${step.i}, ${step.j}) of ` : ""}${T_r} × ${T_c} tiles`);
    if (!step) return;
    this.#place(this.here, step.rows, step.cols);
    this.current.draw(numbers, step.S_ij, step.n_r, step.n_c, peaks.S, colour);
  }
}

/** SRAM: the tiles held now, and the state of each row of the block. */
class Chip {
  constructor(frames, pressed) {
    this.frames = frames;
    const { B_r, B_c, d } = frames;
    const make = (name, rows, cols) => {
      const numbers = rows <= NUMBERS.rows && cols <= NUMBERS.cols;
      const heat = { width: between(1, 96 / cols, 8), height: between(1, 96 / rows, 8) };
      const matrix = new Matrix({ name, rows, cols, ...(numbers ? cellOf(cols) : heat), numbers });
      const size = note();
      return { matrix, size, element: h("div", {}, div("flash-name", symbol(name), " ", size), matrix.element) };
    };
    this.tiles = {
      Q_i: make("Q_i", B_r, d),
      K_j: make("K_j", B_c, d),
      V_j: make("V_j", B_c, d),
      S_ij: make("S_ij", B_r, B_c),
      P_ij: make("P_ij", B_r, B_c),
    };
    this.rows = [];
    for (let k = 0; k < Math.min(B_r, TABLE.rows); k++) this.rows.push(this.#row(() => pressed(this.first + k)));
    this.where = note();
    this.more = h("p", { class: "flash-note" });
    this.selected = this.#selected();
    const state = h("div", {}, this.#table(), this.more, this.selected.element);
    this.element = panel("chip", "SRAM", this.where, div("flash-parts", this.#arranged(), state), this.#caveat());
  }

  /** The tiles side by side or one above the other, so that all places fit beside each other where they can. */
  #arranged() {
    const { B_c, d } = this.frames;
    const [Q_i, K_j, V_j, S_ij, P_ij] = Object.values(this.tiles).map((tile) => tile.element);
    if (d > NUMBERS.cols)
      return div("flash-tiles flash-wide", div("flash-pair", Q_i, K_j, V_j), div("flash-pair", S_ij, P_ij));
    const inputs = div(d > TABLE.cols ? "flash-stack" : "flash-pair", Q_i, div("flash-stack", K_j, V_j));
    return div("flash-tiles", inputs, div(B_c > 2 ? "flash-stack" : "flash-pair", S_ij, P_ij));
  }

  #table() {
    const { d } = this.frames;
    const widths = { row: 38, m_old: 70, m: 82, alpha: 66, l: 106, O_acc: 8 + (d <= TABLE.cols ? 30 * d : 96) };
    const columns = Object.values(widths).map((width) => h("col", { style: `width:${width}px` }));
    const titles = Object.keys(widths).map((name) =>
      h("th", { scope: "col" }, name === "row" ? name : symbol(name)),
    );
    const width = Object.values(widths).reduce((sum, width) => sum + width, 0);
    return h(
      "table",
      { class: "flash-rows", "aria-label": "the state of each row", style: `width:${width}px` },
      h("colgroup", {}, columns),
      h("thead", {}, h("tr", {}, titles)),
      h("tbody", {}, ...this.rows.map((row) => row.element)),
    );
  }

  #caveat() {
    if (Object.values(this.tiles).every((tile) => tile.matrix.numbers)) return null;
    const limit = `${NUMBERS.rows} rows or ${NUMBERS.cols} columns`;
    return h(
      "p",
      { class: "flash-note" },
      `Tiles of more than ${limit} are drawn without numbers; point at a cell to read it.`,
    );
  }

  /** O_acc of the selected row with its numbers, where the table has no room for them. */
  #selected() {
    const d = this.frames.d;
    if (d <= TABLE.cols || d > NUMBERS.cols) return { element: null };
    const matrix = new Matrix({ name: "O_acc of the row", rows: 1, cols: d, ...cellOf(d), numbers: true });
    const row = note();
    const title = div("flash-name", symbol("O_acc"), " ", row);
    return { matrix, row, element: div("flash-selected", title, matrix.element) };
  }

  #row(press) {
    const d = this.frames.d;
    const numbers = d <= TABLE.cols;
    const cell = numbers ? cellOf(d) : { width: between(0.5, 96 / d, 12), height: 14 };
    const O_acc = new Matrix({ name: "O_acc", rows: 1, cols: d, ...cell, numbers });
    const [row, m_old, m, alpha, l] = ["row", "m_old", "m", "alpha", "l"].map((name) =>
      h("td", { "data-name": name }),
    );
    const [kept, added] = [h("i", { class: "flash-kept" }), h("i", { class: "flash-added" })];
    const text = h("span", {});
    l.append(text, h("span", { class: "flash-bar", "aria-hidden": "true" }, kept, added));
    const element = h("tr", { onclick: press }, row, m_old, m, alpha, l, h("td", {}, O_acc.element));
    return { element, row, m_old, m, alpha, l: text, kept, added, O_acc };
  }

  draw(step, selected, colour) {
    const { numbers, peaks, d, N_q } = this.frames;
    setText(
      this.where,
      step ? `${span("row", step.rows)}, ${span("column", step.cols)}` : "empty: no tile of S or P is left",
    );
    const shown = { Q_i: "rows", K_j: "cols", V_j: "cols", S_ij: "rows", P_ij: "rows" };
    for (const [name, axis] of Object.entries(shown)) {
      const { matrix, size } = this.tiles[name];
      if (!step) {
        matrix.clear();
        setText(size, "");
        continue;
      }
      const [start, stop] = step[axis];
      const letter = name[0];
      const [cols, offset] =
        letter in this.frames.inputs ? [d, this.frames.inputs[letter] + start * d] : [step.n_c, step[name]];
      matrix.draw(numbers, offset, stop - start, cols, peaks[letter], colour);
      setText(size, `${stop - start} × ${cols}`);
    }
    const n_r = step?.n_r ?? 0;
    this.first = between(0, Math.floor((selected - (step?.rows[0] ?? 0)) / TABLE.rows) * TABLE.rows, n_r);
    this.rows.forEach((cells, k) => this.#drawRow(cells, step, this.first + k, selected, colour));
    this.first += step?.rows[0] ?? 0;
    if (this.selected.matrix) {
      const { matrix, row } = this.selected;
      setText(row, step ? `of row ${selected}` : "");
      if (step) matrix.draw(numbers, step.O_acc + (selected - step.rows[0]) * d, 1, d, peaks.O_acc, colour);
      else matrix.clear();
    }
    const last = Math.min(this.first + TABLE.rows, step?.rows[1] ?? N_q);
    setText(
      this.more,
      n_r > TABLE.rows
        ? `${span("row", [this.first, last])} of ${span("row", step.rows)}: up and down arrows move.`
        : "",
    );
  }

  #drawRow(cells, step, r, selected, colour) {
    const { numbers, peaks, d } = this.frames;
    const used = step && r < step.n_r;
    cells.element.classList.toggle("flash-unused", !used);
    const current = used && step.rows[0] + r === selected;
    if (current) cells.element.setAttribute("aria-current", "true");
    else cells.element.removeAttribute("aria-current");
    if (!used) return;
    const { m_old, m, alpha, l_old, l } = this.frames.row(step, r);
    setText(cells.row, String(step.rows[0] + r));
    const put = (element, x, mark = "") => {
      setText(element, number(x) + mark);
      element.title = exact(x);
    };
    put(cells.m_old, m_old);
    put(cells.m, m, m > m_old ? " ↑" : "");
    put(cells.alpha, alpha);
    put(cells.l, l);
    cells.m.classList.toggle("flash-accent", m > m_old);
    cells.alpha.classList.toggle("flash-accent", m > m_old);
    const kept = alpha * l_old;
    cells.kept.style.width = `${(100 * kept) / (peaks.l || 1)}%`;
    cells.added.style.width = `${(100 * Math.max(0, l - kept)) / (peaks.l || 1)}%`;
    cells.O_acc.draw(numbers, step.O_acc + r * d, 1, d, peaks.O_acc, colour);
  }
}

function legend({ causal, T, T_r, T_c, order }) {
  const colours = [-1, -0.5, 0, 0.5, 1].map((t) => h("b", { "data-t": t }));
  const item = (state, text) => h("span", {}, h("i", { class: "flash-swatch", "data-state": state }), text);
  return h(
    "p",
    { class: "flash-legend flash-note" },
    item("now", "in SRAM now"),
    item("done", "computed and dropped"),
    item("pending", order === "fa2" ? "to come; of O: not written yet" : "to come"),
    T < T_r * T_c && item("skipped", causal ? "skipped: the mask cuts all of it" : "skipped"),
    causal && item("cut", "masked score, −∞"),
    causal && item("boundary", "edge of the causal mask"),
    h("span", {}, "−", h("i", { class: "flash-scale" }, ...colours), "+"),
    h("span", {}, "↑ the maximum grew"),
    item("kept", h("span", {}, "alpha · ", symbol("l_old"))),
    item("added", "added by this tile"),
  );
}
