// TilingLab: what a block size costs; for a first look, `less`: the tiles alone. Python computed all numbers and
// sentences; this file draws them.

/** @import { Colours } from "../shared/colours.js" */
/** @import { Result, Traits } from "./types.js" */
import { colourScale, paintScale } from "../shared/colours.js";
import { choice, stops, toggle } from "../shared/controls.js";
import { div, h, headline, setSentence } from "../shared/elements.js";
import { Widget } from "../shared/widget.js";
import { Bytes } from "./bytes.js";
import { Cut } from "./cut.js";
import { TileMap } from "./map.js";
import { Sram } from "./sram.js";

const SETTINGS = {
  N: ["N", "N, rows of Q, K and V"],
  d: ["d", "d, head dimension"],
  B_r: ["B_r", "B_r, rows of a block of Q"],
  B_c: ["B_c", "B_c, rows of a block of K and V"],
  capacity: ["SRAM", "SRAM that a thread block can have, in KB"],
};
const DTYPES = [
  ["float16", "fp16", "2 bytes an item"],
  ["bfloat16", "bf16", "2 bytes an item"],
  ["float32", "fp32", "4 bytes an item"],
  ["float64", "fp64", "8 bytes an item, accumulated in fp64 too"],
];
const ORDERS = [
  ["fa1", "FA1", "FlashAttention: K and V in the outer loop"],
  ["fa2", "FA2", "FlashAttention-2: Q in the outer loop"],
];

/** @extends {Widget<Traits>} */
class TilingLab extends Widget {
  /** @type {Result} */
  result;
  /** @type {Colours} */
  colour;
  /** @type {(Cut | TileMap | Sram | Bytes)[]} */
  parts;
  /** @type {number} */
  drawTime;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "tiling-lab", "the costs of a tiling");
    const result = this.model.get("result");
    this.less = result.panels === "less";
    const shown = Object.entries(SETTINGS).filter(([name]) => !this.less || name === "B_r" || name === "B_c");
    this.sliders = shown.map(([name, [text, label]]) => ({
      name,
      ...stops(name, text, label, (value) => this.ask({ [name]: value })),
    }));
    this.dtype = choice("dtype", "dtype", DTYPES, (dtype) => this.ask({ dtype }));
    this.causal = toggle("causal", (causal) => this.ask({ causal }));
    this.order = choice("order", "order of the map", ORDERS, (order) => this.ask({ order }));
    this.head = headline(this.less ? "Which tiles are computed?" : "Which tile moves the fewest bytes?");
    this.words = (this.less ? [0, 1] : [0, 1, 2]).map(() => h("p", {}));
    if (result.map) this.#build(result.map.blocks);
    this.start("result");
  }

  /** @param {number[]} blocks */
  #build(blocks) {
    this.parts = this.less ? [new Cut({ less: true })] : [new Cut(), this.#map(blocks), new Sram(), new Bytes()];
    this.root.classList.toggle("flash-less", this.less);
    const sliders = this.sliders.map(({ element }) => element);
    const kinds = div("flash-tiling-kinds", !this.less && this.dtype.element, this.causal.element);
    this.root.append(
      this.head.element,
      div(
        "flash-tiling-stage",
        div("flash-panel flash-tiling-settings", this.settings(sliders, kinds)),
        div("flash-panel flash-words", this.words),
        this.parts.map(({ element }) => element),
      ),
    );
  }

  /** @param {number[]} blocks */
  #map(blocks) {
    const order = h("fieldset", { class: "flash-settings" }, this.order.element);
    const id = `flash-tiling-${Math.random().toString(36).slice(2)}`;
    const asks = { asked: (name) => this.model.get(name), chosen: (sizes) => this.ask(sizes) };
    return new TileMap(id, blocks, asks, order);
  }

  /** @param {Result} result */
  load(result) {
    this.result = result;
    // The last request, which may not be answered yet: a slider must not jump back under the hand.
    const chosen = (name) => (this.off ? result[name] : this.model.get(name));
    for (const { name, show } of this.sliders) {
      const value = chosen(name);
      if (result.stops[name].includes(value)) show(value, result.stops[name], name === "capacity" ? `${value} KB` : `${value}`);
    }
    for (const name of ["dtype", "causal", "order"]) this[name].show(chosen(name));
    if (!this.colour) this.paint();
    this.draw();
  }

  paint() {
    if (!this.root.isConnected) return; // paint is called again once it is on the page
    this.colour = colourScale(this.root);
    paintScale(this.root, this.colour);
  }

  draw() {
    if (!this.colour || !this.result) return;
    const started = performance.now();
    for (const part of this.parts) part.draw(this.result, this.colour);
    const { N, B_r, B_c } = this.result;
    const tile = `${Math.min(B_r, N)} × ${Math.min(B_c, N)}`;
    setSentence(this.head.now, `Of ${N} × ${N} scores, one tile of ${tile} is on chip at a time. Move B_r or B_c.`);
    this.result.words.forEach((words, k) => setSentence(this.words[k], words));
    this.spoken.say(this.result.words.join(" "));
    this.drawTime = performance.now() - started; // ms
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new TilingLab(context);
    return () => lab.stop();
  },
};
