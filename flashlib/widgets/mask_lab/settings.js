/** @import { Setting } from "./types.js" */
import { choice, stops } from "../shared/controls.js";
import { div, h, setSentence } from "../shared/elements.js";
import { field } from "./field.js";

const KINDS = {
  causal: ["causal", "c <= r: keys up to a row's own"],
  window: ["window", "keys near a row's own"],
  prefix: ["prefix", "causal, and the first n keys for all"],
  documents: ["documents", "sequences packed into one: a row sees its own"],
  blocks: ["blocks", "a table of blocks that are seen"],
  line: ["write one", "a line of Python"],
  given: ["given", "the mask that MaskLab was made with"],
};
const ALSO = { none: "nothing else", causal: "causal", window: "window", documents: "documents" };
const LABELS = {
  left: "left, how many keys before its own a row sees",
  right: "right, how many keys after its own a row sees",
  n: "n, keys of the prefix, which all rows see",
  block: "block, rows and keys of a block of the table",
  share: "share, percent of the blocks that are seen",
  N_q: "N_q, rows of Q",
  N_k: "N_k, rows of K and V",
  B_r: "B_r, rows of a tile",
  B_c: "B_c, keys of a tile",
  d: "d, head dimension",
};
const HINTS = {
  causal: "c <= r: a row at position r sees the keys up to its own.",
  window: "r - left <= c <= r + right.",
  prefix: "c <= r, or c < n: all rows see the first n keys.",
  documents: "The rest of N_k is one more document; what goes beyond N_k is cut off.",
  blocks: "In the table, share percent of the blocks are seen; a tile may have a different size.",
  line: "r: the position of a row, c: a key. Comparisons, + - * / // %, & | ~, `N_q`, `N_k`, abs, min and max.",
  given: "The mask that MaskLab was made with.",
};
const LINES = {
  strided: "(r - c) % 3 == 0",
  band: "abs(r - c) < 6",
  "window and sink": "(c <= r) & ((r - c < 12) | (c < 4))",
  triangles: "(r & c) == c",
};
export const upTo = (first, last) => Array.from({ length: last - first + 1 }, (_, k) => first + k);
const VALUES = {
  left: [...upTo(0, 96), null],
  right: [...upTo(0, 96), null],
  n: upTo(0, 96),
  block: upTo(1, 48),
  share: upTo(0, 100),
  N_q: upTo(1, 96),
  N_k: upTo(1, 96),
  B_r: upTo(1, 48),
  B_c: upTo(1, 48),
  d: [16, 32, 64, 128, 256],
};
const SIZES = ["N_q", "N_k", "B_r", "B_c", "d"];

/** The controls of MaskLab; `ask` is called with a choice. */
export class MaskSettings {
  /**
   * @param {string[]} kinds
   * @param {(setting: Partial<Setting>) => void} ask
   */
  constructor(kinds, ask) {
    const options = kinds.map((kind) => [kind, ...KINDS[kind]]);
    this.kind = choice("kind", "mask", options, (kind) => ask({ kind }));
    this.also = this.#also(ask);
    const sliders = Object.entries(LABELS).map(([name, label]) => [
      name,
      stops(name, name, label, (value) => ask({ [name]: value })),
    ]);
    this.sliders = Object.fromEntries(sliders);
    this.fields = {
      lengths: field("lengths", "lengths of the documents, in tokens", (lengths) => ask({ lengths })),
      line: field("line", "the mask as a line of Python, of r, c, N_q and N_k", (line) => ask({ line })),
    };
    const examples = Object.entries(LINES).map(([name, line]) =>
      h("button", { type: "button", class: "flash-button flash-text", title: line, onclick: () => ask({ line }) }, name),
    );
    this.examples = h("div", { class: "flash-mask-examples", role: "group", "aria-label": "lines to fill in" }, examples);
    const own = Object.keys(LABELS).filter((name) => !SIZES.includes(name));
    this.own = [
      ...own.map((name) => [name, this.sliders[name].element]),
      ...Object.entries(this.fields).map(([name, { element }]) => [name, element]),
      ["line", this.examples],
    ];
    this.hint = h("span", { class: "flash-note flash-mask-hint" });
    this.elements = [
      div("flash-mask-kinds", this.kind.element, this.also.element),
      div("flash-mask-own", this.own.map(([, element]) => element)),
      this.hint,
      div("flash-mask-sizes", SIZES.map((name) => this.sliders[name].element)),
    ];
  }

  #also(ask) {
    const options = Object.entries(ALSO).map(([value, text]) => h("option", { value }, text));
    const select = h(
      "select",
      { class: "flash-speed", "aria-label": "a second mask: a score is seen if both see it", onchange: () => ask({ also: select.value }) },
      options,
    );
    const element = h("label", { class: "flash-toggle" }, "and", select);
    return { element, show: (value) => (select.value = value) };
  }

  /** Show the choices, and only those settings of masks that are used. */
  show(chosen, used) {
    this.kind.show(chosen("kind"));
    this.also.show(chosen("also"));
    for (const [name, { show }] of Object.entries(this.sliders)) show(chosen(name), VALUES[name]);
    for (const [name, { show }] of Object.entries(this.fields)) show(chosen(name));
    for (const [name, element] of this.own) element.hidden = !used.includes(name);
    setSentence(this.hint, HINTS[chosen("kind")]);
  }

  /** Mark each field whose value was not accepted, according to the names in `refused`. */
  mark(refused) {
    for (const [name, { invalid }] of Object.entries(this.fields)) invalid(refused(name));
  }
}
