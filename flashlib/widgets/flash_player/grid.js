// S: the grid of tiles, each still to come, in SRAM now, computed and dropped, cut by the mask, or skipped.

/** @import { Colours } from "../shared/colours.js" */
/** @import { Trace } from "./frames.js" */
/** @import { At } from "./types.js" */
import { div, h, note, panel, setSentence, setText, svg } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { roomOf } from "./labels.js";
import { mark } from "./legend.js";
import { Matrix } from "./matrix.js";

const GRID = { room: 128, cell: 30 }; // px, for S and for one of its cells
const LARGE = { room: 254, cell: 42, height: 26 }; // the same where S is the main panel
const BESIDE = { left: 30, top: 16 }; // px, for the numbers of blocks; words take what they need

export class Grid {
  static key = () => 0;

  /** @type {Trace<any>} */
  frames;
  /** @type {number | null} */
  drawn;
  /** @type {number} */
  width;
  /** @type {number} */
  height;
  /** @type {Map<number, number>} */
  first;
  /** @type {string} */
  marked;

  /**
   * pressed: called with the index of the step whose tile was clicked; room: for S, in pixels; large: S is the main
   * panel, and its tile shows the weights once they are computed.
   * @param {(k: number) => void} pressed
   * @param {number} [room]
   * @param {{ large?: boolean }} [options]
   */
  constructor(pressed, room = GRID.room, { large = false } = {}) {
    this.room = large ? LARGE.room : room;
    this.large = large;
    this.current = new Matrix("S_ij in S");
    this.here = div("flash-here flash-tile-now", this.current.element);
    this.where = note();
    const { defs, fill } = hatch();
    const path = (name) => svg("path", { class: `flash-${name}` });
    this.paths = { // of tiles, one for each kind of them
      done: path("done"),
      hidden: path("hidden"),
      skipped: path("skipped"),
      crosses: path("crosses"), // through the skipped ones
      missed: path("missed"),
      lines: path("lines"),
      boundary: path("boundary"),
    };
    this.paths.hidden.style.fill = fill;
    this.picture = svg("svg", { class: "flash-tiling", role: "img" }, defs, Object.values(this.paths));
    this.field = div("flash-grid-field", this.picture, this.here);
    this.field.addEventListener("click", (event) => {
      const k = this.first.get(this.#under(event));
      if (k !== undefined) pressed(k);
    });
    this.labels = { j: h("div", {}), i: h("div", {}) };
    this.marks = div("flash-tile-marks flash-note");
    this.title = h("span", {});
    this.axes = div("flash-axes", this.field, Object.values(this.labels));
    this.element = panel("grid", this.title, this.where, div("flash-map", this.axes, this.marks));
  }

  /** @param {Trace<any>} frames */
  take(frames) {
    this.frames = frames;
    this.drawn = null;
    const scores = "S = Q K^T · scale";
    setSentence(this.title, frames.changed ? `${scores}, changed by the mask` : scores);
    const { N_q, N_k, B_r, B_c, T_r, T_c, steps, learner } = frames;
    const { cell, height: high } = this.large ? LARGE : { ...GRID, height: GRID.cell };
    this.width = between(1, this.room / Math.max(N_k, 1), cell);
    this.height = between(1, this.room / Math.max(N_q, 1), high);
    this.width = Math.min(this.width, Math.max(12, 1.5 * this.height)); // not too far from square
    this.height = Math.min(this.height, Math.max(12, 1.2 * this.width));
    const { width, height, picture } = this;
    this.first = new Map(); // step of each tile
    for (let k = steps.length - 1; k >= 0; k--) this.first.set(steps[k].i * T_c + steps[k].j, k);
    const numbers = width >= 27 && height >= 15 && B_r * B_c <= 256;
    this.current.resize({ rows: B_r, cols: B_c, width, height, numbers });
    const [W, H] = [N_k * width, N_q * height];
    Object.assign(this.field.style, { width: `${W}px`, height: `${H}px` });
    picture.setAttribute("width", W);
    picture.setAttribute("height", H);
    picture.setAttribute("aria-label", `S, ${N_q} by ${N_k}, in ${T_r} by ${T_c} tiles`);
    const missed = new Set((learner?.missed ?? []).map(([i, j]) => i * T_c + j));
    const isSkipped = (tile) => !this.first.has(tile) && !missed.has(tile);
    const paths = {
      skipped: this.#path(isSkipped),
      crosses: this.#crosses(isSkipped),
      hidden: this.#hidden(),
      missed: this.#path((tile) => missed.has(tile)),
      lines: this.#lines(),
      boundary: this.#boundary(),
    };
    for (const [name, path] of Object.entries(paths)) this.paths[name].setAttribute("d", path);
    const { keyWords, rowWords } = frames;
    const room = { left: rowWords ? roomOf(rowWords) : BESIDE.left, top: BESIDE.top };
    this.axes.classList.toggle("flash-worded", Boolean(keyWords));
    if (keyWords && rowWords) {
      const across = roomOf(keyWords);
      const upright = across > width;
      this.labels.j.classList.toggle("flash-upright", upright);
      if (upright) room.top = across;
      this.#label("left", keyWords, 1, N_k, width, upright ? 13 : across);
      this.#label("top", rowWords, 1, N_q, height, 13);
    } else {
      const names = (name, T) => Array.from({ length: T }, (_, k) => `${name}=${k}`);
      this.#label("left", names("j", T_c), B_c, N_k, width, T_c > 10 ? 30 : 24); // px, of j=10 or of j=1
      this.#label("top", names("i", T_r), B_r, N_q, height, 14);
    }
    for (const [side, pixels] of Object.entries(room)) this.axes.style.setProperty(`--axis-${side}`, `${pixels}px`);
    this.#mark();
  }

  /**
   * The outline of all tiles for which `is` holds, neighbours as one.
   * @param {(tile: number) => boolean} is
   */
  #path(is) {
    const { N_q, N_k, B_r, B_c, T_r, T_c } = this.frames;
    let path = "";
    for (let i = 0; i < T_r; i++) {
      const [top, bottom] = [i * B_r, Math.min((i + 1) * B_r, N_q)];
      /** @type {number | null} */
      let start = null;
      for (let j = 0; j <= T_c; j++) {
        const inside = j < T_c && is(i * T_c + j);
        if (inside && start === null) start = j;
        if (inside || start === null) continue;
        const [left, right] = [start * B_c * this.width, Math.min(j * B_c, N_k) * this.width];
        path += `M${left} ${top * this.height}H${right}V${bottom * this.height}H${left}z`;
        start = null;
      }
    }
    return path;
  }

