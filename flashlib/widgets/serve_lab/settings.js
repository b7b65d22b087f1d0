/** @import { Result, Setting } from "./types.js" */
import { choice, stops } from "../shared/controls.js";
import { div } from "../shared/elements.js";
import { counted } from "../shared/language.js";

/** The controls of ServeLab; `ask` is called with a choice. */
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
    this.shown = {
      batch: (n) => counted(n, "slot", "slots"),
      chunk: (n) => counted(n, "token", "tokens"),
      n_pages: (n) => `${n} of ${page} tokens`,
    };
    this.elements = [
      this.scenario.element,
      div("flash-serving-counts", Object.values(this.counts).map(({ element }) => element)),
    ];
  }

  show(chosen) {
    this.scenario.show(chosen("scenario"));
    for (const [name, { show }] of Object.entries(this.counts)) {
      const value = chosen(name);
      show(value, this.values[name], value === null ? undefined : this.shown[name](value));
    }
  }
}
