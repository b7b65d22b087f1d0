/** @import { Result, Setting } from "./types.js" */
import { choice, stops, toggle } from "../shared/controls.js";
import { div, h, note, typeset } from "../shared/elements.js";

const SLIDERS = {
  N: "N, keys",
  outliers: "outliers: one number in 1000 is this many times as large",
  sharpness: "sharpness: what Q is multiplied by",
};
const E4M3 = ["e4m3", "e4m3", "4 bits of exponent, 3 of mantissa"];
const E5M2 = ["e5m2", "e5m2", "5 bits of exponent, 2 of mantissa"];
const INT8 = ["int8", "int8", "whole numbers from -127 to 127"];
const FP16 = ["fp16", "fp16", "16 bits, to compare with"];
const BF16 = ["bf16", "bf16", "16 bits, as most kernels give O"];
/** @type {Record<string, { name: string, label: string, options: string[][] }>} */
const CHOICES = {
  mean: {
    name: "",
    label: "means",
    options: [
      ["none", "around 0", "Q, K and V are normal numbers"],
      ["channels", "channel means", "each channel of K and V has its own mean"],
      ["positive", "V positive", "all of V is larger than 0"],
    ],
  },
  qk: { name: "Q, K", label: "format of Q and K", options: [E4M3, E5M2, INT8, FP16] },
  pv: { name: "P, V", label: "format of P and V", options: [E4M3, E5M2, FP16] },
  o: { name: "O", label: "format of O", options: [BF16, E4M3] },
  sums: {
    name: "sums",
    label: "how products are added",
    options: [
      ["13 bits", "13 bits", "as Hopper's tensor cores add products of eight bits"],
      ["two levels", "two levels", "13 bits within a tile, fp32 across tiles"],
      ["exact", "exact", "no GPU does this in eight bits"],
    ],
  },
  scales: {
    name: "scales",
    label: "who shares a scale",
    options: [
      ["tensor", "tensor", "one scale for Q, one for K, one for V"],
      ["block", "block", "a scale for 64 rows of Q and K, one for each channel of V"],
      ["row", "row", "a scale for each row of Q and K, one for each channel of V"],
    ],
  },
  p_times: {
    name: "P times",
    label: "what P is multiplied by before it is rounded",
    options: [["1", "1"], ["256", "256"], ["448", "448"]],
  },
};
const SWITCHES = {
  rotate: "rotate Q and K",
  k_minus_mean: "K minus its mean",
  v_minus_mean: "V minus its mean",
  power_of_two: "powers of two",
  l_rounded: "l of rounded P",
};
const PRESETS = {
  plain: "plain",
  "O in e4m3": "O in e4m3 too",
  careful: "careful",
  "int8 for Q and K": "careful, int8 for Q and K",
};

/** The controls of EightBitsLab; `ask` is called with a choice. */
export class EightBitsSettings {
  /**
   * @param {Result} result
   * @param {(setting: Partial<Setting>) => void} ask
   */
  constructor({ presets }, ask) {
    /** @type {Record<string, ReturnType<typeof stops>>} */
    this.sliders = {};
    for (const [name, label] of Object.entries(SLIDERS))
      this.sliders[name] = stops(name, name, label, (value) => ask({ [name]: value }));
    /** @type {Record<string, ReturnType<typeof choice>>} */
    this.choices = {};
    for (const [name, { label, options }] of Object.entries(CHOICES)) {
      const chosen = (word) => ask({ [name]: name === "p_times" ? Number(word) : word });
      this.choices[name] = choice(name, label, options, chosen);
    }
    /** @type {Record<string, ReturnType<typeof toggle>>} */
    this.switches = {};
    for (const [name, label] of Object.entries(SWITCHES)) {
      this.switches[name] = toggle(h("span", {}, typeset(label)), (on) => ask({ [name]: on }));
      this.switches[name].element.dataset.name = name;
    }
    const named = (...names) => names.map((name) => this.#named(name));
    const [sliders, switches] = [this.sliders, this.switches].map((controls) =>
      Object.values(controls).map(({ element }) => element),
    );
    const all = Object.entries(presets).map(([name, setting]) => preset(name, () => ask(setting)));
    this.elements = [
      group("numbers", "What is attended to", sliders, named("mean")),
      group("formats", "In which numbers", named("qk", "pv", "o", "sums")),
      group("ideas", "How they are rounded", named("scales", "p_times"), switches),
      group("presets", "All at once", all),
    ];
  }

  /** A choice preceded by its name. */
  #named(choice) {
    const [{ element }, { name }] = [this.choices[choice], CHOICES[choice]];
    return name ? div("flash-eight-named", h("span", {}, typeset(name)), element) : element;
  }

  /**
   * @param {(name: any) => any} chosen
   * @param {Result} result
   */
  show(chosen, { stops: values }) {
    for (const [name, { show }] of Object.entries(this.sliders))
      show(chosen(name), values[name], name === "N" ? `${chosen(name)}` : `${chosen(name)} ×`);
    for (const [name, { show }] of Object.entries(this.choices)) show(String(chosen(name)));
    for (const [name, { show }] of Object.entries(this.switches)) show(chosen(name));
  }
}

function group(name, label, ...children) {
  const attributes = { class: `flash-eight-${name}`, role: "group", "aria-label": label };
  return h("div", attributes, note(label), div("", children));
}

function preset(name, press) {
  const attributes = { type: "button", class: "flash-button flash-text", "data-preset": name, onclick: press };
  return h("button", attributes, h("span", {}, typeset(PRESETS[name])));
}
