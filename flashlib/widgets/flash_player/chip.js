// SRAM: the tiles held now, what they take of it, and the state of each row of the block.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Colours } from "../shared/colours.js" */
/** @import { Frames } from "./frames.js" */
/** @import { At, ForwardStep } from "./types.js" */
import { div, h, note, panel, setText, symbol } from "../shared/elements.js";
import { between, exact, number } from "../shared/numbers.js";
import { sums } from "./bars.js";
import { bytes, span } from "./frames.js";
import { CELL, cellsIn, heatWidth, Matrix, NamedTile, WITHOUT_NUMBERS } from "./matrix.js";
import { Views } from "./views.js";

const TABLE = { rows: 8, cut: 6, cols: 4 }; // at most; shown of more; of O_acc, with its numbers
const TILES = 508; // for Q_i, K_j, V_j, S_ij and P_ij beside each other, in pixels

export class Chip {
  static key = () => 0;

  /** @param {Frames} frames @param {(row: number) => void} pressed */
  constructor(frames, pressed) {
    this.where = note();
    this.views = new Views({
      room: [({ sram }) => sram, (frames) => room(frames)],
      tiles: [() => 0, () => new Tiles()],
      table: [({ B_r, d, learner }) => [B_r, d, Boolean(learner)], (frames) => new StateTable(frames, pressed)],
    });
    const { room: bar, tiles, table } = this.views.places;
    const title = [note("small and fast"), bar, this.where];
    this.element = panel("chip", "SRAM", title, tiles, table);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.views.load(frames);
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {number} selected
   * @param {Colours} colour
   * @param {Motion} motion
   */
  draw(at, selected, colour, motion) {
    const { step } = at;
    const place = step && `${span("row", step.rows)}, ${span("column", step.cols)}`;
    setText(this.where, place ?? "empty");
    this.views.made.tiles.draw(at, colour);
    this.views.made.table.draw(at, selected, colour, motion);
  }

  /**
   * The element of a tile.
   * @param {string} name
   */
  tile(name) {
    return this.views.made.tiles.tiles[name].matrix.element;
  }

  /**
   * The elements of a column of the state, one for each row.
   * @param {string} name
   */
  column(name) {
    return this.views.made.table.column(name);
  }
}

/**
 * What the tiles take of the capacity.
 * @param {{ sram: number[] }} frames
 */
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
  /** @type {Frames} */
  frames;

