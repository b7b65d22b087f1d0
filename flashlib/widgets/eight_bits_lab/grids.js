/** @import { Result } from "./types.js" */
import { div, note, panel } from "../shared/elements.js";
import { watchRoom } from "../split_lab/axes.js";
import { eightKey } from "./marks.js";
import { Tensor } from "./tensor.js";

const OF_TENSORS = /** @type {const} */ ({ Q: "qk", K: "qk", V: "pv", P: "pv" });
const KEYS = { bars: "numbers of this size", gone: "that become 0", comb: "numbers of the format" };

/** Histograms of Q, K, V and P by size, and below them the numbers of eight bits. */
export class Grids {
  /** @type {Result} */
  sent;
  /** @type {number} */
  room;

  constructor() {
    this.tensors = Object.keys(OF_TENSORS).map((name) => new Tensor(name));
    const row = div("flash-eight-tensors", this.tensors.map(({ element }) => element));
    const keys = Object.entries(KEYS).map(([name, text]) => eightKey(name, text));
    const hint = note("by size, over the largest that the scale holds");
    const title = "The numbers, and the grid that they are rounded to";
    this.element = panel("eight-grids", title, hint, row, div("flash-legend flash-note", keys));
    this.resized = watchRoom(this.tensors[0].element, this, () => this.draw(this.sent));
  }

  /** @param {Result} sent */
  draw(sent) {
    this.sent = sent;
    if (!sent) return;
    const { rounding, grids, octaves } = sent;
    const draw = (tensor, k) => tensor.draw(rounding[k], grids[OF_TENSORS[tensor.name]], octaves, this.room);
    this.tensors.forEach(draw);
  }
}
