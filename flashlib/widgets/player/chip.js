// SRAM: the tiles held now, what they take of it, and the state of each row of the block.

const TABLE = { rows: 16, cols: 4 }; // of O_acc, with its numbers

class Chip {
  static key = () => 0;

  constructor(frames, pressed) {
    this.where = note();
    this.parts = new Parts({
      room: [({ sram }) => sram, room],
      tiles: [({ B_r, B_c, d }) => [B_r, B_c, d], (frames) => new Tiles(frames)],
      table: [({ B_r, d, learner }) => [B_r, d, Boolean(learner)], (frames) => new StateTable(frames, pressed)],
    });
    const { room: bar, tiles, table } = this.parts.places;
    this.element = panel("chip", "SRAM", [bar, this.where], div("flash-parts", tiles, table));
  }

  take(frames) {
    this.parts.load(frames);
  }

  draw(at, selected, colour) {
    const { step } = at;
    const place = step && `${span("row", step.rows)}, ${span("column", step.cols)}`;
    setText(this.where, place ?? "empty");
    this.parts.made.tiles.draw(at, colour);
    this.parts.made.table.draw(at, selected, colour);
  }
}

/** What the tiles take of the capacity. */
function room({ sram: [held, capacity] }) {
  const fits = held <= capacity;
  const bar = h("i", { style: `width:${Math.min(100, (100 * held) / capacity)}%` });
  const text = `${bytes(held)} of ${bytes(capacity)}${fits ? "" : ": too much"}`;
  const element = h(
    "span",
    { class: `flash-room${fits ? "" : " flash-over"}` },
    h("span", { class: "flash-meter", "aria-hidden": "true" }, bar),
    h("span", { class: fits ? "flash-note" : "flash-strong" }, text),
  );
  return { element, take() {} };
}

/** The tiles held now. */
class Tiles {
  constructor(frames) {
    this.frames = frames;
    const { B_r, B_c, d } = frames;
    this.tiles = {
      Q_i: namedTile("Q_i", B_r, d),
      K_j: namedTile("K_j", B_c, d),
      V_j: namedTile("V_j", B_c, d),
      S_ij: namedTile("S_ij", B_r, B_c),
      P_ij: namedTile("P_ij", B_r, B_c),
    };
    this.element = h("div", {}, this.#arranged(), this.#caveat());
  }

  take(frames) {
    this.frames = frames;
  }

  /** The tiles side by side or one above the other, so that all places fit beside each other where they can. */
  #arranged() {
    const { B_c, d } = this.frames;
    const [Q_i, K_j, V_j, S_ij, P_ij] = Object.values(this.tiles).map((tile) => tile.element);
    if (!this.tiles.Q_i.matrix.numbers) return div("flash-tiles flash-wide", Q_i, K_j, V_j, S_ij, P_ij);
    const inputs = div(d > TABLE.cols ? "flash-stack" : "flash-pair", Q_i, div("flash-stack", K_j, V_j));
    return div("flash-tiles", inputs, div(B_c > 2 ? "flash-stack" : "flash-pair", S_ij, P_ij));
  }

  #caveat() {
    if (Object.values(this.tiles).every((tile) => tile.matrix.numbers)) return null;
    return h("p", { class: "flash-note" }, "Larger tiles are drawn without numbers: point at a cell to read it.");
  }

  draw({ step, part, reached }, colour) {
    const { numbers, peaks, inputs, d } = this.frames;
    const since = { Q_i: "load", K_j: "load", V_j: "load", S_ij: "scores", P_ij: "weights" };
    for (const [name, first] of Object.entries(since)) {
      const { matrix, size } = this.tiles[name];
      const [start, stop] = step?.[name[0] === "K" || name[0] === "V" ? "cols" : "rows"] ?? [0, 0];
      const dropped = part === "store" && name !== "Q_i"; // the tile is done with
      const cols = name[0] in inputs ? d : step?.n_c;
      setText(size, step ? `${stop - start} × ${cols}` : "");
      if (!step || dropped || !reached(first)) {
        matrix.clear();
        continue;
      }
      const offset = name[0] in inputs ? inputs[name[0]] + start * d : step[name];
      matrix.draw(numbers, offset, stop - start, cols, peaks[name[0]], colour);
    }
  }
}

