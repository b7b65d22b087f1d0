// FlashPlayer: plays the steps that Python recorded. All numbers drawn are read from the one buffer it sent.

const GRID = { width: 240, height: 240, cell: 30 }; // of S, in pixels
const STRIP = { width: 48, height: 240, cell: 12 }; // Q, K, V and O
const cellOf = (cols) => ({ width: cols > 4 ? 28 : 30, height: 20 }); // of a tile shown with its numbers
const NUMBERS = { rows: 16, cols: 8 }; // a larger tile is drawn without them
const TABLE = { rows: 16, cols: 4 }; // of O_acc, with its numbers

const between = (low, x, high) => Math.max(low, Math.min(high, x));

/** "row 4" or "rows 4–7", from the first and the last + 1. */
const span = (name, [start, stop]) => (stop - start === 1 ? `${name} ${start}` : `${name}s ${start}–${stop - 1}`);

// ---- the recording

/** What Python sent: sizes, the steps with the offset of each array in `numbers`, and the writes of O. */
class Frames {
  constructor(raw) {
    Object.assign(this, raw);
    const { buffer, byteOffset, byteLength } = raw.buffer;
    this.numbers = new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength)); // aligned to 8 bytes
    this.steps = raw.steps.map(([i, j, r0, r1, c0, c1, offset]) => {
      const [n_r, n_c] = [r1 - r0, c1 - c0];
      const step = { i, j, rows: [r0, r1], cols: [c0, c1], n_r, n_c };
      for (const name of raw.packed) {
        step[name] = offset;
        offset += n_r * (/_ij$/.test(name) ? n_c : /^O/.test(name) ? this.d : 1);
      }
      return step;
    });
    this.T = this.steps.length;
    const peak = (name, size) =>
      this.steps.reduce((most, step) => Math.max(most, this.#peak(step[name], step.n_r * size(step))), 0);
    this.peaks = {
      Q: this.#peak(this.inputs.Q, this.N_q * this.d),
      K: this.#peak(this.inputs.K, this.N_k * this.d),
      V: this.#peak(this.inputs.V, this.N_k * this.d),
      S: peak("S_ij", (step) => step.n_c),
      P: 1,
      l: peak("l", () => 1),
      O_acc: peak("O_acc", () => this.d),
      O: raw.writes.reduce(
        (most, [, start, stop, at]) => Math.max(most, this.#peak(at, (stop - start) * this.d)),
        0,
      ),
    };
  }

  #peak(offset, length) {
    let most = 0;
    for (let k = offset; k < offset + length; k++) {
      const size = Math.abs(this.numbers[k]);
      if (size > most && size < Infinity) most = size;
    }
    return most;
  }

  /** The numbers of one row of a step. */
  row(step, r) {
    const at = (name) => this.numbers[step[name] + r];
    const weights = this.numbers.subarray(step.P_ij + r * step.n_c, step.P_ij + (r + 1) * step.n_c);
    return {
      m_old: at("m_old"),
      m: at("m"),
      alpha: at("alpha"),
      l_old: at("l_old"),
      l: at("l"),
      added: weights.reduce((sum, p) => sum + p, 0),
      visible: this.numbers
        .subarray(step.S_ij + r * step.n_c, step.S_ij + (r + 1) * step.n_c)
        .some((s) => s !== -Infinity),
    };
  }
}

/** What a step did to one row, in words. */
function sentence(row, { m_old, m, alpha, l_old, l, added, visible }) {
  const sum = `l = ${number(alpha)} · ${number(l_old)} + ${number(added)} = ${number(l)}.`;
  const name = `Row ${row}`;
  if (m === -Infinity)
    return `${name} sees no key yet: all its scores are masked, m stays −∞, l and O_acc stay 0.`;
  if (!visible) return `${name} sees no key of this tile: m, l and O_acc stay as they are.`;
  if (m_old === -Infinity)
    return (
      `${name}: the first scores it sees. Their maximum is ${number(m)}; ` +
      `there is nothing to rescale, alpha = exp(−∞) = 0. ${sum}`
    );
  if (m > m_old)
    return (
      `${name}: the maximum grew from ${number(m_old)} to ${number(m)}, so everything summed so far is multiplied ` +
      `by alpha = exp(${number(m_old)} − ${m < 0 ? `(${number(m)})` : number(m)}) = ${number(alpha)}. ${sum}`
    );
  return (
    `${name}: the maximum did not grow, it stays ${number(m)}; ` +
    `alpha = ${number(alpha)}, nothing is rescaled. ${sum}`
  );
}

// ---- the places

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

// ---- the player

