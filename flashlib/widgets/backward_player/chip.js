// SRAM in the backward pass: from the tiles that are loaded through S, P, dP and dS to the sums that are kept.

/** @import { Colours } from "../shared/colours.js" */
/** @import { At } from "../flash_player/types.js" */
/** @import { BackwardFrames } from "./frames.js" */
/** @import { BackwardStep } from "./types.js" */
import { div, h, note, panel, setText, steadyNote, symbol, typeset } from "../shared/elements.js";
import { longestPlace, place } from "../flash_player/frames.js";
import { scaleMark } from "../flash_player/legend.js";
import { TELLS } from "./frames.js";
import { cellsIn, heatWidth, NamedTile, WITHOUT_NUMBERS } from "../flash_player/matrix.js";

const LANE = 632; // px, for the tiles of a lane side by side

export class GradientChip {
  static key = ({ wrt }) => wrt;

  /** @type {BackwardFrames} */
  frames;
  /** @type {number[] | undefined} */
  rows;

  /**
   * pressed: called with the row of Q that was clicked.
   * @param {BackwardFrames} frames
   * @param {(row: number) => void} pressed
   */
  constructor({ gradients, pass }, pressed) {
    this.where = steadyNote();
    /** @type {Record<string, NamedTile>} */
    this.tiles = {};
    /** @type {HTMLElement[]} */
    this.marks = [];
    const tile = (name, title) => (this.tiles[name] = new NamedTile(name, title)).element;
    const marker = () => {
      this.marks.push(h("span", { class: "flash-mark" }));
      return div("flash-marker", this.marks.at(-1));
    };
    const arrow = (text) => h("span", { class: "flash-sign", "aria-hidden": "true" }, text);
    const row = (of, less, then) => [
      marker(),
      tile(of),
      arrow("−"),
      tile(less),
      arrow(then),
      tile(of === "S_ij" ? "P_ij" : "dS_ij"),
    ];
    const sum = (name) => [
      tile(`${name}_added`, typeset(pass.added[name])),
      arrow("add →"),
      tile(`${name}_sum`, symbol(`${name}_${pass.index}`)),
    ];
    const inputs = [
      [tile("Q_i"), tile("K_j")],
      [tile("dO_i"), tile("V_j")],
    ];
    const group = (title, lanes) => {
      const columns = `grid-template-columns: repeat(${lanes[0].length}, auto)`;
      return h("div", { class: "flash-lanes", style: columns }, note(title), ...lanes);
    };
    this.summed = h("span", {});
    const parts = div(
      "flash-parts",
      group(pass.loaded, inputs),
      group("the tile, recomputed", [row("S_ij", "lse_i", "exp →"), row("dP_ij", "delta_i", "· P →")]),
      group(this.summed, gradients.map(sum)),
    );
    for (const name of ["Q_i", "dO_i", "S_ij", "P_ij", "dP_ij", "dS_ij", "lse_i", "delta_i"])
      this.#listen(this.tiles[name].matrix, pressed);
    this.parts = parts;
    new ResizeObserver(() => this.#letScroll()).observe(parts);
    const key = h("span", { class: "flash-legend" }, "cells:", scaleMark());
    const about = [h("span", {}, "small and fast"), h("span", { class: "flash-enlarged" }, "drawn enlarged"), key];
    this.element = panel("chip", "SRAM", [note(about), this.where.element], parts);
  }

  /** Lanes that are too wide scroll in a marked box, also by keyboard. */
  #letScroll() {
    /** @type {NodeListOf<HTMLElement>} */
    const all = this.parts.querySelectorAll(".flash-lanes");
    for (const lanes of all) {
      const scrolls = lanes.scrollWidth > lanes.clientWidth;
      lanes.classList.toggle("flash-scrolls", scrolls);
      if (scrolls) Object.assign(lanes, { tabIndex: 0, role: "group", ariaLabel: "tiles" });
      else for (const name of ["tabindex", "role", "aria-label"]) lanes.removeAttribute(name);
    }
  }

  /**
   * The element of a tile.
   * @param {string} name
   */
  tile(name) {
    return this.tiles[name].matrix.element;
  }