/** m_old, m, alpha, l and O_acc of each row of the block. */
class StateTable {
  constructor(frames, pressed) {
    this.frames = frames;
    this.rows = [];
    for (let k = 0; k < Math.min(frames.B_r, TABLE.rows); k++)
      this.rows.push(this.#row(() => pressed(this.first + k)));
    this.more = h("p", { class: "flash-note" });
    this.element = h("div", {}, this.#table(), this.more);
  }

  take(frames) {
    this.frames = frames;
  }

  #table() {
    const { d } = this.frames;
    const widths = { row: 38, m_old: 66, m: 82, alpha: 66, l: 72, O_acc: 8 + (d <= TABLE.cols ? 30 * d : 96) };
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

  #row(press) {
    const { d, learner } = this.frames;
    const numbers = d <= TABLE.cols;
    const cell = numbers ? cellOf(d) : { width: between(0.5, 96 / d, 12), height: 14 };
    const O_acc = new Matrix({ name: "O_acc", rows: 1, cols: d, ...cell, numbers });
    const ghost = learner && new Matrix({ name: "O_acc, true", rows: 1, cols: d, ...cell, numbers });
    const cells = {};
    for (const name of ["row", "m_old", "m", "alpha", "l"])
      cells[name] = h("td", { "data-name": name }, h("span", {}), learner && h("span", { class: "flash-true" }));
    const last = h("td", {}, O_acc.element, ghost && div("flash-true", h("span", {}, "≠"), ghost.element));
    const element = h("tr", { onclick: press, onpointerenter: press }, Object.values(cells), last);
    return { element, cells, O_acc, ghost };
  }

  draw(at, selected, colour) {
    const { step } = at;
    const n_r = step?.n_r ?? 0;
    const start = step?.rows[0] ?? 0;
    const first = between(0, Math.floor((selected - start) / TABLE.rows) * TABLE.rows, n_r);
    this.first = start + first;
    this.rows.forEach((row, k) => this.#drawRow(row, at, first + k, selected, colour));
    const shown = [this.first, Math.min(this.first + TABLE.rows, step?.rows[1] ?? 0)];
    const more = n_r > TABLE.rows;
    setText(this.more, more ? `${span("row", shown)} of ${span("row", step.rows)}: up and down arrows move.` : "");
  }

  #drawRow({ element, cells, O_acc, ghost }, at, r, selected, colour) {
    const { numbers, peaks, d } = this.frames;
    const { step, reached } = at;
    const used = step && r < step.n_r;
    element.classList.toggle("flash-unused", !used);
    const current = used && step.rows[0] + r === selected;
    if (current) element.setAttribute("aria-current", "true");
    else element.removeAttribute("aria-current");
    if (!used) return;
    const row = this.frames.row(step, r);
    const now = this.frames.now(at);
    const grew = reached("maximum") && row.m > row.m_old;
    setText(cells.row.firstChild, String(step.rows[0] + r));
    this.#put(cells.m_old, row.m_old);
    this.#put(cells.m, row[now.m], reached("add") ? row.m_true : undefined, grew ? " ↑" : "");
    this.#put(cells.alpha, reached("rescale") ? row.alpha : undefined);
    this.#put(cells.l, row[now.l], reached("add") ? row.l_true : undefined);
    cells.m.classList.toggle("flash-strong", grew);
    cells.alpha.classList.toggle("flash-strong", grew);
    O_acc.draw(numbers, step[now.O_acc] + r * d, 1, d, peaks.O_acc, colour);
    if (!ghost) return;
    const apart = reached("add") && this.#apart(step.O_acc + r * d, step.O_acc_true + r * d);
    ghost.element.parentElement.classList.toggle("flash-equal", !apart);
    if (apart) ghost.draw(numbers, step.O_acc_true + r * d, 1, d, peaks.O_acc, colour);
  }

  /** Whether two rows of O_acc differ in the digits shown. */
  #apart(a, b) {
    const { numbers, d } = this.frames;
    for (let c = 0; c < d; c++) if (number(numbers[a + c]) !== number(numbers[b + c])) return true;
    return false;
  }

  /** A number, and beside it the true one where a learner's differs. */
  #put(cell, x, truth, mark = "") {
    const [text, ghost] = cell.children;
    setText(text, x === undefined ? "" : number(x) + mark);
    cell.title = x === undefined ? "" : exact(x);
    if (!ghost) return;
    const apart = truth !== undefined && number(truth) !== number(x);
    setText(ghost, apart ? `≠ ${number(truth)}` : "");
  }
}
