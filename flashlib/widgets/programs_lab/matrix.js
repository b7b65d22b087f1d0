/** @import { Access, Tensor } from "./types.js" */
/** @import { Corner, Frame } from "./frame.js" */
/** @import { Place } from "./places.js" */
import { put, svg } from "../shared/elements.js";
import { frameOf } from "./frame.js";
import { markOf } from "./places.js";
import { Texts } from "./texts.js";

const LETTER = { plain: 6.6, bold: 7.2 }; // px, of a sign of a number
const READABLE = 14; // px, of an element in which a number can be read
const MARKS = ["load", "store", "masked", "wrong"];

/** The elements of a tensor as a matrix, each with its offset; lit are those that the program touches. */
export class Matrix {
  /** Whether the number of each place can be read. */
  isLegible = false;

  /** @param {string} kind */
  constructor(kind) {
    this.kind = kind;
    const path = (name) => svg("path", { class: `flash-programs-${name}` });
    this.marks = Object.fromEntries(MARKS.map((mark) => [mark, path(mark)]));
    const { defs, fill } = slanted();
    this.marks.masked.style.fill = fill;
    this.cells = path("cells");
    this.beyond = path("beyond");
    this.edges = path("edges");
    this.texts = new Texts();
    const drawn = [Object.values(this.marks), this.beyond, this.cells, this.edges, this.texts.group];
    this.svg = svg("svg", { class: "flash-programs-matrix", role: "img" }, defs, drawn);
  }

  /**
   * @param {Tensor} tensor
   * @param {Access | undefined} access
   * @param {Place[]} places
   * @param {Map<string, number>} owners the program of each element, by row and column
   * @param {number} room px
   */
  draw(tensor, access, places, owners, room) {
    const frame = frameOf(tensor, places, room);
    const box = ([x, y]) => `M${x + 0.5} ${y + 0.5}h${frame.wide - 1}v${frame.high - 1}h${1 - frame.wide}z`;
    /** @type {Map<string, { at: Corner, text: string, mark: string }>} */
    const written = new Map();
    const programs = new Map();
    for (const [row, column] of frame.shown) {
      const at = /** @type {Corner} */ (frame.place(row, column));
      written.set(String(at), { at, text: String(offsetOf(tensor, access, row, column)), mark: "" });
      programs.set(String(at), owners.get(`${row},${column}`));
    }
    const cells = [...written.values()].map(({ at }) => box(at));
    const drawn = { load: "", store: "", masked: "", wrong: "", beyond: "" };
    for (const { offset, state, row, column } of places) {
      const at = frame.place(row, column);
      if (!at) continue;
      const mark = markOf(this.kind, state);
      drawn[mark] += box(at);
      if (!written.has(String(at))) drawn.beyond += box(at);
      written.set(String(at), { at, text: mark === "wrong" ? `✕${offset}` : String(offset), mark });
    }
    put(this.cells, "d", cells.join(""));
    put(this.beyond, "d", drawn.beyond);
    put(this.edges, "d", edges(programs, frame));
    for (const mark of MARKS) put(this.marks[mark], "d", drawn[mark]);
    this.isLegible = places.every(({ row, column }) => frame.place(row, column)) && frame.high >= READABLE;
    this.#write([...written.values()], frame);
  }

  /** Write the numbers for which there is room, and make the picture as large as what is drawn. */
  #write(written, { wide, high, names }) {
    const numbers = written.flatMap(({ at: [x, y], text: number, mark }) => {
      const fits = high >= READABLE && (mark ? LETTER.bold : LETTER.plain) * number.length + 3 <= wide;
      if (mark && !fits) this.isLegible = false;
      const shown = fits ? number : mark === "wrong" ? "✕" : "";
      return shown ? [{ x: x + wide / 2, y: y + high / 2 + 4, text: shown, name: "offset", mark }] : [];
    });
    this.texts.draw([...names.map((one) => ({ ...one, name: "name" })), ...numbers]);
    const [right, bottom] = written.reduce(([a, b], { at: [x, y] }) => [Math.max(a, x + wide), Math.max(b, y + high)], [0, 0]);
    put(this.svg, "viewBox", `0 0 ${right + 1} ${bottom + 1}`);
    put(this.svg, "width", String(right + 1));
    put(this.svg, "height", String(bottom + 1));
  }
}

/**
 * The offset of an element.
 * @param {Tensor} tensor
 * @param {Access | undefined} access
 */
function offsetOf({ shape, strides }, access, row, column) {
  const [down, across] = shape.length < 2 ? [0, strides[0] ?? 0] : strides.slice(-2);
  return (access?.base ?? 0) + row * down + column * across;
}

/**
 * The edges between elements that different programs touch: so each has its block.
 * @param {Map<string, number | undefined>} programs by place
 * @param {Frame} frame
 */
function edges(programs, { wide, high, gap }) {
  const lines = [...programs].map(([place, program]) => {
    const [x, y] = place.split(",").map(Number);
    const differs = (...other) => programs.has(String(other)) && programs.get(String(other)) !== program;
    const right = differs(x + wide, y) ? `M${x + wide} ${y}v${high}` : "";
    return right + (!gap && differs(x, y + high) ? `M${x} ${y + high}h${wide}` : "");
  });
  return lines.join("");
}

/** A pattern for what is masked. It is found by its id, so each picture has one of its own. */
function slanted() {
  const id = `flash-programs-${Math.random().toString(36).slice(2)}`;
  const line = svg("path", { d: "M-1 1L1 -1M0 6L6 0M5 7L7 5" });
  const pattern = svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, line);
  return { defs: svg("defs", {}, pattern), fill: `url(#${id})` };
}
