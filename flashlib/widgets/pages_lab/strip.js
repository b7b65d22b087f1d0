/** @import { Motion } from "../shared/motion.js" */
/** @import { Frame, Result } from "./types.js" */
import { div, h, note, panel, setText } from "../shared/elements.js";
import { say } from "../shared/language.js";

const PAGE_STATES = { f: "free", o: "owned", s: "shared", k: "kept" };
const MOST_MOVING = 64; // rows

/** @typedef {{ element: HTMLElement, field: HTMLElement, rows: HTMLElement[], whose: HTMLElement, mark: HTMLElement, shown: string }} Cell */

/** @param {number} number @returns {Cell} */
function newCell(number) {
  const [whose, mark, field] = [h("span", { class: "flash-paging-whose" }), div("flash-paging-mark"), div("flash-paging-rows")];
  const top = div("flash-paging-top", h("b", {}, String(number)), whose);
  const element = h("div", { class: "flash-paging-page", role: "listitem" }, top, field, mark);
  return { element, field, rows: [], whose, mark, shown: "" };
}

/** All pages: the owners of each, and which of its rows hold a token. */
export class Strip {
  /** @type {Cell[]} */
  cells = [];

  constructor() {
    this.list = h("div", { class: "flash-paging-strip", role: "list", "aria-label": "all pages" });
    this.count = note();
    this.title = h("span", {});
    this.element = panel("paging-pages", this.title, this.count, this.list);
  }

  /** @param {Result} result */
  take({ setting: { page, n_pages } }) {
    setText(this.title, `${n_pages} pages of ${page} ${page === 1 ? "row" : "rows"}`);
    if (this.cells.length !== n_pages) {
      this.cells = Array.from({ length: n_pages }, (_, number) => newCell(number));
      this.list.replaceChildren(...this.cells.map(({ element }) => element));
    }
    for (const cell of this.cells) {
      if (cell.rows.length === page) continue; // unchanged parts are not laid out again
      cell.rows = Array.from({ length: page }, () => h("i", {}));
      cell.field.replaceChildren(...cell.rows);
      cell.field.classList.toggle("flash-paging-lines", page > 8);
      cell.shown = "";
    }
  }

  /**
   * Draw a frame; `before`: the previous one, if any.
   * @param {Frame} frame
   * @param {Frame | undefined} before
   * @param {Motion} motion
   */
  draw(frame, before, motion) {
    const { used, kept, free } = frame.counts;
    setText(this.count, `${used} used, ${kept} kept, ${free} free`);
    const written = new Map(frame.written.map(([number, ...rows]) => [number, rows]));
    const moving = [];
    const owners = frame.owners.split(",");
    this.cells.forEach((cell, number) => {
      const [first, end] = written.get(number) ?? [0, 0];
      const [state, filled, mark] = [frame.state[number], frame.filled[number], pageMark(frame, before, number)];
      const whose = state === "o" || state === "s" ? owners[number] : PAGE_STATES[state];
      const shown = [state, filled, mark, whose, first, end].join();
      if (cell.shown !== shown) this.#show(cell, { number, state, filled, mark, whose, first, end });
      cell.shown = shown;
      moving.push(...cell.rows.slice(first, end));
      if (mark.startsWith("taken") || mark === "given back") motion.from(cell.element, { opacity: 0.3 });
    });
    if (moving.length <= MOST_MOVING) for (const row of moving) motion.from(row, { transform: "scale(0.1)" });
    if (frame.copied.length) this.#move(frame.copied, motion);
  }

  #show({ element, rows, whose: text, mark: tag }, { number, state, filled, mark, whose, first, end }) {
    element.dataset.state = state;
    element.dataset.mark = mark.split(" ")[0];
    setText(text, whose);
    setText(tag, mark);
    rows.forEach((row, at) => {
      row.className = at >= first && at < end ? "flash-paging-written" : at < filled ? "flash-paging-filled" : "";
    });
    const owned = state === "o" || state === "s" ? `${PAGE_STATES[state]}, ${whose}` : whose;
    const held = state !== "f" && `${filled} of ${rows.length} rows hold a token`;
    element.setAttribute("aria-label", `page ${number}: ${[owned, held, mark].filter(Boolean).map(say).join(", ")}`);
  }

  /**
   * Move the rows of a copy in from their source.
   * @param {number[]} copied
   * @param {Motion} motion
   */
  #move(copied, motion) {
    if (!motion.time) return;
    const [from, to] = copied.map((number) => this.cells[number].element.getBoundingClientRect());
    const way = `translate(${from.x - to.x}px, ${from.y - to.y}px)`;
    const rows = this.cells[copied[1]].element.querySelector(".flash-paging-rows");
    if (rows) motion.from(rows, { transform: way });
  }
}

/**
 * What happened to a page, in a word or two.
 * @param {Frame} frame
 * @param {Frame | undefined} before
 * @param {number} number
 */
function pageMark({ wrong, copied, taken, state, owners }, before, number) {
  if (wrong.includes(number)) return "✕ wrong";
  if (copied[0] === number) return "copied";
  if (copied[1] === number) return `copy of ${copied[0]}`;
  if (taken.includes(number)) return "taken";
  if (!before) return "";
  if (before.state[number] !== "f" && state[number] === "f") return "given back";
  const [had, has] = [before.owners, owners].map((all) => all.split(",")[number].split(" ").filter(Boolean));
  const [came, left] = [has.filter((name) => !had.includes(name)), had.filter((name) => !has.includes(name))];
  return came.length ? `+ ${came.join(" ")}` : left.length ? `− ${left.join(" ")}` : "";
}

/** The meaning of the looks of pages and rows. */
export function pagesLegend() {
  const page = (state, text) => h("span", {}, h("i", { class: "flash-paging-swatch", "data-state": state }), text);
  const row = (name, text) => h("span", {}, h("i", { class: `flash-paging-swatch flash-paging-${name}` }), text);
  return div(
    "flash-legend flash-note",
    page("o", "a page of one sequence"),
    page("s", "shared by several"),
    page("k", "kept: without an owner, its content is known"),
    page("f", "free"),
    row("filled", "a row with a token"),
    row("written", "written now"),
    row("empty", "a row without one"),
    h("span", {}, h("i", { class: "flash-paging-tick" }), "under the bar: a copy, or no page is left"),
  );
}
