/** @import { Result } from "./types.js" */
import { div, h, note, panel, setText, svg, symbol, typeset } from "../shared/elements.js";
import { number } from "../shared/number_text.js";
import { box, key, mark } from "./marks.js";

const SIDE = 240; // units, of the picture of S
const APART = 5; // units: lines closer together would merge into a grey square
const apart = (edges) => edges.length * APART <= SIDE;
const LENS = { side: 96, chip: 72, at: [132, 12], from: 48 }; // units, of the enlarged picture; for SRAM below `from`
const MB = 1e6; // bytes

/**
 * S, cut into tiles, with a tile and the SRAM to scale; both are enlarged if they are small. If there are too many tiles, a
 * square stands for several, as grouped by Python.
 */
export class Cut {
  /** @param {{ less?: boolean }} [options] less: a first look, without bytes and SRAM */
  constructor({ less = false } = {}) {
    this.less = less;
    const path = (name) => svg("path", { class: `flash-tiling-${name}` });
    this.some = path("some");
    this.whole = path("whole");
    this.lines = path("lines");
    this.one = path("one");
    this.chip = path("chip");
    this.lens = svg("g", { class: "flash-tiling-lens" });
    const parts = [this.some, this.whole, this.lines, this.chip, this.one, this.lens]; // over the hatching of skipped tiles
    this.picture = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img" }, parts);
    /** @type {[string, ...any][]} */
    const rows = [
      ["T_r", symbol("T_r")],
      ["T_c", symbol("T_c")],
      ["tiles", "tiles"],
      ["computed", mark("whole"), "computed"],
      ["skipped", mark("skipped"), "skipped: masked"],
      ["tile", mark("one"), "one tile"],
      ["chip", mark("chip"), "SRAM"],
    ];
    /** @type {Record<string, HTMLElement>} */
    this.counts = {};
    const shown = rows.filter(([name]) => !less || name !== "chip");
    const list = shown.map(([name, ...term]) => {
      this.counts[name] = h("dd", { "data-count": name });
      return h("div", {}, h("dt", {}, term), this.counts[name]);
    });
    this.share = note();
    this.squares = note();
    this.part = h("span", { class: "flash-note" }, key("some", "computed in part"));
    const side = div("flash-tiling-side", h("dl", {}, list), this.share, this.squares, this.part);
    this.size = note();
    const title = typeset("S, cut into tiles");
    this.element = panel("tiling-cut", title, this.size, div("flash-tiling-cutting", this.picture, side));
  }

  /** @param {Result} result */
  draw({ grid, sram, N, d, B_r, B_c }) {
    const size = sram.pieces.Q_i / (B_r * d); // bytes of a score
    this.#draw(grid, N, B_r, B_c);
    if (!this.less) this.#compare(Math.sqrt(sram.room / size), N, B_r, B_c);
    const { T_r, T_c, tiles, computed, tall, wide } = grid;
    const skipped = tiles - computed;
    const counts = { T_r, T_c, tiles, computed, skipped, tile: `${B_r} × ${B_c}` };
    for (const [name, count] of Object.entries(counts)) setText(this.counts[name], String(count));
    const reduced = tall * wide > 1;
    const square = `Too many to draw: a square stands for ${tall} × ${wide}.`;
    setText(this.share, `A step computes one tile; ${number((100 * computed) / tiles)}% are computed.`);
    const all = apart(grid.rows) && apart(grid.cols);
    setText(this.squares, reduced ? square : all ? "Each square is a tile." : "Too many to draw the edges of all.");
    setText(this.size, this.less ? `${N} × ${N} scores` : `${N} × ${N} scores, ${number((N * N * size) / MB)} MB`);
    this.part.style.visibility = reduced && skipped ? "visible" : "hidden";
    const drawn = this.less
      ? `S as ${T_r} by ${T_c} tiles, ${computed} of ${tiles} computed, one tile to scale`
      : `S as ${T_r} by ${T_c} tiles, ${computed} of ${tiles} computed, one tile and SRAM to scale`;
    this.picture.setAttribute("aria-label", drawn);
  }

  #draw(grid, N, B_r, B_c) {
    const at = (x) => Math.round((x / N) * SIDE * 100) / 100;
    const [rows, cols] = [grid.rows.map(at), grid.cols.map(at)];
    const strips = (counts) =>
      counts.map((n, k) => (n ? box(0, rows[k], cols[n], rows[k + 1] - rows[k]) : "")).join("");
    this.whole.setAttribute("d", strips(grid.whole));
    this.some.setAttribute("d", strips(grid.some));
    const lines = [
      ...(apart(cols) ? cols.map((x) => `M${x} 0V${SIDE}`) : []),
      ...(apart(rows) ? rows.map((y) => `M0 ${y}H${SIDE}`) : []),
    ];
    this.lines.setAttribute("d", lines.join(""));
    this.one.setAttribute("d", box(0, 0, at(Math.min(B_c, N)), at(Math.min(B_r, N))));
  }

  /** A tile and the SRAM, as a square of this many scores, to the scale of S; and enlarged, if that is small. */
  #compare(chip, N, B_r, B_c) {
    setText(this.counts.chip, `${Math.floor(chip)} × ${Math.floor(chip)}`);
    const small = (chip / N) * SIDE;
    this.chip.setAttribute("d", small < SIDE ? box(0, 0, small, small) : "");
    this.lens.replaceChildren();
    if (small >= LENS.from) return;
    const [x, y] = LENS.at;
    const scale = LENS.chip / chip;
    const size = (B) => Math.min(B * scale, LENS.side); // a tile may be larger than the enlarged picture
    const path = (name, d) => svg("path", { class: `flash-tiling-${name}`, d });
    const text = (top, words) => svg("text", { x: x + LENS.side / 2, y: top, "text-anchor": "middle" }, words);
    this.lens.append(
      path("rays", `M${small} 0L${x} ${y}M${small} ${small}L${x} ${y + LENS.side + 16}`),
      path("glass", box(x, y, LENS.side, LENS.side + 16)),
      path("one", box(x, y, size(B_c), size(B_r))),
      path("chip", box(x, y, LENS.chip, LENS.chip)),
      text(y + LENS.side + 11, `${Number(((scale * N) / SIDE).toPrecision(2))} × as large`),
    );
  }
}
