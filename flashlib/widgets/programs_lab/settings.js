/** @import { Result, Setting } from "./types.js" */
import { choice, stops, toggle } from "../shared/controls.js";
import { div } from "../shared/elements.js";

const COUNTS = {
  N: "N, elements of a vector, or rows of a matrix",
  BLOCK: "BLOCK, places of a block along each of its axes",
  stride_r: "stride_r, elements from one row to the next",
  stride_c: "stride_c, elements from one column to the next",
};

/** The controls of ProgramsLab; `ask` is called with what is chosen. */
export class ProgramSettings {
  /**
   * @param {[string, string, string][]} kernels
   * @param {(setting: Partial<Setting>) => void} ask
   */
  constructor(kernels, ask) {
    this.kernel = choice("kernel", "kernel", kernels, (kernel) => ask({ kernel }));
    const sliders = Object.entries(COUNTS).map(([name, label]) => [
      name,
      stops(name, name, label, (value) => ask({ [name]: value })),
    ]);
    this.counts = Object.fromEntries(sliders);
    this.mask = toggle("with its mask", (mask) => ask({ mask }));
    this.transposed = toggle("to a transposed copy", (transposed) => ask({ transposed }));
    const others = { ...this.counts, mask: this.mask, transposed: this.transposed };
    this.others = Object.entries(others).map(([name, { element }]) => [name, element]);
    this.elements = [
      this.kernel.element,
      div("flash-programs-sizes", this.others.map(([, element]) => element)),
    ];
  }

  /**
   * Show what is chosen, and only those settings that this kernel has.
   * @param {(name: any) => any} chosen
   * @param {Result} result
   */
  show(chosen, { stops, used }) {
    this.kernel.show(chosen("kernel"));
    for (const [name, { show }] of Object.entries(this.counts)) show(chosen(name), stops[name]);
    this.mask.show(chosen("mask"));
    this.transposed.show(chosen("transposed"));
    for (const [name, element] of this.others) element.hidden = !used.includes(name);
  }
}