  /**
   * The diagonals of each tile for which `is` holds.
   * @param {(tile: number) => boolean} is
   */
  #crosses(is) {
    const { N_q, N_k, B_r, B_c, T_r, T_c } = this.frames;
    let path = "";
    for (let tile = 0; tile < T_r * T_c; tile++) {
      if (!is(tile)) continue;
      const [i, j] = [Math.floor(tile / T_c), tile % T_c];
      const [top, bottom] = [i * B_r, Math.min((i + 1) * B_r, N_q)].map((row) => row * this.height);
      const [left, right] = [j * B_c, Math.min((j + 1) * B_c, N_k)].map((column) => column * this.width);
      path += `M${left} ${top}L${right} ${bottom}M${left} ${bottom}L${right} ${top}`;
    }
    return path;
  }

  #lines() {
    const { N_q, N_k, B_r, B_c, T_r, T_c } = this.frames;
    let path = "";
    for (let i = 0; i <= T_r && N_k; i++) path += `M0 ${Math.min(i * B_r, N_q) * this.height}H${N_k * this.width}`;
    for (let j = 0; j <= T_c && N_q; j++) path += `M${Math.min(j * B_c, N_k) * this.width} 0V${N_q * this.height}`;
    return path;
  }

  /** The border of the seen scores: at both ends of each masked run, and where a row's ends differ from the next row's. */
  #boundary() {
    const { N_k, masked } = this.frames;
    const { width, height } = this;
    let path = "";
    masked.forEach((ends, r) => {
      for (const c of ends) if (c > 0 && c < N_k) path += `M${c * width} ${r * height}v${height}`;
      // Where one of two rows is masked and the other is not: every other run between the ends of both.
      const turns = r ? [...masked[r - 1], ...ends].sort((a, b) => a - b) : [];
      for (let k = 0; k < turns.length; k += 2)
        if (turns[k] < turns[k + 1]) path += `M${turns[k] * width} ${r * height}H${turns[k + 1] * width}`;
    });
    return path;
  }

  /** Everything that is masked, rows with the same ends as one. */
  #hidden() {
    const { masked } = this.frames;
    let path = "";
    for (let r = 0, next; r < masked.length; r = next) {
      for (next = r + 1; masked[next]?.join() === masked[r].join(); ) next++;
      for (let k = 0; k < masked[r].length; k += 2) {
        const [left, right] = [masked[r][k] * this.width, masked[r][k + 1] * this.width];
        path += `M${left} ${r * this.height}H${right}V${next * this.height}H${left}z`;
      }
    }
    return path;
  }

  /**
   * The tile under the pointer, as i * T_c + j.
   * @param {MouseEvent} event
   */
  #under(event) {
    const { B_r, B_c, T_c } = this.frames;
    const box = this.field.getBoundingClientRect();
    const scale = box.width / this.field.offsetWidth; // of a zoomed page
    const [x, y] = [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
    return Math.floor(y / this.height / B_r) * T_c + Math.floor(x / this.width / B_c);
  }

  /**
   * Label the blocks of B into which N is cut, as many as fit if each label takes `room` pixels.
   * @param {"left" | "top"} side
   * @param {string[]} names
   * @param {number} B
   * @param {number} N
   * @param {number} size of a row or column, in pixels
   * @param {number} room
   */
  #label(side, names, B, N, size, room) {
    const every = Math.ceil(room / (B * size));
    const axis = side === "left" ? "j" : "i";
    const { children } = this.labels[axis];
    const count = Math.ceil(names.length / every);
    while (children.length > count) children[count].remove();
    while (children.length < count)
      this.labels[axis].append(h("span", { class: `flash-label flash-label-${axis}` }, ""));
    /** @type {HTMLElement[]} */ ([...children]).forEach((label, n) => {
      const k = n * every;
      setText(label, names[k]);
      label.title = names[k];
      const middle = (k) => ((k * B + Math.min((k + 1) * B, N)) / 2) * size;
      label.style[side] = `${middle(k)}px`;
      label.hidden = n > 0 && middle(k) - middle(k - every) < room; // the last block may be small
    });
  }

  /** What each mark means; only the marks that can occur. */
  #mark() {
    const { masked, T, T_r, T_c, learner } = this.frames;
    const kinds = [
      ["now", "now"],
      ["done", "dropped"],
      ["pending", "to come"],
      ...(T < T_r * T_c ? [["skipped", "tile skipped"]] : []),
      ...(masked.some((ends) => ends.length) ? [["cut", "score masked"]] : []),
      ...(learner?.missed.length ? [["missed", "missed"]] : []),
    ];
    if (this.marked === kinds.join()) return;
    this.marked = kinds.join();
    this.marks.replaceChildren(...kinds.map(([state, text]) => mark(state, text)));
  }

  /**
   * @param {At<any>} at
   * @param {Colours} colour
   */
  draw({ k, step, part, reached }, colour) {
    const { T_r, T_c, numbers, peaks, steps } = this.frames;
    if (this.drawn !== k) {
      const done = new Set(steps.slice(0, k).map((step) => step.i * T_c + step.j));
      const path = this.#path((tile) => done.has(tile));
      this.paths.done.setAttribute("d", path);
      this.drawn = k;
    }
    this.here.hidden = !step;
    const tiles = `${T_r} × ${T_c} tiles`;
    const isWeights = this.large && reached("weights");
    const tile = isWeights ? "the tile shows P_ij, weights" : "the tile shows S_ij, scores";
    if (!step) setSentence(this.where, tiles);
    else setSentence(this.where, this.large ? tile : `tile (${step.i}, ${step.j}) of ${tiles}`);
    if (!step) return;
    Object.assign(this.here.style, {
      left: `${step.cols[0] * this.width}px`,
      top: `${step.rows[0] * this.height}px`,
      width: `${step.n_c * this.width}px`,
      height: `${step.n_r * this.height}px`,
    });
    if (reached("scores") && part !== "store") {
      const [offset, peak] = isWeights ? [step.P_ij, peaks.P] : [step.S_ij, peaks.S];
      this.current.draw(numbers, offset, step.n_r, step.n_c, peak, colour, this.large ? step.S_ij : undefined);
    } else this.current.clear();
  }

  /**
   * The row and the column of the score of the tile that a pointer is at, null for none.
   * @param {MouseEvent} event
   */
  scoreUnder(event) {
    const { target } = event;
    return target instanceof Node && this.field.contains(target) ? this.current.under(event) : null;
  }
}

/** A pattern for what the mask cuts. It is referenced by id, so each picture has its own. */
function hatch() {
  const id = `flash-hatch-${Math.random().toString(36).slice(2)}`;
  const line = svg("path", { d: "M-1 1L1 -1M0 6L6 0M5 7L7 5" });
  const pattern = svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, line);
  return { defs: svg("defs", {}, pattern), fill: `url(#${id})` };
}
