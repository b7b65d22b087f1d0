/** @import { Result, Setting } from "./types.js" */
import { choice, stops } from "../shared/controls.js";
import { div } from "../shared/elements.js";

/** The controls of ServeLab; `ask` is called with what is chosen. */
export class ServeSettings {
  /**
   * @param {Result} result
   * @param {(setting: Partial<Setting>) => void} ask
   */
  constructor({ scenarios, stops: values, page }, ask) {
    this.values = values;
    const options = scenarios.map((name) => [name, name]);
    this.scenario = choice("scenario", "which requests come", options, (scenario) => ask({ scenario }));
    const of = (name, text, label) => stops(name, text, label, (value) => ask({ [name]: value }));
    this.counts = {
      batch: of("batch", "batch", "batch, how many requests run at once"),
      chunk: of("chunk", "chunk", "chunk, how many tokens of prompts a step reads"),
      n_pages: of("n_pages", "pages", `pages of ${page} tokens in the cache`),
    };
    this.units = { batch: " slots", chunk: " tokens", n_pages: ` of ${page} tokens` };
    this.elements = [
      this.scenario.element,
      div("flash-serving-counts", Object.values(this.counts).map(({ element }) => element)),
    ];
  }

  show(chosen) {
    this.scenario.show(chosen("scenario"));
    for (const [name, { show }] of Object.entries(this.counts)) {
      const unit = chosen(name) === 1 ? this.units[name].replace(/s$/, "") : this.units[name];
      show(chosen(name), this.values[name], unit);
    }
  }
}