  /** @param {BackwardFrames} frames */
  take(frames) {
    this.frames = frames;
    setText(this.where.longest, longestPlace(frames.steps));
    const { B_r, B_c, d, gradients, pass } = frames;
    const all = cellsIn(LANE, Math.max(B_r, B_c), 4 * d + 2 * B_c + 1);
    const scores = all ?? cellsIn(LANE - 4 * heatWidth(d), B_r, 2 * B_c + 1); // at least the scores with numbers
    const resize = (names, rows, cols, cell, options) =>
      names.forEach((name) => this.tiles[name].resize(rows, cols, cell, options));
    resize(["Q_i", "dO_i"], B_r, d, all);
    resize(["K_j", "V_j"], B_c, d, all);
    resize(["S_ij", "P_ij", "dP_ij", "dS_ij"], B_r, B_c, scores);
    resize(["lse_i", "delta_i"], B_r, 1, scores, { isColumn: true });
    const rows = pass.index === "j" ? B_c : B_r;
    for (const name of gradients) resize([`${name}_added`, `${name}_sum`], rows, d, all);
    const most = Math.max(...Object.values(this.tiles).map(({ matrix }) => matrix.rows * matrix.height));
    this.parts.style.setProperty("--lane", `${most + 21}px`); // all lanes are equally high
    this.element.title = all ? "" : WITHOUT_NUMBERS;
  }

  #listen(matrix, pressed) {
    matrix.element.classList.add("flash-pick");
    matrix.element.addEventListener("click", (event) => {
      const box = matrix.element.getBoundingClientRect();
      const r = Math.floor(((event.clientY - box.top) / box.height) * matrix.rows);
      const [start, stop] = this.rows ?? [0, 0];
      if (r < stop - start) pressed(start + r);
    });
  }

  /**
   * @param {At<BackwardStep>} at
   * @param {number} selected
   * @param {Colours} colour
   */
  draw(at, selected, colour) {
    this.#mark(at, selected);
    const { step, part, reached } = at;
    const { pass, gradients, d } = this.frames;
    setText(this.where.text, step ? place(step) : "empty");
    setText(this.summed, `summed for ${pass.block} block ${step ? step[pass.index] : ""}`);
    const dropped = part === "store";
    for (const name of ["Q", "dO", "K", "V"]) {
      const rows = name === "Q" || name === "dO" ? "rows" : "cols";
      const shown = step && !(dropped && !pass.stays.includes(name));
      this.#draw(`${name}_${rows === "rows" ? "i" : "j"}`, name, shown, step, rows, colour);
    }
    for (const name of ["lse", "delta"]) this.#draw(`${name}_i`, name, step && !dropped, step, "rows", colour, 1);
    for (const [name, since] of [
      ["S", "scores"],
      ["P", "weights"],
      ["dP", "dP"],
      ["dS", "dS"],
    ])
      this.#put(
        `${name}_ij`,
        step && reached(since) && !dropped,
        step?.[`${name}_ij`],
        step?.n_r,
        step?.n_c,
        name,
        colour,
      );
    for (const name of gradients) {
      const [start, stop] = step?.[pass.rows] ?? [0, 0];
      const [added, peak] = [step && reached("add") && !dropped, `${name}_sum`];
      this.#put(`${name}_added`, added, step?.[`${name}_added`], stop - start, d, peak, colour);
      const sum = step?.[`${name}_${step && reached("add") ? "sum" : "old"}`];
      this.#put(`${name}_sum`, Boolean(step), sum, stop - start, d, peak, colour);
    }
  }

  /**
   * Mark the row that the sentence is about, in the parts that describe one.
   * @param {At<BackwardStep>} at
   * @param {number} selected
   */
  #mark({ step, part }, selected) {
    this.rows = step?.rows;
    const { matrix } = this.tiles.S_ij;
    for (const element of this.marks) {
      element.hidden = !TELLS.has(part);
      if (!step || element.hidden) continue;
      setText(element, `${selected} ▸`);
      element.style.top = `${(selected - step.rows[0] + 0.5) * matrix.height}px`;
    }
  }

  /** Draw a block of an input, with its size. */
  #draw(tile, name, shown, step, rows, colour, cols = this.frames.d) {
    const [start, stop] = step?.[rows] ?? [0, 0];
    if (cols > 1 || this.frames.d === 1) setText(this.tiles[tile].size, step ? `${stop - start} × ${cols}` : "");
    this.#put(tile, shown, this.frames.inputs[name] + start * cols, stop - start, cols, name, colour);
  }

  #put(tile, shown, offset, rows, cols, peak, colour) {
    const { matrix } = this.tiles[tile];
    if (shown) matrix.draw(this.frames.numbers, offset, rows, cols, this.frames.peaks[peak], colour);
    else matrix.clear();
  }
}
