/** @import { Result } from "./types.js" */
import { div, h, note, panel, setText } from "../shared/elements.js";
import { counted } from "../shared/language.js";
import { between } from "../shared/number_text.js";

/** @typedef {{ element: HTMLElement, number: HTMLElement, bar: HTMLElement }} Chip */

/** @returns {Chip} */
function newChip() {
  const [number, bar] = [h("span", {}), h("i", {})];
  return { element: h("span", { class: "flash-paging-chip" }, number, h("b", {}, bar)), number, bar };
}

/** @param {string} name */
function newRow(name) {
  const [field, length] = [div("flash-paging-chips"), h("span", { class: "flash-paging-length" })];
  /** @type {Chip[]} */
  const chips = [];
  return { name, chips, field, length, element: h("div", { role: "listitem" }, h("b", {}, name), field, length) };
}

/** The block table of each sequence: its pages in order, each with the share that the sequence fills. */
export class Tables {
  /** @type {number} */
  page;
  /** @type {Result["frames"]} */
  frames;
  /** @type {ReturnType<typeof newRow>[]} */
  rows = [];

  constructor() {
    this.list = h("div", { class: "flash-paging-tables", role: "list", "aria-label": "block tables" });
    this.element = panel("paging-sequences", "Block tables", note("the pages of each sequence, in order"), this.list);
  }

  /**
   * Make room for the most pages that each sequence will have, so that nothing jumps.
   * @param {Result} result
   */
  take({ names, frames, setting }) {
    this.page = setting.page;
    this.frames = frames;
    if (this.rows.map(({ name }) => name).join() !== names.join()) {
      this.rows = names.map(newRow);
      this.list.replaceChildren(...this.rows.map(({ element }) => element));
    }
    for (const { name, chips, field } of this.rows) {
      const most = Math.max(1, ...frames.map(({ tables }) => tables[name]?.length ?? 0));
      while (chips.length > most) chips.pop()?.element.remove(); // the others stay and are not laid out again
      while (chips.length < most) chips.push(newChip());
      field.append(...chips.map(({ element }) => element).filter((element) => !element.parentNode));
    }
  }

  /** @param {number} position */
  draw(position) {
    const frame = this.frames[position];
    for (const { name, chips, length, element } of this.rows) {
      const [own, tokens] = [frame.tables[name], frame.lengths[name]];
      element.dataset.living = String(own !== undefined);
      const text = own ? counted(tokens, "token", "tokens") : this.#absent(name, position);
      setText(length, text);
      const spoken = own?.length ? `${name}: ${text} in pages ${own.join(", ")}` : `${name}: ${text}`;
      element.setAttribute("aria-label", spoken);
      chips.forEach((chip, k) => this.#draw(chip, frame, own?.[k], tokens - k * this.page));
    }
  }

  #draw({ element, number, bar }, { state, taken }, page, tokens) {
    element.classList.toggle("flash-paging-none", page === undefined);
    if (page === undefined) return;
    setText(number, String(page));
    element.dataset.state = state[page];
    element.classList.toggle("flash-paging-taken", taken.includes(page));
    bar.style.width = `${(100 * between(0, tokens, this.page)) / this.page}%`;
  }

  #absent(name, position) {
    if (this.frames[position].waits.includes(name)) return "waits";
    if (this.frames.slice(0, position).some(({ tables }) => name in tables)) return "ended";
    return position < this.frames.length - 1 ? "to come" : "left out";
  }
}
