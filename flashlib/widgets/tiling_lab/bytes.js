/** @import { Moved as Sent, Result } from "./types.js" */
import { div, h, panel, setSentence, setText } from "../shared/elements.js";
import { exact, number } from "../shared/number_text.js";
import { key } from "./marks.js";

const ALGORITHMS = /** @type {const} */ (["standard", "FA1", "FA2"]);

/** What an algorithm reads and writes, in numbers and as a bar. */
class Moved {
  /** @param {typeof ALGORITHMS[number]} name */
  constructor(name) {
    this.name = name;
    const part = (kind) => h("i", { class: `flash-tiling-${kind}` });
    const text = (kind) => h("span", { class: `flash-tiling-moved-${kind}` });
    this.read = part("read");
    this.written = part("written");
    this.level = part("level");
    this.total = text("total");
    this.ratio = text("ratio");
    this.more = text("more");
    this.parts = text("parts");
    const words = [this.total, this.ratio, this.more, this.parts];
    this.element = h(
      "div",
      { class: "flash-tiling-moved", "data-name": name },
      div("flash-tiling-moved-words", h("b", {}, name), words),
      div("flash-tiling-track", [this.read, this.written, this.level]),
    );
  }

  /**
   * The length of the bar is its share of `most` bytes; the mark on it is at `standard`.
   * @param {Sent} moved
   * @param {number} standard
   * @param {number} most
   */
  draw({ read, written, ratio, text }, standard, most) {
    this.read.style.width = `${(100 * read) / most}%`;
    this.written.style.width = `${(100 * written) / most}%`;
    this.level.style.left = `${(100 * standard) / most}%`;
    this.element.title = `${exact(read)} bytes read, ${exact(written)} written`;
    this.element.dataset.more = String(ratio > 1);
    setText(this.total, `${text.total} ${text.unit}`);
    setText(this.parts, `read ${text.read}, written ${text.written}`);
    if (this.name === "standard") return;
    setText(this.ratio, `× ${number(ratio)}`);
    setText(this.more, ratio > 1 ? "▲ more" : "");
  }
}

/** What each algorithm reads and writes. */
export class Bytes {
  constructor() {
    this.rows = ALGORITHMS.map((name) => new Moved(name));
    this.flops = h("p", { class: "flash-note flash-tiling-flops" });
    this.element = panel(
      "tiling-bytes",
      "Bytes moved, no cache",
      div("flash-legend", key("read", "read"), key("written", "written"), key("level", "standard")),
      this.rows.map((row) => row.element),
      this.flops,
    );
  }

  /** @param {Result} result */
  draw({ traffic, flops, causal }) {
    const most = Math.max(...Object.values(traffic).map((moved) => moved.total));
    for (const row of this.rows) row.draw(traffic[row.name], traffic.standard.total, most);
    const each = this.rows.map(({ name }) => `${name} ${number(flops / traffic[name].total)}`).join(", ");
    const counted = causal ? "2 N² d: half, as is customary with a causal mask" : "4 N² d";
    setSentence(this.flops, `FLOPs: ${number(flops)} (${counted}). FLOPs per byte: ${each}.`);
  }
}
