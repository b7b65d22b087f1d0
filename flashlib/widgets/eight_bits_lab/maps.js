/** @import { Colours } from "../shared/colours.js" */
/** @import { Numbers, Place, Result } from "./types.js" */
import { div, h, note, panel, setText, symbol } from "../shared/elements.js";
import { between, short } from "../shared/numbers.js";

const difference = (now, exact) => now.map((x, k) => x - exact[k]);

/** The error of a matrix as a picture, with a mark on one of its numbers. */
class ErrorMap {
  /** @type {Float64Array} */
  values;
  /** @type {number} */
  rows;
  /** @type {number} */
  columns;
  /** @type {number} the size of the largest */
  most;

  /**
   * @param {string} name
   * @param {any} title
   * @param {(place: [row: number, column: number] | null, pressed: boolean) => void} pointed
   */
  constructor(name, title, pointed) {
    this.name = name;
    this.mark = h("b", {});
    const board = h("canvas").getContext("2d", { willReadFrequently: true }); // made once: that takes longest
    this.board = /** @type {CanvasRenderingContext2D} */ (board);
    this.field = h("div", { class: "flash-eight-field", role: "img", "data-name": name }, this.mark);
    this.peak = note();
    const head = div("flash-eight-title", h("span", {}, title), this.peak);
    this.element = div("flash-eight-map", head, this.field);
    this.field.addEventListener("pointermove", (event) => pointed(this.#under(event), false));
    this.field.addEventListener("pointerleave", () => pointed(null, false));
    this.field.addEventListener("click", (event) => pointed(this.#under(event), true));
  }

  /** @returns {[number, number]} */
  #under(event) {
    const box = this.field.getBoundingClientRect();
    const at = (from, size, count) => between(0, Math.floor((from / size) * count), count - 1);
    const row = at(event.clientY - box.top, box.height, this.rows);
    return [row, at(event.clientX - box.left, box.width, this.columns)];
  }

  /**
   * @param {Float64Array} values
   * @param {number} rows
   * @param {number} columns
   */
  take(values, rows, columns) {
    Object.assign(this, { values, rows, columns });
    this.most = values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const most = short(this.most);
    setText(this.peak, `up to ±${most}`);
    this.field.setAttribute("aria-label", `error of ${this.name}, ${rows} by ${columns}, up to ${most}`);
  }

  /** @param {Colours} colour */
  paint(colour) {
    if (!this.values) return;
    const { canvas } = this.board;
    if (canvas.width !== this.columns || canvas.height !== this.rows) {
      Object.assign(canvas, { width: this.columns, height: this.rows });
    }
    const image = this.board.createImageData(this.columns, this.rows);
    const pixels = new Uint32Array(image.data.buffer);
    this.values.forEach((x, k) => (pixels[k] = colour.pixel(x, this.most)));
    this.board.putImageData(image, 0, 0);
    this.field.style.backgroundImage = `url(${canvas.toDataURL()})`;
  }

  /** @param {number} row @param {number} column */
  choose(row, column) {
    const percent = (k, count) => `${(100 * k) / count}%`;
    const { style } = this.mark;
    [style.left, style.top] = [percent(column, this.columns), percent(row, this.rows)];
    [style.width, style.height] = [percent(1, this.columns), percent(1, this.rows)];
  }
}

/** The errors of S, of the weights and of O. */
export class Maps {
  /** @param {(place: Partial<Place> | null, pressed: boolean) => void} pointed */
  constructor(pointed) {
    const ofKeys = (at, pressed) => pointed(at && { row: at[0], key: at[1] }, pressed);
    const ofColumns = (at, pressed) => pointed(at && { row: at[0], column: at[1] }, pressed);
    this.S = new ErrorMap("S", [symbol("S"), ", of each query and key"], ofKeys);
    this.weights = new ErrorMap("weights", ["weights ", symbol("P"), " / ", symbol("l")], ofKeys);
    this.O = new ErrorMap("O", symbol("O"), ofColumns);
    this.hint = note();
    const samples = [-1, -0.5, -0.2, 0, 0.2, 0.5, 1].map((t) => h("b", { "data-t": t }));
    const scale = h("span", {}, "too small", h("span", { class: "flash-scale" }, samples), "too large");
    const last = div("flash-eight-maps-last", this.O.element, div("flash-legend flash-note", scale));
    const title = "The errors, as they come out";
    this.element = panel("eight-maps", title, this.hint, this.S.element, this.weights.element, last);
  }

  /**
   * @param {Result} result
   * @param {Numbers} numbers
   */
  take({ rows, cols, shown, setting }, numbers) {
    this.S.take(difference(numbers.S_now, numbers.S), rows, shown);
    this.weights.take(difference(numbers.weights_now, numbers.weights), rows, shown);
    this.O.take(difference(numbers.O_now, numbers.O), rows, cols);
    setText(this.hint, `the first ${shown} of ${setting.N} keys; point, or use the arrow keys`);
  }

  /** @param {Colours} colour */
  paint(colour) {
    for (const map of [this.S, this.weights, this.O]) map.paint(colour);
  }

  /** @param {Place} place */
  choose({ row, key, column }) {
    this.S.choose(row, key);
    this.weights.choose(row, key);
    this.O.choose(row, column);
  }
}