  constructor() {
    const names = ["Q_i", "K_j", "V_j", "S_ij", "P_ij"];
    this.tiles = Object.fromEntries(names.map((name) => [name, new NamedTile(name)]));
    const elements = Object.values(this.tiles).map(({ element }) => element);
    this.element = div("flash-tiles", elements);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.frames = frames;
    const { B_r, B_c, d } = frames;
    const all = cellsIn(TILES, Math.max(B_r, B_c), 3 * d + 2 * B_c);
    const scores = all ?? cellsIn(TILES - 3 * heatWidth(d), B_r, 2 * B_c); // at least their numbers
    this.tiles.Q_i.resize(B_r, d, all);
    for (const name of ["K_j", "V_j"]) this.tiles[name].resize(B_c, d, all);
    for (const name of ["S_ij", "P_ij"]) this.tiles[name].resize(B_r, B_c, scores);
    this.element.title = all ? "" : WITHOUT_NUMBERS;
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {Colours} colour
   */
  draw({ step, part, reached }, colour) {
    const { numbers, peaks, inputs, d } = this.frames;
    const since = { Q_i: "load", K_j: "load", V_j: "load", S_ij: "scores", P_ij: "weights" };
    for (const [name, first] of Object.entries(since)) {
      const { matrix, size } = this.tiles[name];
      const [start, stop] = step?.[name[0] === "K" || name[0] === "V" ? "cols" : "rows"] ?? [0, 0];
      const dropped = part === "store" && name !== "Q_i"; // the tile is done with
      const cols = name[0] in inputs ? d : (step?.n_c ?? 0);
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
  /** @type {number} */
  first;

  /** @param {Frames} frames @param {(row: number) => void} pressed */
  constructor(frames, pressed) {
    this.frames = frames;
    this.group = `flash-row-${Math.random().toString(36).slice(2)}`;
    const { B_r, d, learner } = frames;
    const few = B_r <= 4;
    const width = d <= TABLE.cols ? CELL.width[1] : Math.min(12, 96 / d);
    this.cell = { width, height: few && !learner ? 18 : 13 };
    const length = B_r <= TABLE.rows ? B_r : TABLE.cut;
    this.rows = Array.from({ length }, (_, k) => this.#row(() => pressed(this.first + k)));
    this.more = h("p", { class: "flash-note", hidden: B_r <= length });
    this.element = div(few ? "" : "flash-tight", div("flash-table", this.#table()), this.more);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.frames = frames;
  }

  #table() {
    const names = ["m_old", "m", "alpha", "l", "O_acc"].map((name) => h("th", { scope: "col" }, symbol(name)));
    const row = h("th", { scope: "col", title: "pick a row to follow it" }, "row");
    return h(
      "table",
      { class: "flash-rows", "aria-label": "the state of each row; pick a row to follow it" },
      h("thead", {}, h("tr", {}, row, names)),
      h("tbody", {}, ...this.rows.map((row) => row.element)),
    );
  }

  #row(press) {
    const { d, learner } = this.frames;
    const vector = { rows: 1, cols: d, ...this.cell, numbers: d <= TABLE.cols };
    const O_acc = new Matrix("O_acc", vector);
    const ghost = learner && new Matrix("O_acc, true", vector);
    const radio = h("input", { type: "radio", name: this.group, onchange: press });
    const cells = { row: h("td", { "data-name": "row" }, h("label", {}, radio, h("span", {}))) };
    for (const name of ["m_old", "m", "alpha", "l"])
      cells[name] = h("td", { "data-name": name }, h("span", {}), learner && h("span", { class: "flash-true" }));
    const size = cells.l.appendChild(h("i", { class: "flash-size" }));
    const last = h("td", {}, O_acc.element, ghost && div("flash-true", h("span", {}, "≠"), ghost.element));
    const element = h("tr", { onclick: press }, Object.values(cells), last);
    return { element, cells, radio, size, O_acc, ghost };
  }

  /**
   * The elements that show a column, one for each row.
   * @param {string} name
   */
  column(name) {
    const shown = this.rows.filter(({ element }) => !element.classList.contains("flash-unused"));
    return shown.map(({ cells, O_acc }) => cells[name]?.firstChild ?? O_acc.element);
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {number} selected
   * @param {Colours} colour
   * @param {Motion} motion
   */
  draw(at, selected, colour, motion) {
    const { step } = at;
    const n_r = step?.n_r ?? 0;
    const start = step?.rows[0] ?? 0;
    const { length } = this.rows;
    const first = between(0, Math.floor((selected - start) / length) * length, n_r);
    this.first = start + first;
    this.rows.forEach((row, k) => this.#drawRow(row, at, first + k, selected, colour, motion));
    const shown = [this.first, Math.min(this.first + length, step?.rows[1] ?? 0)];
    const more = step && n_r > length;
    setText(this.more, more ? `${span("row", shown)} of ${span("row", step.rows)}: up and down arrows move.` : "");
  }

  #drawRow({ element, cells, radio, size, O_acc, ghost }, at, r, selected, colour, motion) {
    const { numbers, peaks, d } = this.frames;
    const { step, part, reached } = at;
    const used = step && r < step.n_r;
    element.classList.toggle("flash-unused", !used);
    const current = used && step.rows[0] + r === selected;
    radio.checked = current;
    if (current) element.setAttribute("aria-current", "true");
    else element.removeAttribute("aria-current");
    if (!used) return;
    const row = this.frames.row(step, r);
    const now = this.frames.now(at);
    const grew = reached("maximum") && row.m > row.m_old;
    const label = cells.row.querySelector("span");
    const name = String(step.rows[0] + r);
    const same = label.textContent === name;
    setText(label, name);
    this.#put(cells.m_old, row.m_old);
    this.#put(cells.m, row[now.m], reached("add") ? row.m_true : undefined, grew ? " ↑" : "");
    this.#put(cells.alpha, reached("rescale") ? row.alpha : undefined);
    this.#put(cells.l, row[now.l], reached("add") ? row.l_true : undefined);
    cells.m.classList.toggle("flash-strong", grew);
    cells.alpha.classList.toggle("flash-strong", grew);
    const before = size.style.width;
    size.style.width = `${between(0, (40 * row[now.l]) / (peaks.l || 1), 40) || 0}%`;
    if (same && sums(part) && size.style.width !== before) motion.from(size, { width: before });
    if (grew && part === "maximum" && row.m_old > -Infinity) pulse(motion, cells.m);
    O_acc.draw(numbers, step[now.O_acc] + r * d, 1, d, peaks.O_acc, colour);
    if (!ghost) return;
    const apart = reached("add") && this.#apart(step.O_acc + r * d, step.O_acc_true + r * d);
    ghost.element.parentElement.classList.toggle("flash-equal", !apart);
    if (apart) ghost.draw(numbers, step.O_acc_true + r * d, 1, d, peaks.O_acc, colour);
  }

  /**
   * Whether two rows of O_acc differ in the digits shown.
   * @param {number} a
   * @param {number} b
   */
  #apart(a, b) {
    const { numbers, d } = this.frames;
    for (let c = 0; c < d; c++) if (number(numbers[a + c]) !== number(numbers[b + c])) return true;
    return false;
  }

  /**
   * A number, and beside it the true one where a learner's differs.
   * @param {HTMLElement} cell
   * @param {number | undefined} x
   * @param {number | undefined} [truth]
   */
  #put(cell, x, truth, mark = "") {
    const text = /** @type {HTMLElement} */ (cell.firstElementChild);
    const ghost = cell.querySelector(".flash-true");
    setText(text, x === undefined ? "" : number(x) + mark);
    cell.title = x === undefined ? "" : exact(x);
    if (!ghost) return;
    const apart = x !== undefined && truth !== undefined && number(truth) !== number(x);
    setText(ghost, apart ? `≠ ${number(truth)}` : "");
  }
}

/**
 * Show that a number has just grown.
 * @param {Motion} motion
 * @param {HTMLElement} cell
 */
function pulse(motion, cell) {
  const look = (opacity) => ({ boxShadow: `inset 0 0 0 2px color-mix(in srgb, var(--flash-select) ${opacity}%, transparent)` });
  motion.play(cell, [look(100), look(0)]);
  const text = cell.firstElementChild;
  if (text) motion.from(text, { transform: "scale(1.25)", transformOrigin: "0 50%" });
}
