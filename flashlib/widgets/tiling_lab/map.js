/** @import { Colours } from "../shared/colours.js" */
/** @import { Result } from "./types.js" */
import { div, h, panel, setText, svg, symbol } from "../shared/elements.js";
import { number, short } from "../shared/number_text.js";
import { key } from "./marks.js";

const DOUBLINGS = 4; // at the strongest colour of the map: a factor of 16

/** @typedef {{ B_r?: number, B_c?: number }} Sizes */
/** @typedef {{ background?: string, ratio?: number, fits?: boolean }} Drawn what a cell looks like */

/** The bytes of an order over those of standard attention, for all B_r and B_c; arrow keys and clicks choose. */
export class TileMap {
  /** @type {{ cell: HTMLElement, text: HTMLElement, drawn: Drawn }[][]} */
  cells;
  /** @type {HTMLTableElement} */
  table;
  /** @type {HTMLElement | undefined} */
  selected;
  /** @type {HTMLElement | null | undefined} */
  starred;

  /**
   * @param {string} id
   * @param {number[]} blocks
   * @param {{ asked: (name: "B_r" | "B_c") => number, chosen: (sizes: Sizes) => void }} asks
   * @param {Element} order
   */
  constructor(id, blocks, { asked, chosen }, order) {
    this.id = id;
    this.blocks = blocks;
    this.asked = asked;
    this.chosen = chosen;
    const n = blocks.length;
    this.even = svg("path", { class: "flash-tiling-even" });
    const here = ["halo", "now"].map((name) =>
      svg("rect", { class: `flash-tiling-${name}`, width: 1, height: 1 }),
    );
    this.marks = svg(
      "svg",
      { viewBox: `0 0 ${n} ${n}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.even,
      (this.here = svg("g", {}, here)),
    );
    this.words = h("span", { class: "flash-tiling-map-words" });
    this.now = h("span", { class: "flash-tiling-map-now" });
    this.star = h("b", {}, "★");
    const legend = div(
      "flash-legend",
      this.#scale(),
      key("even", "break-even"),
      h("span", {}, h("span", { class: "flash-tiling-unfit" }, "0.25"), "does not fit"),
      key("now", this.now),
      h("span", {}, this.star, this.words),
    );
    const field = div("flash-tiling-field", this.#table(), this.marks);
    this.element = panel("tiling-map", "Bytes over standard attention's", order, field, legend);
  }

  #table() {
    const { blocks, id } = this;
    this.cells = blocks.map((B_r, r) =>
      blocks.map((B_c, c) => {
        const text = h("span", {});
        const cell = h("td", { id: `${id}-${r}-${c}`, onclick: () => this.chosen({ B_r, B_c }) }, text);
        cell.dataset.cell = `${B_r},${B_c}`;
        return { cell, text, drawn: {} };
      }),
    );
    const columns = blocks.map((B_c) => h("th", { scope: "col" }, B_c));
    const rows = this.cells.map((cells, r) => {
      const elements = cells.map(({ cell }) => cell);
      return h("tr", {}, h("th", { scope: "row" }, blocks[r]), elements);
    });
    const attributes = {
      role: "grid",
      tabindex: 0,
      "aria-label": "Map of B_r (down) and B_c (across): arrow keys choose",
    };
    const corner = h("td", { class: "flash-tiling-corner" }, symbol("B_r"), " \\ ", symbol("B_c"));
    const head = h("thead", {}, h("tr", {}, corner, columns));
    this.table = h("table", { ...attributes, onkeydown: (event) => this.#key(event) }, head, h("tbody", {}, rows));
    return this.table;
  }

  #scale() {
    const samples = [-1, -0.6, -0.2, 0, 0.2, 0.6, 1].map((t) => h("b", { "data-t": t }));
    return h("span", {}, "16 ×", h("span", { class: "flash-scale" }, samples), "1/16");
  }

  #key(event) {
    const steps = { ArrowUp: ["B_r", -1], ArrowDown: ["B_r", 1], ArrowLeft: ["B_c", -1], ArrowRight: ["B_c", 1] };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault(); // the page would scroll
    const [name, by] = steps[event.key];
    const beyond = this.blocks.filter((B) => (by > 0 ? B > this.asked(name) : B < this.asked(name)));
    if (beyond.length) this.chosen({ [name]: by > 0 ? beyond[0] : beyond.at(-1) });
  }

  /**
   * @param {Result} result
   * @param {Colours} colour
   */
  draw({ map, order, traffic, B_r, B_c }, colour) {
    const { blocks, cells } = this;
    const { ratios, fits, best } = map;
    const n = blocks.length;
    let even = "";
    for (let r = 0; r < n; r++) {
      for (let c = 0; c < n; c++) {
        this.#cell(cells[r][c], ratios[r][c], fits[r][c], colour);
        const more = ratios[r][c] > 1;
        if (r + 1 < n && more !== ratios[r + 1][c] > 1) even += `M${c} ${r + 1}h1`;
        if (c + 1 < n && more !== ratios[r][c + 1] > 1) even += `M${c + 1} ${r}v1`;
      }
    }
    this.even.setAttribute("d", even);
    const place = (B) => Math.log2(B / blocks[0]); // between two cells if B is not a power of two
    this.here.setAttribute("transform", `translate(${place(B_c)} ${place(B_r)})`);
    this.#select(blocks.indexOf(B_r), blocks.indexOf(B_c));
    this.#star(best);
    const { total, unit } = traffic[order === "fa1" ? "FA1" : "FA2"].text;
    setText(this.now, `your tile, ${B_r} × ${B_c}: ${total} ${unit}`);
    setText(this.words, map.words);
    Object.assign(this.element.dataset, { order, best: best ? `${best.B_r},${best.B_c}` : "" });
  }

  /** Change only what differs in a cell. */
  #cell({ cell, text, drawn }, ratio, fits, colour) {
    const full = colour.css(-Math.log2(ratio), DOUBLINGS);
    const background = fits ? full : `color-mix(in srgb, ${full} 30%, var(--flash-panel))`;
    if (drawn.background !== background) cell.style.backgroundColor = drawn.background = background;
    if (drawn.ratio === ratio && drawn.fits === fits) return;
    Object.assign(drawn, { ratio, fits });
    setText(text, short(ratio));
    const share = number(ratio);
    const words = fits ? `${share} of standard attention, fits` : `${share} of standard attention, does not fit`;
    cell.setAttribute("aria-label", words);
    cell.title = `${cell.dataset.cell.replace(",", " × ")}: ${words}`;
    cell.dataset.fits = String(fits);
  }

  #select(r, c) {
    this.selected?.removeAttribute("aria-selected");
    this.selected = this.cells[r]?.[c]?.cell;
    this.selected?.setAttribute("aria-selected", "true");
    if (this.selected) this.table.setAttribute("aria-activedescendant", this.selected.id);
    else this.table.removeAttribute("aria-activedescendant");
  }

  #star(best) {
    this.starred?.classList.remove("flash-tiling-best");
    this.starred = best && this.cells[this.blocks.indexOf(best.B_r)][this.blocks.indexOf(best.B_c)].cell;
    this.starred?.classList.add("flash-tiling-best");
    this.star.hidden = !best;
  }
}
