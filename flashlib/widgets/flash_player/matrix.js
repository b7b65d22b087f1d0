// Matrices as heat maps, with their numbers if there is room.

/** @import { Colours } from "../shared/colours.js" */
import { div, h, note, symbol } from "../shared/elements.js";
import { between, exact, short } from "../shared/number_text.js";
import { pictureOf } from "../shared/picture.js";

export const CELL = { width: [27, 30], height: [16, 18] }; // px: the smallest and the largest cell with a number
const DIGIT = 6.2; // px: the width of one in a cell
const ROWS = 92; // px, for the rows of a tile
const HEAT = { width: 88, height: 66, cell: { width: 18, height: 10 } }; // of a tile without numbers

export const WITHOUT_NUMBERS = "Larger tiles are drawn without numbers: point at a cell to read it.";
const CELL_LINES = ["left", "top"].map((side) => `linear-gradient(to ${side}, var(--flash-panel) 1px, transparent 1px) 0 0`);

/**
 * The width of a heat map with this many columns, in pixels.
 * @param {number} cols
 */
export const heatWidth = (cols) => cols * between(1, HEAT.width / cols, HEAT.cell.width);

/**
 * The size of cells with numbers if `rows` x `cols` of them must fit into a width; null if they do not fit.
 * @param {number} room
 * @param {number} rows
 * @param {number} cols
 */
export function cellsIn(room, rows, cols) {
  const [width, height] = [room / cols, ROWS / rows].map(Math.floor);
  if (width < CELL.width[0] || height < CELL.height[0]) return null;
  return { width: Math.min(width, CELL.width[1]), height: Math.min(height, CELL.height[1]) };
}

/** @typedef {{ rows: number, cols: number, width: number, height: number, numbers: boolean }} Size in cells and px */
/** @typedef {{ data: Float64Array, offset: number, rows: number, cols: number, scores?: number }} Shown */
/** @typedef {{ values: Float64Array, rows: number, cols: number, peak: number, colour: Colours }} Painted */

/** A tile under its name, with room for its size next to the name. */
export class NamedTile {
  constructor(name, title = symbol(name)) {
    this.matrix = new Matrix(name);
    this.size = note();
    this.element = h("div", {}, div("flash-name", title, " ", this.size), this.matrix.element);
  }

  /**
   * cell: the size of cells with numbers, or null for a heat map without; a column can be drawn like one of its tile.
   * @param {number} rows
   * @param {number} cols
   * @param {{ width: number, height: number } | null} cell
   */
  resize(rows, cols, cell, { isColumn = false } = {}) {
    const height = between(1, HEAT.height / rows, HEAT.cell.height);
    const width = isColumn ? HEAT.cell.width : heatWidth(cols) / cols;
    this.matrix.resize({ rows, cols, ...(cell ?? { width, height }), numbers: Boolean(cell) });
  }
}

/**
 * A matrix drawn as a heat map: with its numbers if there are few enough (then cells are elements), else as a picture, or
 * as a gradient for one row. The full value is shown under the pointer. It has room for rows x cols, but may show less.
 */
export class Matrix {
  /** @type {number} */
  rows;
  /** @type {number} */
  cols;
  /** @type {number} */
  height;
  /** @type {number} */
  width;
  /** @type {boolean} */
  numbers;
  /** @type {string[]} */
  lines;
  /** @type {string} */
  label;
  /** @type {string} */
  size;
  /** @type {boolean} */
  cleared;
  /** @type {Shown | null} */
  shown;
  /** @type {Painted | null} */
  painted;
  /** @type {HTMLElement | undefined} */
  mark;
  /** Whether NaN is what is not there yet, and has no number. */
  pending = false;

