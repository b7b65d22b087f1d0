/** @import { Result } from "./types.js" */
import { svg } from "../shared/elements.js";
import { upTo } from "./settings.js";

const PLACE = { side: 384, left: 34, top: 38, cell: 24, strip: 14 }; // units of the picture; of a cell at most

/** The scores, cut into tiles: hatched if masked, filled if computed; and one row of them. */
export class Scores {
  /** @type {number} */
  wide;
  /** @type {number} */
  high;
  /** @type {number} */
  N_q;
  /** @type {number} */
  N_k;
  /** @type {[number, number][][]} of each row: the columns it sees, from and to */
  runs;

  /**
   * moved: called with the row under the pointer, or null; pressed: called with a row that was clicked.
   * @param {(row: number | null) => void} moved
   * @param {(row: number) => void} pressed
   */
  constructor(moved, pressed) {
    const path = (name) => svg("path", { class: `flash-mask-${name}` });
    const group = (name) => svg("g", { class: `flash-mask-${name}` });
    const { defs, fill } = hatching();
    this.tiles = {
      hidden: path("hidden"),
      computed: path("computed"),
      cut: path("cut"),
      seen: path("seen"),
      lines: path("lines"),
      corners: path("corners"),
    };
    this.sees = path("sees");
    this.row = path("row");
    for (const hatched of [this.tiles.hidden, this.tiles.cut]) hatched.style.fill = fill;
    this.pack = group("pack");
    this.columns = group("columns");
    this.rows = group("rows");
    this.strip = group("strip");
    const tiles = [...Object.values(this.tiles), this.sees, this.row];
    const height = PLACE.top + PLACE.side + 30;
    this.picture = svg(
      "svg",
      { viewBox: `0 0 ${PLACE.left + PLACE.side + 8} ${height}`, role: "img" },
      defs,
      [this.pack, this.columns, this.rows],
      svg("g", { transform: `translate(${PLACE.left} ${PLACE.top})` }, tiles),
      this.strip,
    );
    this.picture.addEventListener("pointermove", (event) => moved(this.#under(event)));
    this.picture.addEventListener("pointerleave", () => moved(null));
    this.picture.addEventListener("click", (event) => {
      const row = this.#under(event);
      if (row !== null) pressed(row);
    });
    this.fill = fill;
  }

  /**
   * Draw what does not depend on the row.
   * @param {Result} result
   */
  take({ setting, runs, kinds, tiles, lengths }) {
    const { N_q, N_k, B_r, B_c } = setting;
    const [wide, high] = [PLACE.side / N_k, PLACE.side / N_q].map((size) => Math.min(size, PLACE.cell));
    this.wide = Math.min(wide, 3 * high);
    this.high = Math.min(high, 3 * wide);
    this.N_q = N_q;
    this.N_k = N_k;
    this.runs = unpackRuns(runs, N_q);
    const [right, bottom] = [this.wide * N_k, this.high * N_q];
    const of = (letter) => this.#tiles(kinds, B_r, B_c, letter);
    const lines = [
      ...upTo(0, kinds[0].length).map((j) => `M${Math.min(j * B_c, N_k) * this.wide} 0V${bottom}`),
      ...upTo(0, kinds.length).map((i) => `M0 ${Math.min(i * B_r, N_q) * this.high}H${right}`),
    ];
    const drawn = {
      hidden: of("h"),
      computed: of("w") + of("c"),
      cut: of("c"),
      seen: this.runs.map((row, r) => this.#runs(row, r * this.high, this.high)).join(""),
      lines: lines.join(""),
      corners: this.#corners(kinds, B_r, B_c),
    };
    for (const [name, d] of Object.entries(drawn)) this.tiles[name].setAttribute("d", d);
    this.#number(this.columns, kinds[0].length, B_c, N_k, this.wide, 18, "j", (at) => [PLACE.left + at, 31]);
    this.#number(this.rows, kinds.length, B_r, N_q, this.high, 13, "i", (at) => [24, PLACE.top + at + 4]);
    this.#pack(lengths);
    const label = `S, ${N_q} by ${N_k}: ${tiles.whole} tiles whole, ${tiles.cut} cut, ${tiles.hidden} hidden`;
    this.picture.setAttribute("aria-label", label);
  }

  /**
   * Draw one row: in the scores, and enlarged below them.
   * @param {number} row
   */
  draw(row) {
    const [y, right] = [row * this.high, this.wide * this.N_k];
    const below = PLACE.top + this.high * this.N_q + 12;
    this.sees.setAttribute("d", this.#runs(this.runs[row], y, this.high));
    this.row.setAttribute("d", `M-2 ${y - 1}H${right + 2}V${y + this.high + 1}H-2z`);
    const frame = `M0 0H${right}V${PLACE.strip}H0z`;
    this.strip.setAttribute("transform", `translate(${PLACE.left} ${below})`);
    this.strip.replaceChildren(
      svg("path", { d: frame, style: `fill:${this.fill}` }),
      svg("path", { class: "flash-mask-sees", d: this.#runs(this.runs[row], 0, PLACE.strip) }),
      svg("path", { class: "flash-mask-frame", d: frame }),
      svg("text", { class: "flash-mask-number", x: -10, y: 11 }, String(row)),
    );
  }

  /** The tiles of a kind, neighbours as one. */
  #tiles(kinds, B_r, B_c, letter) {
    return kinds
      .map((row, i) => {
        const [top, bottom] = [i * B_r, Math.min((i + 1) * B_r, this.N_q)].map((r) => r * this.high);
        const beside = [...row.matchAll(letter === "h" ? /h+/g : letter === "c" ? /c+/g : /w+/g)];
        const ends = beside.map(({ 0: { length }, index }) => [index * B_c, Math.min((index + length) * B_c, this.N_k)]);
        return this.#runs(ends, top, bottom - top);
      })
      .join("");
  }

  #runs(runs, top, height) {
    const box = ([start, end]) => `M${start * this.wide} ${top}H${end * this.wide}v${height}H${start * this.wide}z`;
    return runs.map(box).join("");
  }

  /** A filled corner on each cut tile. */
  #corners(kinds, B_r, B_c) {
    const size = Math.min(8, (B_r * this.high) / 2, (B_c * this.wide) / 2);
    if (size < 2) return "";
    const corner = (i, j) => {
      const right = Math.min((j + 1) * B_c, this.N_k) * this.wide;
      return `M${right} ${i * B_r * this.high}v${size}l${-size} ${-size}z`;
    };
    return kinds.map((row, i) => [...row].map((kind, j) => (kind === "c" ? corner(i, j) : "")).join("")).join("");
  }

  /** Number the T blocks of B into which N is cut, as many as fit if each takes `room`; `at` gives their places. */
  #number(element, T, B, N, size, room, name, at) {
    const every = Math.ceil(room / (B * size));
    const shown = upTo(0, Math.floor((T - 1) / every)).map((n) => n * every);
    const places = shown.map((k) => at(((k * B + Math.min((k + 1) * B, N)) / 2) * size));
    const texts = shown.map((k, n) => svg("text", { class: "flash-mask-number", x: places[n][0], y: places[n][1] }, String(k)));
    const [x, y] = name === "j" ? [24, 31] : [8, PLACE.top + 12];
    element.replaceChildren(svg("text", { class: "flash-mask-number flash-mask-name", x, y }, name), ...texts);
  }

  /** The documents of a pack, above their keys. */
  #pack(lengths) {
    let start = 0;
    const parts = (lengths ?? []).flatMap((length, k) => {
      const [x, width] = [PLACE.left + start * this.wide, length * this.wide];
      start += length;
      const box = svg("rect", { class: "flash-mask-document", "data-odd": k % 2 === 1, x, y: 3, width, height: 15 });
      box.append(svg("title", {}, `document ${k}: ${length} tokens`));
      const text = svg("text", { class: "flash-mask-number flash-mask-length", x: x + width / 2, y: 14.5 }, String(length));
      return width > 8 * String(length).length + 2 ? [box, text] : [box];
    });
    this.pack.replaceChildren(...parts);
  }

  /** The row under the pointer, or null. */
  #under(event) {
    const box = this.picture.getBoundingClientRect();
    const scale = box.width / this.picture.viewBox.baseVal.width;
    const x = (event.clientX - box.left) / scale - PLACE.left;
    const row = Math.floor(((event.clientY - box.top) / scale - PLACE.top) / this.high);
    return row >= 0 && row < this.N_q && x >= 0 && x <= this.N_k * this.wide ? row : null;
  }
}

/**
 * The runs of each row.
 * @param {DataView} bytes
 * @param {number} N
 * @returns {[number, number][][]}
 */
function unpackRuns({ buffer, byteOffset, byteLength }, N) {
  const all = new Int32Array(buffer.slice(byteOffset, byteOffset + byteLength)); // a copy, for its alignment
  let at = N;
  return Array.from(all.subarray(0, N), (count) => Array.from({ length: count }, () => [all[at++], all[at++]]));
}

/** A pattern for masked scores. It is referenced by id, so each picture has its own. */
function hatching() {
  const id = `flash-mask-${Math.random().toString(36).slice(2)}`;
  const line = svg("path", { d: "M-1 1L1 -1M0 6L6 0M5 7L7 5" });
  const pattern = svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, line);
  return { defs: svg("defs", {}, pattern), fill: `url(#${id})` };
}
