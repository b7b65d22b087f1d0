// The controls of a tiling to which Python responds; a widget has some of them.

/** @import { Widget } from "../shared/widget.js" */
/** @import { Shown } from "./types.js" */
import { choice, slider, toggle } from "../shared/controls.js";
import { h } from "../shared/elements.js";

const SLIDERS = {
  B_r: "B_r, rows of a block of Q",
  B_c: "B_c, rows of a block of K and V",
  N: "N, rows of Q, K and V",
  d: "d, columns of Q, K and V",
};

/** @type {Record<string, [label: string, options: string[][]]>} */
const CHOICES = {
  order: [
    "loop order",
    [
      ["fa1", "FA1", "FlashAttention: K and V in the outer loop"],
      ["fa2", "FA2", "FlashAttention-2: Q in the outer loop"],
    ],
  ],
  wrt: [
    "gradients that are summed",
    [
      ["kv", "dK, dV: column blocks stay", "K_j and V_j stay, the row blocks pass by"],
      ["q", "dQ: row blocks stay", "Q_i and dO_i stay, the column blocks pass by"],
    ],
  ],
};

/** `blocks`: the block sizes; `others`: everything else, including the inputs. */
export class TilingControls {
  /** @param {Widget<any>} widget */
  constructor(widget) {
    this.model = widget.model;
    const sent = this.model.get("frames");
    const has = (name) => (sent.controls ?? []).includes(name);
    this.controls = {};
    for (const [name, label] of Object.entries(SLIDERS))
      if (has(name)) this.controls[name] = slider(name, label, (value) => widget.ask({ [name]: value }));
    for (const [name, [label, options]] of Object.entries(CHOICES))
      if (has(name)) this.controls[name] = choice(name, label, options, (value) => widget.ask({ [name]: value }));
    if (has("causal")) this.controls.causal = toggle("causal", (causal) => widget.ask({ causal }));
    const isBlock = (name) => name === "B_r" || name === "B_c";
    const elements = (is) => Object.keys(this.controls).filter(is).map((name) => this.controls[name].element);
    this.blocks = elements(isBlock);
    this.others = elements((name) => !isBlock(name));
    const again = () => widget.ask({ seed: this.model.get("frames").setting.seed + 1 });
    const button = { type: "button", class: "flash-button flash-text", onclick: again };
    if (has("N")) this.others.push(h("button", button, "new numbers"));
  }

  /**
   * Show the setting that was requested last: during a drag, Python's answer is for an earlier one.
   * @param {Shown} sent
   */
  show({ ranges }) {
    for (const [name, control] of Object.entries(this.controls)) control.show(this.model.get(name), ranges[name]);
  }
}