  /**
   * @param {string} name
   * @param {Size} [size]
   */
  constructor(name, size) {
    this.name = name;
    this.element = h("div", { class: "flash-matrix", role: "img", "data-name": name });
    this.element.addEventListener("pointermove", (event) => this.#tell(event));
    /** @type {HTMLElement[]} */
    this.cells = [];
    /** @type {{ kind?: string, background?: string, text?: string }[]} */
    this.drawn = [];
    if (size) this.resize(size);
  }

  /**
   * Take a size, in cells and in pixels per cell. Existing cells are reused: creating one costs most.
   * @param {Size} size
   */
  resize({ rows, cols, width, height, numbers }) {
    const size = [rows, cols, width, height, numbers].join();
    if (this.size === size) return;
    this.size = size;
    this.rows = rows;
    this.cols = cols;
    this.height = height;
    this.width = width;
    this.numbers = numbers;
    this.shown = this.painted = null;
    this.cleared = false;
    const { element, cells } = this;
    const cell = Math.min(width, height);
    Object.assign(element.style, { width: `${cols * width}px`, height: `${rows * height}px`, background: "" });
    element.style.lineHeight = `${height - 1}px`;
    element.style.gridTemplate = numbers ? `repeat(${rows}, ${height}px) / repeat(${cols}, ${width}px)` : "none";
    element.classList.toggle("flash-sharp", cell >= 1);
    this.lines = cell >= 5 ? CELL_LINES.map((line) => `${line} / ${width}px ${height}px`) : [];
    const count = numbers ? rows * cols : 0;
    cells.splice(count).forEach((cell) => cell.remove());
    const added = Array.from({ length: count - cells.length }, () => h("span", { class: "flash-cell" }, ""));
    cells.push(...added);
    element.append(...added);
    this.drawn = cells.map((_, k) => this.drawn[k] ?? {});
  }

  /**
   * Draw rows x cols numbers of `data` from `offset` on; `peak` is the value of the strongest colour. scores: the offset of
   * their scores; where these are masked, cells are hatched, and a picture shows what is behind it.
   * @param {Float64Array} data
   * @param {number} offset
   * @param {number} rows
   * @param {number} cols
   * @param {number} peak
   * @param {Colours} colour
   * @param {number} [scores]
   */
  draw(data, offset, rows, cols, peak, colour, scores) {
    this.shown = { data, offset, rows, cols, scores };
    this.cleared = false;
    this.element.classList.remove("flash-cleared");
    this.#label(`${this.name}, ${rows} by ${cols}`);
    if (this.numbers) return this.#drawCells(this.shown, peak, colour);
    const seen = data.slice(offset, offset + rows * cols); // a copy, since data may change
    if (scores !== undefined) seen.forEach((_, k) => data[scores + k] === -Infinity && (seen[k] = NaN));
    if (!this.#isNew(seen, rows, cols, peak, colour)) return;
    const draw = this.rows === 1 ? this.#gradient : this.#picture;
    this.element.style.background = draw.call(this, { data: seen, offset: 0, rows, cols }, peak, colour);
  }

  #label(text) {
    if (this.label === text) return;
    this.label = text;
    this.element.setAttribute("aria-label", text);
  }

  /**
   * One row as a gradient with hard stops.
   * @param {Shown} shown
   * @param {number} peak
   * @param {Colours} colour
   */
  #gradient({ data, offset, cols }, peak, colour) {
    const stops = Array.from({ length: cols }, (_, c) => {
      const x = data[offset + c];
      return `${Number.isNaN(x) ? "transparent" : colour.css(x, peak)} 0 ${(100 * (c + 1)) / cols}%`;
    });
    return `linear-gradient(to right, ${stops.join()})`;
  }

