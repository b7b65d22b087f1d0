/** @import { Result, Setting } from "./types.js" */
import { choice, stops } from "../shared/controls.js";
import { div, h, note } from "../shared/elements.js";

const ORDERS = [
  ["row", "in a row", "each part into what those before it gave, as one program does it"],
  ["tree", "as a tree", "neighbours two at a time, level by level"],
];
const COUNTS = {
  N_k: "N_k, keys of the sequence",
  parts: "parts, into about how many the keys are split",
  B: "B, sequences of the call",
  H_k: "H_k, heads of K and V",
  group: "group, query heads that share a head of K and V",
  d: "d, head dimension",
};

/** The controls of SplitLab, first those that determine the States; `ask` is called with a choice. */
export class SplitSettings {
  /** @type {number} */
  default;

  /**
   * @param {string[]} gpus
   * @param {(setting: Partial<Setting>) => void} ask
   */
  constructor(gpus, ask) {
    const sliders = Object.entries(COUNTS).map(([name, label]) => [
      name,
      stops(name, name, label, (value) => ask({ [name]: value })),
    ]);
    this.counts = Object.fromEntries(sliders);
    this.order = choice("order", "order of merging", ORDERS, (order) => ask({ order }));
    const options = gpus.map((name) => [name, name]);
    this.gpu = choice("gpu", "GPU", options, (gpu) => ask({ gpu }));
    const title = "as many parts as the kernel makes by default";
    this.own = h(
      "button",
      { type: "button", class: "flash-button flash-text", title, onclick: () => ask({ parts: this.default }) },
      "as decode chooses",
    );
    const of = (...names) => names.map((name) => this.counts[name].element);
    const group = (name, label, ...children) =>
      h("div", { class: `flash-split-${name}`, role: "group", "aria-label": label }, note(label), div("", children));
    this.elements = [
      group("own", "The split", of("N_k", "parts"), this.own, this.order.element),
      group("call", "The call", of("B", "H_k", "group", "d"), this.gpu.element),
    ];
  }

  /**
   * Show the choices; a slider steps through its stops, that of parts as far as these keys can be split.
   * @param {(name: any) => any} chosen
   * @param {Result} result
   */
  show(chosen, { stops, times }) {
    for (const [name, { show }] of Object.entries(this.counts)) show(chosen(name), stops[name]);
    this.order.show(chosen("order"));
    this.gpu.show(chosen("gpu"));
    this.default = times.default;
  }
}
