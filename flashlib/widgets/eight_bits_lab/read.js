/** @import { Result } from "./types.js" */
import { div, h, note, panel, setSentence, setText } from "../shared/elements.js";
import { number } from "../shared/numbers.js";

/** What is read of K and V, in 16 bits and now; and speeds that were measured. */
export class Read {
  constructor() {
    this.words = h("p", {});
    this.bars = ["in 16 bits", "now"].map((name) => this.#bar(name));
    this.scales = h("i", { class: "flash-eight-scales" });
    this.bars[1].bar.after(this.scales);
    this.speeds = div("flash-eight-speeds");
    this.note = note();
    const list = div("flash-eight-bytes", this.bars.map(({ element }) => element));
    this.element = panel("eight-read", "Bytes, and speed", this.note, div("flash-eight-read-body", this.words, list, this.speeds));
  }

  #bar(name) {
    const [bar, value] = [h("i", { class: "flash-eight-read" }), h("b", {})];
    const element = div("flash-eight-row", h("span", {}, name), value, div("flash-eight-bar", bar));
    return { element, bar, value };
  }

  /** @param {Result} result */
  draw({ bytes, read, record, way }) {
    const now = bytes.now + bytes.scales;
    const top = Math.max(bytes.before, now);
    setSentence(this.words, read);
    setText(this.bars[0].value, `${number(bytes.before / 1024)} KB`);
    setText(this.bars[1].value, `${number(now / 1024)} KB`);
    this.bars[0].bar.style.width = `${(100 * bytes.before) / top}%`;
    this.bars[1].bar.style.width = `${(100 * bytes.now) / top}%`;
    this.scales.style.width = `${(100 * bytes.scales) / top}%`;
    const fastest = Math.max(...record.map(([, speed]) => speed));
    this.speeds.hidden = !record.length;
    setText(this.note, record.length ? "speeds as measured" : "K and V of one head");
    this.speeds.replaceChildren(
      ...record.map(([name, speed]) => {
        const bar = h("i", { style: `width:${(100 * speed) / fastest}%` });
        const chosen = name === way;
        const row = div("flash-eight-row", h("span", {}, chosen ? `${name}, as chosen` : name), h("b", {}, `${number(speed)} TFLOP/s`), div("flash-eight-bar", bar));
        row.dataset.chosen = String(chosen);
        return row;
      }),
    );
  }
}
