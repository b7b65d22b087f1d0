/** @import { Result } from "./types.js" */
import { div, h, note, panel, setText, svg, symbol } from "../shared/elements.js";
import { number } from "../shared/numbers.js";
import { box, key, mark } from "./marks.js";

const SIDE = 240; // units, of the picture of S

/** S, cut into tiles. Where there are too many, a square stands for several, as Python grouped them. */
export class Cut {
  constructor() {
    const path = (name) => svg("path", { class: `flash-tiling-${name}` });
    this.some = path("some");
    this.whole = path("whole");
    this.lines = path("lines");
    this.one = path("one");
    const parts = [this.some, this.whole, this.lines, this.one]; // on the hatching of what is skipped
    this.picture = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img" }, parts);
    /** @type {[string, ...any][]} */
    const rows = [
      ["T_r", symbol("T_r")],
      ["T_c", symbol("T_c")],
      ["tiles", "tiles"],
      ["computed", mark("whole"), "computed"],
      ["skipped", mark("skipped"), "skipped: masked"],
      ["tile", mark("one"), "one tile"],
    ];
    /** @type {Record<string, HTMLElement>} */
    this.counts = {};
    const list = rows.map(([name, ...term]) => {
      this.counts[name] = h("dd", { "data-count": name });
      return h("div", {}, h("dt", {}, term), this.counts[name]);
    });
    this.share = note();
    this.squares = note();
    this.part = h("span", { class: "flash-note" }, key("some", "computed in part"));
    const side = div("flash-tiling-side", h("dl", {}, list), this.share, this.squares, this.part);
    this.size = note();
    const title = [symbol("S"), ", cut into tiles"];
    this.element = panel("tiling-cut", title, this.size, div("flash-tiling-cutting", this.picture, side));
  }

  /** @param {Result} result */
  draw({ grid, N, B_r, B_c }) {
    this.#draw(grid, N, B_r, B_c);
    const { T_r, T_c, tiles, computed, tall, wide } = grid;
    const skipped = tiles - computed;
    const counts = { T_r, T_c, tiles, computed, skipped, tile: `${B_r} × ${B_c}` };
    for (const [name, count] of Object.entries(counts)) setText(this.counts[name], String(count));
    const reduced = tall * wide > 1;
    const square = `Too many to draw: a square stands for ${tall} × ${wide}.`;
    setText(this.share, `A step computes one tile; ${number((100 * computed) / tiles)}% are computed.`);
    setText(this.squares, reduced ? square : "Each square is a tile.");
    setText(this.size, `${N} × ${N} scores, one head`);
    this.part.style.visibility = reduced && skipped ? "visible" : "hidden";
    this.picture.setAttribute("aria-label", `S as ${T_r} by ${T_c} tiles, ${computed} of ${tiles} computed`);
  }

  #draw(grid, N, B_r, B_c) {
    const at = (x) => Math.round((x / N) * SIDE * 100) / 100;
    const [rows, cols] = [grid.rows.map(at), grid.cols.map(at)];
    const strips = (counts) =>
      counts.map((n, k) => (n ? box(0, rows[k], cols[n], rows[k + 1] - rows[k]) : "")).join("");
    this.whole.setAttribute("d", strips(grid.whole));
    this.some.setAttribute("d", strips(grid.some));
    const lines = [...cols.map((x) => `M${x} 0V${SIDE}`), ...rows.map((y) => `M0 ${y}H${SIDE}`)];
    this.lines.setAttribute("d", lines.join(""));
    this.one.setAttribute("d", box(0, 0, at(Math.min(B_c, N)), at(Math.min(B_r, N))));
  }
}
