/** @import { Access, Tensor } from "./types.js" */
/** @import { Place } from "./places.js" */
import { put, svg } from "../shared/elements.js";
import { fold, windowOf } from "./layout.js";
import { markOf } from "./places.js";

const CELL = { most: 30, read: 24, least: 9, high: 22, low: 10, sign: 6.6 }; // px; of a sign of a number
const EDGE = { left: 22, top: 16 }; // px, of the numbers of rows and columns
const VECTOR_GAP = 3; // px, between rows of a vector that has no room in one
const MOST_ROWS = 24;
const NOWHERE = -1000; // the row of a place that is not drawn
const MARKS = ["load", "store", "masked", "wrong"];

/** The elements of a tensor as a matrix, each with its offset; lit are those that the program touches. */
export class Matrix {
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
    this.texts = svg("g", {});
    this.svg = svg("svg", { class: "flash-programs-matrix", role: "img" }, defs, Object.values(this.marks), this.beyond, this.cells, this.edges, this.texts);
  }

  /**
   * @param {Tensor} tensor
   * @param {Access | undefined} access
   * @param {Place[]} lanes
   * @param {Map<string, number>} owners the program of each element, by row and column
   * @param {number} room
   */
  draw(tensor, access, lanes, owners, room) {
    const { place, size, shown, names } = tensor.shape.length < 2 ? this.#vector(tensor, lanes, room) : this.#matrix(tensor, lanes, room);
    const [wide, high] = size;
    const box = ([x, y]) => `M${x + 0.5} ${y + 0.5}h${wide - 1}v${high - 1}h${1 - wide}z`;
    const base = access?.base ?? 0;
    const [stride, step] = tensor.shape.length < 2 ? [0, tensor.strides[0] ?? 0] : tensor.strides.slice(-2);
    const drawn = { load: "", store: "", masked: "", wrong: "" };
    const texts = new Map(); // by place: what is written there, and how
    const programs = new Map(); // by place
    const cells = shown.map(([row, column]) => {
      const at = place(row, column);
      programs.set(String(at), owners.get(`${row},${column}`));
      texts.set(String(at), [at, String(base + row * stride + column * step), ""]);
      return box(at);
    });
    let beyond = "";
    for (const { offset, state, row, column } of lanes) {
      const at = row === NOWHERE ? null : place(row, column);
      if (!at) continue;
      const mark = markOf(this.kind, state);
      drawn[mark] += box(at);
      if (!texts.has(String(at))) beyond += box(at);
      texts.set(String(at), [at, String(offset), mark]);
    }
    put(this.cells, "d", cells.join(""));
    put(this.edges, "d", edges(programs, size, tensor.shape.length < 2 ? VECTOR_GAP : 0));
    put(this.beyond, "d", beyond);
    for (const mark of MARKS) put(this.marks[mark], "d", drawn[mark]);
    const written = [...texts.values()].flatMap(([[x, y], text, mark]) => {
      const shownText = mark === "wrong" ? `✕${text}` : text;
      const fits = high >= 14 && CELL.sign * shownText.length <= wide;
      const short = fits ? shownText : mark === "wrong" && wide >= CELL.least ? "✕" : "";
      const at = { x: x + wide / 2, y: y + high / 2 + 4, "data-mark": mark || false };
      return short ? [svg("text", { class: "flash-programs-offset", ...at }, short)] : [];
    });
    this.texts.replaceChildren(...written, ...names);
    const ends = [...texts.values()].map(([[x, y]]) => [x + wide, y + high]);
    const [right, bottom] = [0, 1].map((k) => Math.max(0, ...ends.map((end) => end[k])) + 1);
    put(this.svg, "viewBox", `0 0 ${right} ${bottom}`);
    put(this.svg, "width", String(right));
    put(this.svg, "height", String(bottom));
  }

  /** A vector: its elements side by side, in several rows if they have no room in one. */
  #vector(tensor, lanes, room) {
    const [, , first, end] = tensor.around;
    const wide = fold(end - first, room, CELL.read);
    const size = [Math.min(CELL.most, Math.floor(room / wide)), CELL.high];
    const rows = Math.ceil((end - first) / wide);
    const touched = lanes.filter(({ row }) => row !== NOWHERE).map(({ column }) => Math.floor((column - first) / wide));
    const seen = [Math.min(...touched, rows), Math.max(...touched, -1) + 1];
    const [from, to] = windowOf([0, rows], touched.length ? seen : [0, 1], MOST_ROWS);
    const place = (_, column) => {
      const [x, y] = [(column - first) % wide, Math.floor((column - first) / wide)];
      return y >= from && y < to ? [x * size[0], (y - from) * (size[1] + VECTOR_GAP)] : null;
    };
    const low = Math.max(0, first + from * wide);
    const count = Math.min(tensor.columns, first + to * wide) - low;
    const shown = Array.from({ length: Math.max(count, 0) }, (_, k) => [0, low + k]);
    return { place, size, shown, names: [] };
  }

  /** A matrix: all of it, or the rows and columns around what is touched. */
  #matrix(tensor, lanes, room) {
    const [top, bottom, left, right] = tensor.around;
    const here = lanes.filter(({ row }) => row !== NOWHERE);
    const seen = (name, low) => {
      const all = here.map((place) => place[name]);
      return all.length ? [Math.min(...all), Math.max(...all) + 1] : [low, low + 1];
    };
    const [first, end] = windowOf([left, right], seen("column", left), Math.floor((room - EDGE.left) / CELL.least));
    const [from, to] = windowOf([top, bottom], seen("row", top), MOST_ROWS);
    const wide = Math.min(CELL.most, Math.floor((room - EDGE.left) / Math.max(end - first, 1)));
    const size = [wide, wide >= 14 ? CELL.high : CELL.low];
    const place = (row, column) =>
      row >= from && row < to && column >= first && column < end
        ? [EDGE.left + (column - first) * size[0], EDGE.top + (row - from) * size[1]]
        : null;
    const range = (low, high) => Array.from({ length: Math.max(high - low, 0) }, (_, k) => low + k);
    const rows = range(Math.max(from, 0), Math.min(to, tensor.rows));
    const columns = range(Math.max(first, 0), Math.min(end, tensor.columns));
    const every = wide >= 14 ? 1 : Math.ceil(20 / wide);
    const tall = size[1] >= 14 ? 1 : 2;
    const name = (x, y, text) => svg("text", { class: "flash-programs-name", x, y }, String(text));
    const names = [
      ...rows.filter((row) => row % tall === 0).map((row) => name(EDGE.left - 12, EDGE.top + (row - from + 0.5) * size[1] + 4, row)),
      ...columns.filter((column) => column % every === 0).map((column) => name(EDGE.left + (column - first + 0.5) * size[0], 11, column)),
    ];
    return { place, size, shown: rows.flatMap((row) => columns.map((column) => [row, column])), names };
  }
}

/**
 * The edges between elements that different programs touch: so each has its block.
 * @param {Map<string, number | undefined>} programs by place
 * @param {number[]} size of an element
 * @param {number} gap between rows
 */
function edges(programs, [wide, high], gap) {
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
