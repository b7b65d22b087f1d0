/** @import { Result } from "./types.js" */
import { div, h, note, panel, setText } from "../shared/elements.js";
import { between } from "../shared/numbers.js";

/** @typedef {{ element: HTMLElement, number: HTMLElement, bar: HTMLElement }} Chip */

/** The block table of each sequence: its pages in order, each with the part of it that the sequence fills. */
export class Tables {
  /** @type {number} */
  page;
  /** @type {Result["frames"]} */
  frames;
  /** @type {{ name: string, chips: Chip[], length: HTMLElement, element: HTMLElement }[]} */
  rows;

  constructor() {
    this.list = h("div", { class: "flash-paging-tables", role: "list", "aria-label": "block tables" });
    this.element = panel("paging-sequences", "Block tables", note("the pages of each sequence, in order"), this.list);
  }

  /**
   * Make room for the most pages that each sequence has, so that nothing jumps.
   * @param {Result} result
   */
  take({ names, frames, setting }) {
    this.page = setting.page;
    this.frames = frames;
    this.rows = names.map((name) => {
      const most = Math.max(1, ...frames.map(({ tables }) => tables[name]?.length ?? 0));
      const chips = Array.from({ length: most }, () => {
        const [number, bar] = [h("span", {}), h("i", {})];
        return { element: h("span", { class: "flash-paging-chip" }, number, h("b", {}, bar)), number, bar };
      });
      const length = h("span", { class: "flash-paging-length" });
      const elements = div("flash-paging-chips", chips.map(({ element }) => element));
      const element = h("div", { role: "listitem" }, h("b", {}, name), elements, length);
      return { name, chips, length, element };
    });
    this.list.replaceChildren(...this.rows.map(({ element }) => element));
  }

  /** @param {number} position */
  draw(position) {
    const frame = this.frames[position];
    for (const { name, chips, length, element } of this.rows) {
      const [own, tokens] = [frame.tables[name], frame.lengths[name]];
      element.dataset.living = String(own !== undefined);
      const text = own ? `${tokens} ${tokens === 1 ? "token" : "tokens"}` : this.#absent(name, position);
      setText(length, text);
      const pages = own?.length ? ` in pages ${own.join(", ")}` : "";
      element.setAttribute("aria-label", `${name}: ${text}${pages}`);
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
