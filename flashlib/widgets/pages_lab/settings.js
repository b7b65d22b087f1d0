/** @import { Result, Setting } from "./types.js" */
import { choice, stops } from "../shared/controls.js";
import { div, h } from "../shared/elements.js";
import { counted } from "../shared/language.js";

/** The controls of PagesLab; `ask` is called with a choice. */
export class PageSettings {
  /**
   * @param {Result} result
   * @param {(setting: Partial<Setting>) => void} ask
   */
  constructor({ off, stops: values }, ask) {
    this.values = values;
    this.scenario = choice(
      "scenario",
      "what the requests do",
      Object.keys(off).map((name) => [name, name, off[name] && `off: ${off[name]}`]),
      (scenario) => ask({ scenario }),
    );
    for (const input of this.scenario.element.querySelectorAll("input")) input.disabled = off[input.value] !== "";
    const why = Object.entries(off).filter(([, reason]) => reason);
    const reasons = why.map(([name, reason]) => `“${name}” is off: ${reason}.`).join(" ");
    this.page = stops("page", "page", "page, rows of a page", (page) => ask({ page }));
    this.n_pages = stops("n_pages", "pages", "how many pages there are", (n_pages) => ask({ n_pages }));
    this.elements = [
      this.scenario.element,
      div("flash-paging-sizes", this.page.element, this.n_pages.element),
      reasons && h("p", { class: "flash-note flash-paging-off" }, reasons),
    ];
  }

  show(chosen) {
    this.scenario.show(chosen("scenario"));
    this.page.show(chosen("page"), this.values.page, counted(chosen("page"), "row", "rows"));
    this.n_pages.show(chosen("n_pages"), this.values.n_pages);
  }
}