class Player {
  constructor(model, el) {
    this.model = model;
    this.offset = 0; // of the selected row in its block
    const ask = (name, value) => {
      model.set(name, value);
      model.save_changes();
      this.#wait();
    };
    this.transport = new Transport({ unit: "step", moved: () => this.draw() });
    this.sliders = [
      slider("B_r", "B_r, rows of a block of Q", (value) => ask("B_r", value)),
      slider("B_c", "B_c, rows of a block of K and V", (value) => ask("B_c", value)),
    ];
    const orders = [
      ["fa1", "FA1", "FlashAttention: K and V outside"],
      ["fa2", "FA2", "FlashAttention-2: Q outside"],
    ];
    this.order = choice("order", "loop order", orders, (value) => ask("order", value));
    this.causal = toggle("causal", (value) => ask("causal", value));
    this.status = h("span", { class: "flash-status" });
    this.busy = h("span", { class: "flash-note", role: "status" });
    this.sentence = h("p", { class: "flash-sentence" });
    this.spoken = announcer();
    this.body = div("flash-body");
    const { buttons, scrub, speed } = this.transport;
    const settings = [...this.sliders, this.order, this.causal].map((control) => control.element);
    const header = div(
      "flash-panel flash-header",
      div("flash-controls", buttons, scrub, this.status, speed),
      div("flash-controls", settings, this.busy),
    );
    this.root = div("flash-widget flash-player", header, this.body, this.spoken.element);
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "FlashAttention, step by step");
    el.append(this.root);

    const onFrames = () => this.load();
    model.on("change:frames", onFrames);
    const stopKeys = listenToKeys(this.root, {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.frames.T),
      ArrowUp: () => this.select(this.selected - 1),
      ArrowDown: () => this.select(this.selected + 1),
    });
    const stopTheme = watchTheme(this.root, () => {
      this.paint();
      this.draw();
    });
    this.stop = () => {
      this.transport.pause();
      this.spoken.stop();
      clearTimeout(this.waiting);
      model.off("change:frames", onFrames);
      stopKeys();
      stopTheme();
    };
    this.root.flashPlayer = this; // for tests and for the curious
    this.load();
  }

  /** Say so if Python does not answer: there may be no kernel, or a busy one. */
  #wait() {
    clearTimeout(this.waiting);
    const say = () => setText(this.busy, "Waiting for Python, which computes the steps of a new setting.");
    this.waiting = setTimeout(say, 1500);
  }

  load() {
    clearTimeout(this.waiting);
    setText(this.busy, "");
    const frames = (this.frames = new Frames(this.model.get("frames")));
    this.sliders[0].show(frames.B_r, frames.range_B_r);
    this.sliders[1].show(frames.B_c, frames.range_B_c);
    this.order.show(frames.order);
    this.causal.show(frames.causal);
    this.memory = new Memory(frames);
    this.grid = new Grid(frames, (k) => this.transport.seek(k));
    this.chip = new Chip(frames, (row) => this.select(row));
    const places = div("flash-places", this.memory.element, this.grid.element, this.chip.element);
    this.body.replaceChildren(places, div("flash-panel flash-words", this.sentence), legend(frames));
    this.body.classList.toggle("flash-fine", this.grid.fine);
    Object.assign(this.root.dataset, { tiles: frames.T, tr: frames.T_r, tc: frames.T_c });
    this.paint();
    this.transport.reset(frames.T);
  }

  /** Take the colours of the theme, and paint what does not change from step to step. */
  paint() {
    if (!this.root.isConnected) return; // called again when it is on the page
    this.colour = colourScale(this.root);
    for (const b of this.root.querySelectorAll(".flash-scale b"))
      b.style.backgroundColor = this.colour.css(Number(b.dataset.t), 1);
    this.memory.paint(this.colour);
  }

  select(row) {
    const [start, stop] = this.frames.steps[this.transport.position]?.rows ?? [0, this.frames.N_q];
    this.offset = between(0, row - start, Math.max(0, stop - start - 1));
    this.draw();
  }

  draw() {
    if (!this.colour) return;
    const started = performance.now();
    const { frames, colour } = this;
    const { position } = this.transport;
    const step = frames.steps[position];
    const [start, stop] = step?.rows ?? [0, frames.N_q];
    this.selected = start + Math.min(this.offset, Math.max(0, stop - start - 1));
    this.memory.draw(position, step, colour);
    this.grid.draw(position, step, colour);
    this.chip.draw(step, this.selected, colour);
    const where = step
      ? `step ${position + 1} of ${frames.T} · tile (${step.i}, ${step.j})`
      : `finished, ${frames.T} steps`;
    setText(this.status, where);
    setText(this.sentence, step ? sentence(this.selected, frames.row(step, this.selected - start)) : this.#end());
    this.transport.scrub.setAttribute("aria-valuetext", where);
    this.root.dataset.step = position;
    this.root.dataset.row = this.selected;
    this.spoken.say(`${where}. ${this.sentence.textContent}`);
    this.drawTime = performance.now() - started; // ms
  }

  #end() {
    const { T, T_r, T_c, N_q, numbers, inputs } = this.frames;
    const skipped = T < T_r * T_c ? ` of ${T_r * T_c}` : "";
    const row = N_q ? ` Row ${this.selected}: lse = ${number(numbers[inputs.lse + this.selected])}.` : "";
    const where = "O and lse are in HBM.";
    return `Finished: ${T}${skipped} tiles of S were computed and dropped, none was stored. ${where}${row}`;
  }
}

export default {
  render({ model, el }) {
    const player = new Player(model, el);
    return () => player.stop();
  },
};
