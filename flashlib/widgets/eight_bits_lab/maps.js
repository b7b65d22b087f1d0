/** @import { Colours } from "../shared/colours.js" */
/** @import { Numbers, Place, Result } from "./types.js" */
import { div, h, note, panel, setText, typeset } from "../shared/elements.js";
import { between, short } from "../shared/number_text.js";
import { pictureOf } from "../shared/picture.js";

const FULL = 0.95; // of the errors have less than full colour

const difference = (now, exact) => now.map((x, k) => x - exact[k]);

/** The error of a matrix as a picture, with a mark on one number. */
class ErrorMap {
  /** @type {Float64Array} */
  values;
  /** @type {number} */
  rows;
  /** @type {number} */
  columns;
  /** @type {number} the size from which a colour is full: a few large errors must not leave the others dark */
  full;

  /**
   * @param {string} name
   * @param {any} title
   * @param {(place: [row: number, column: number] | null, pressed: boolean) => void} pointed
   */
  constructor(name, title, pointed) {
    this.name = name;
    this.mark = h("b", {});
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
    const sizes = values.map(Math.abs).sort();
    this.full = sizes[Math.floor(FULL * (sizes.length - 1))] || sizes[sizes.length - 1];
    const most = short(sizes[sizes.length - 1]);
    setText(this.peak, `up to ±${most}; full colour from ±${short(this.full)} on`);
    this.field.setAttribute("aria-label", `error of ${this.name}, ${rows} by ${columns}, up to ${most}`);
  }

  /** @param {Colours} colour */
  paint(colour) {
    const pixels = Uint32Array.from(this.values, (x) => colour.pixel(x, this.full));
    this.field.style.backgroundImage = pictureOf(pixels, this.columns, this.rows);
  }

  /** @param {number} row @param {number} column @param {number} rows @param {number} columns */
  choose(row, column, rows, columns) {
    const percent = (k, count) => `${(100 * k) / count}%`;
    const { style } = this.mark;
    [style.left, style.top] = [percent(column, columns), percent(row, rows)];
    [style.width, style.height] = [percent(1, columns), percent(1, rows)];
  }
}

/** The errors of S, of the weights and of O. */
export class Maps {
  /** @param {(place: Partial<Place> | null, pressed: boolean) => void} pointed */
  constructor(pointed) {
    const ofKeys = (at, pressed) => pointed(at && { row: at[0], key: at[1] }, pressed);
    const ofColumns = (at, pressed) => pointed(at && { row: at[0], column: at[1] }, pressed);
    this.S = new ErrorMap("S", typeset("scores S"), ofKeys);
    this.weights = new ErrorMap("weights", typeset("weights P / l"), ofKeys);
    this.O = new ErrorMap("O", typeset("output O"), ofColumns);
    this.hint = note();
    const [scores, output] = [scale("rows: queries; columns: keys"), scale("rows: queries; columns: channels")];
    const title = "Errors: result minus exact value";
    this.scores = panel("eight-maps", title, this.hint, this.S.element, this.weights.element, scores);
    const how = note("point, or use the arrow keys, page up and page down");
    this.output = panel("eight-maps", title, how, this.O.element, output);
  }

  /**
   * The errors of S and of the weights.
   * @param {Result} result
   * @param {Numbers} numbers
   * @param {Colours | null} colour
   */
  drawScores({ rows, shown, setting }, numbers, colour) {
    this.S.take(difference(numbers.S_now, numbers.S), rows, shown);
    this.weights.take(difference(numbers.weights_now, numbers.weights), rows, shown);
    setText(this.hint, `the first ${shown} of ${setting.N} keys; point, or use the arrow keys`);
    if (!colour) return;
    this.S.paint(colour);
    this.weights.paint(colour);
  }

  /**
   * The errors of O.
   * @param {Result} result
   * @param {Numbers} numbers
   * @param {Colours | null} colour
   */
  drawOutput({ rows, cols }, numbers, colour) {
    this.O.take(difference(numbers.O_now, numbers.O), rows, cols);
    if (colour) this.O.paint(colour);
  }

  /**
   * @param {Place} place
   * @param {Result} result
   */
  choose({ row, key, column }, { rows, shown, cols }) {
    this.S.choose(row, key, rows, shown);
    this.weights.choose(row, key, rows, shown);
    this.O.choose(row, column, rows, cols);
  }
}

/** @param {string} sides what its rows and columns are */
function scale(sides) {
  const samples = [-1, -0.5, -0.2, 0, 0.2, 0.5, 1].map((t) => h("b", { "data-t": t }));
  const words = h("span", {}, "too small", h("span", { class: "flash-scale" }, samples), "too large");
  return div("flash-legend flash-note", words, h("span", {}, sides));
}
