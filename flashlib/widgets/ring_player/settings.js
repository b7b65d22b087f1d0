/** @import { Result, Setting } from "./types.js" */
import { choice, stops } from "../shared/controls.js";
import { div, note } from "../shared/elements.js";

const LAYOUTS = [
  ["contiguous", "contiguous", "one piece of the sequence to each rank"],
  ["striped", "striped", "every P-th token to the same rank"],
  ["zigzag", "zigzag", "a piece from the front and one from the back to each rank"],
];
const MASKS = [
  ["causal", "causal", "a row sees the keys up to its own"],
  ["none", "no mask", "a row sees all keys"],
  ["window", "window", "a row sees its own key and the N / 4 before it"],
  ["documents", "documents", "a row sees the keys of its own document, up to its own"],
];
const WAYS = {
  own: ["own", "your rank", "the program that was given"],
  ring: ["ring", "ring", "keys go from rank to rank while tiles are computed"],
  "all-gather": ["all-gather", "all-gather", "every rank gets all keys first"],
};
const SLIDERS = {
  ranks: "ranks of the ring",
  N: "N, tokens of the sequence",
  tile: "time of a tile, 4 rows by 4 keys",
  token: "time to copy a token's K and V",
};

/** The controls of RingPlayer; `ask` is called with a choice. */
export class RingSettings {
  /**
   * @param {Result} result
   * @param {(setting: Partial<Setting>) => void} ask
   */
  constructor({ ways }, ask) {
    const sliders = Object.entries(SLIDERS).map(([name, label]) => [
      name,
      stops(name, name, label, (value) => ask({ [name]: value })),
    ]);
    this.sliders = Object.fromEntries(sliders);
    this.choices = {
      cut: choice("cut", "layout", LAYOUTS, (cut) => ask({ cut })),
      mask: choice("mask", "mask", MASKS, (mask) => ask({ mask })),
      way: choice("way", "how keys travel", ways.map((way) => WAYS[way]), (way) => ask({ way })),
    };
    const { ranks, N, tile, token } = this.sliders;
    const { cut, mask, way } = this.choices;
    this.elements = [
      div("flash-ring-who", ranks.element, N.element, cut.element, mask.element),
      div("flash-ring-speed", way.element, div("flash-ring-times", note("time of a tile and of a copied token"), tile.element, token.element)),
    ];
  }

  /**
   * @param {(name: any) => any} chosen
   * @param {Result} result
   */
  show(chosen, { stops: values }) {
    for (const [name, { show }] of Object.entries(this.sliders)) show(chosen(name), values[name]);
    for (const [name, { show }] of Object.entries(this.choices)) show(chosen(name));
  }
}
