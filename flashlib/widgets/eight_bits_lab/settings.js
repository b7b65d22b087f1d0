/** @import { Result, Setting } from "./types.js" */
import { choice, stops, toggle } from "../shared/controls.js";
import { div, h, note, typeset } from "../shared/elements.js";

const SLIDERS = {
  N: "N, keys",
  outliers: "outliers: one number in 1000 is so many times as large",
  sharpness: "sharpness: what Q is multiplied by",
};
const FORMATS = {
  e4m3: ["e4m3", "e4m3", "4 bits of exponent, 3 of mantissa"],
  e5m2: ["e5m2", "e5m2", "5 bits of exponent, 2 of mantissa"],
  int8: ["int8", "int8", "whole numbers from -127 to 127"],
  fp16: ["fp16", "fp16", "16 bits, to compare with"],
  bf16: ["bf16", "bf16", "16 bits, as most kernels give O"],
};
const formats = (...names) => names.map((name) => FORMATS[name]);
const CHOICES = {
  mean: ["", "means", [
    ["none", "around 0", "Q, K and V are normal numbers"],
    ["channels", "a mean for each channel", "the channels of K and V have means of their own"],
    ["positive", "V positive", "all of V is larger than 0"],
  ]],
  qk: ["Q, K", "format of Q and K", formats("e4m3", "e5m2", "int8", "fp16")],
  pv: ["P, V", "format of P and V", formats("e4m3", "e5m2", "fp16")],
  o: ["O", "format of O", formats("bf16", "e4m3")],
  scales: ["scales", "who shares a scale", [
    ["tensor", "tensor", "one scale for Q, one for K, one for V"],
    ["block", "block", "a scale for 64 rows of Q and K, one for each channel of V"],
    ["row", "row", "a scale for each row of Q and K, one for each channel of V"],
  ]],
  p_times: ["P times", "what P is multiplied by before it is rounded", [["1", "1"], ["256", "256"], ["448", "448"]]],
  sums: ["sums", "how products are added", [
    ["13 bits", "13 bits", "as Hopper's tensor cores add products of eight bits"],
    ["two levels", "two levels", "tiles so, and their sums in fp32"],
    ["exact", "exact", "no GPU does it in eight bits"],
  ]],
};
const SWITCHES = {
  rotate: "rotate Q and K",
  k_minus_mean: "K minus its mean",
  v_minus_mean: "V minus its mean",
  power_of_two: "powers of two",
  l_rounded: "l of rounded P",
};
const LABELS = { plain: "plain", "O in e4m3": "O in e4m3 too", careful: "careful", "int8 for Q and K": "careful, int8 for Q and K" };

/** The controls of EightBitsLab; `ask` is called with what is chosen. */
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
    for (const [name, [, label, options]] of Object.entries(CHOICES)) {
      const value = (word) => (name === "p_times" ? Number(word) : word);
      this.choices[name] = choice(name, /** @type {string} */ (label), /** @type {string[][]} */ (options), (word) =>
        ask({ [name]: value(word) }),
      );
    }
    /** @type {Record<string, ReturnType<typeof toggle>>} */
    this.switches = {};
    for (const [name, label] of Object.entries(SWITCHES))
      this.switches[name] = toggle(h("span", {}, typeset(label)), (on) => ask({ [name]: on }));
    this.elements = [
      this.#group("numbers", "What is attended to", ...Object.values(this.sliders).map(({ element }) => element), this.#named("mean")),
      this.#group("formats", "In which numbers", ...["qk", "pv", "o", "sums"].map((name) => this.#named(name))),
      this.#group("ideas", "How they are rounded", this.#named("scales"), this.#named("p_times"), ...this.#switches()),
      this.#group("presets", "All at once", ...this.#presets(presets, ask)),
    ];
  }

  #group(name, label, ...children) {
    return h("div", { class: `flash-eight-${name}`, role: "group", "aria-label": label }, note(label), div("", children));
  }

  /** A choice with its name before it. */
  #named(name) {
    const { element } = this.choices[name];
    const [label] = CHOICES[name];
    return label ? div("flash-eight-named", h("span", {}, typeset(/** @type {string} */ (label))), element) : element;
  }

  #switches() {
    return Object.entries(this.switches).map(([name, { element }]) => {
      element.dataset.name = name;
      return element;
    });
  }

  #presets(presets, ask) {
    return Object.entries(presets).map(([name, setting]) =>
      h(
        "button",
        { type: "button", class: "flash-button flash-text", "data-preset": name, onclick: () => ask(setting) },
        h("span", {}, typeset(LABELS[name])),
      ),
    );
  }

  /**
   * @param {(name: any) => any} chosen
   * @param {Result} result
   */
  show(chosen, { stops: values }) {
    for (const [name, { show }] of Object.entries(this.sliders)) show(chosen(name), values[name], name === "N" ? "" : " ×");
    for (const [name, { show }] of Object.entries(this.choices)) show(String(chosen(name)));
    for (const [name, { show }] of Object.entries(this.switches)) show(chosen(name));
  }
}
