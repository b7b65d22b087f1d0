/** @import { Result } from "./types.js" */
import { div, h, panel, setSentence, setText, typeset } from "../shared/elements.js";
import { number } from "../shared/number_text.js";
import { KB, key, mark } from "./marks.js";

/** @type {[kind: string, title: string, names: string[]][]} */
const HELD = [
  ["read", "inputs", ["Q_i", "K_j", "V_j"]],
  ["kept", "accumulated", ["O_acc", "m, l"]],
  ["scores", "scores", ["S_ij"]],
];

/** What one tile holds on chip, piece by piece, compared with the capacity. */
export class Sram {
  constructor() {
    this.pieces = HELD.flatMap(([kind, , names]) => names.map((name) => this.#piece(kind, name)));
    this.over = h("i", { class: "flash-tiling-over" });
    this.limit = h("i", { class: "flash-tiling-limit" });
    this.verdict = h("span", { class: "flash-tiling-verdict" });
    this.excess = h("span", { class: "flash-tiling-excess" });
    this.room = h("span", {});
    const groups = HELD.map(([kind, title, names]) => {
      const items = this.pieces.filter(({ name }) => names.includes(name)).map(({ item }) => item);
      return div("flash-tiling-group", key(kind, title), items, kind === "scores" && this.excess);
    });
    this.element = panel(
      "tiling-sram",
      "SRAM of one tile",
      this.verdict,
      div(
        "flash-tiling-track",
        this.pieces.map((piece) => piece.bar),
        this.over,
        this.limit,
      ),
      groups,
      h("p", { class: "flash-note flash-tiling-room" }, mark("limit"), this.room),
    );
  }

  #piece(kind, name) {
    const label = () => h("span", { class: "flash-symbol" }, typeset(name));
    const inside = label();
    const bar = h("i", { class: `flash-tiling-piece flash-tiling-${kind}` }, inside);
    const held = h("span", {});
    return { name, inside, bar, held, item: h("span", { "data-piece": name }, label(), held) };
  }

  /** @param {Result} result */
  draw({ sram, capacity, N, B_r, B_c }) {
    const { held, room, fits, text, gpus } = sram;
    const full = Math.max(held, room);
    for (const piece of this.pieces) {
      const share = sram.pieces[piece.name] / full;
      piece.bar.style.width = `${100 * share}%`;
      piece.inside.hidden = share < 0.08;
      piece.item.title = `${sram.pieces[piece.name]} bytes`;
      setText(piece.held, `${number(sram.pieces[piece.name] / KB)} KB`);
    }
    this.limit.style.left = `${(100 * room) / full}%`;
    this.over.style.left = this.limit.style.left;
    this.over.hidden = fits;
    this.element.dataset.fits = String(fits);
    this.verdict.title = `${held} of ${room} bytes`;
    setText(this.verdict, `${text.held} of ${capacity} KB: ${fits ? "✓ fits" : "✕ does not fit"}`);
    setText(this.excess, fits ? "" : `▲ ${text.excess} KB too much`);
    const sentences = [
      gpus && `${capacity} KB is the most for one thread block on: ${gpus}.`,
      Math.max(B_r, B_c) > N && `A block of more than N = ${N} rows is held whole, partly empty.`,
      "1 KB is 1024 bytes here.",
    ];
    setSentence(this.room, sentences.filter(Boolean).join(" "));
  }
}