  /**
   * A pixel for each number. It is an image, since each canvas is a layer, and layers slow down every frame of the page.
   * @param {Shown} shown
   * @param {number} peak
   * @param {Colours} colour
   */
  #picture({ data, offset, rows, cols }, peak, colour) {
    if (!this.rows || !this.cols) return "none";
    const pixels = new Uint32Array(this.cols * this.rows);
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < cols; c++) {
        const x = data[offset + r * cols + c];
        if (!Number.isNaN(x)) pixels[r * this.cols + c] = colour.pixel(x, peak); // else there is no number yet
      }
    return [...this.lines, `${pictureOf(pixels, this.cols, this.rows)} 0 0 / 100% 100%`].join();
  }

  /**
   * Whether it would look different: painting costs more than comparing the numbers.
   * @param {Float64Array} values
   * @param {number} rows
   * @param {number} cols
   * @param {number} peak
   * @param {Colours} colour
   */
  #isNew(values, rows, cols, peak, colour) {
    const before = this.painted;
    this.painted = { values, rows, cols, peak, colour };
    if (!before || before.rows !== rows || before.cols !== cols) return true;
    return (
      before.peak !== peak || before.colour !== colour || values.some((x, k) => !Object.is(x, before.values[k]))
    );
  }

  clear() {
    if (this.cleared) return;
    this.cleared = true;
    this.shown = this.painted = null;
    this.element.classList.add("flash-cleared");
    this.#label(`${this.name}, empty`);
    if (this.numbers) this.cells.forEach((_, k) => this.#drawCell(k, "flash-cell flash-empty", "", ""));
    else this.element.style.background = "none";
  }

  /**
   * @param {Shown} shown
   * @param {number} peak
   * @param {Colours} colour
   */
  #drawCells({ data, offset, rows, cols, scores = offset }, peak, colour) {
    for (let r = 0; r < this.rows; r++) {
      for (let c = 0; c < this.cols; c++) {
        const k = r * this.cols + c;
        const x = r < rows && c < cols ? data[offset + r * cols + c] : undefined;
        if (x === undefined || (this.pending && Number.isNaN(x))) {
          this.#drawCell(k, "flash-cell flash-empty", "", "");
          continue;
        }
        const text = short(x);
        const cut = data[scores + r * cols + c] === -Infinity;
        const kind = cut ? "flash-cell flash-cut" : text.includes("e") && text.length * DIGIT > this.width ? "flash-cell flash-long" : "flash-cell";
        this.#drawCell(k, kind, colour.css(x, peak), text);
      }
    }
  }

  /**
   * Change only what differs in a cell: this takes most of the time of a step.
   * @param {number} k
   * @param {string} kind
   * @param {string} background
   * @param {string} text
   */
  #drawCell(k, kind, background, text) {
    const [cell, drawn] = [this.cells[k], this.drawn[k]];
    if (drawn.kind !== kind) cell.className = drawn.kind = kind;
    if (drawn.background !== background) cell.style.backgroundColor = drawn.background = background;
    if (drawn.text !== text) /** @type {Text} */ (cell.firstChild).data = drawn.text = text;
  }

  /**
   * The row and the column under the pointer, null if there is no number.
   * @param {MouseEvent} event
   * @returns {[r: number, c: number] | null}
   */
  under(event) {
    const box = this.element.getBoundingClientRect();
    const r = Math.floor(((event.clientY - box.top) / box.height) * this.rows);
    const c = Math.floor(((event.clientX - box.left) / box.width) * this.cols);
    const { rows, cols } = this.shown ?? { rows: 0, cols: 0 };
    return r >= 0 && c >= 0 && r < rows && c < cols ? [r, c] : null;
  }

  /** @param {PointerEvent} event */
  #tell(event) {
    const { data, offset, cols } = this.shown ?? { data: [], offset: 0, cols: 0 };
    const at = this.under(event);
    this.element.title = at ? `[${at.join(", ")}]: ${exact(data[offset + at[0] * cols + at[1]])}` : "";
  }

  /**
   * Outline a row; null: none.
   * @param {number | null} r
   */
  outline(r) {
    if (r === null) return this.mark?.remove();
    this.mark ??= h("i", { class: "flash-row-mark" });
    Object.assign(this.mark.style, { top: `${r * this.height}px`, height: `${this.height}px` });
    this.element.append(this.mark);
  }
}
