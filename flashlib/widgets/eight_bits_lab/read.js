/** @import { Result } from "./types.js" */
import { div, h, note, panel, setSentence, setText } from "../shared/elements.js";
import { number } from "../shared/number_text.js";

const percentOf = (part, all) => `${(100 * part) / all}%`;

/** A name, a value and a bar. */
function row(name) {
  const [bar, value] = [h("i", {}), h("b", {})];
  const element = div("flash-eight-row", h("span", {}, name), value, div("flash-eight-bar", bar));
  return { element, bar, value };
}

/** The bytes read of K and V, in 16 bits and now; and measured speeds. */
export class Read {
  constructor() {
    this.words = h("p", {});
    this.bars = ["in 16 bits", "now"].map(row);
    this.scales = h("i", { class: "flash-eight-scales" });
    this.bars[1].bar.after(this.scales);
    this.speeds = div("flash-eight-speeds");
    this.note = note();
    const list = div("flash-eight-bytes", this.bars.map(({ element }) => element));
    const body = div("flash-eight-read-body", this.words, list, this.speeds);
    this.element = panel("eight-read", "Bytes, and speed", this.note, body);
  }

  /** @param {Result} result */
  draw({ bytes, read, record, way }) {
    const all = bytes.now + bytes.scales;
    const top = Math.max(bytes.before, all);
    setSentence(this.words, read);
    setText(this.bars[0].value, `${number(bytes.before / 1024)} KB`);
    setText(this.bars[1].value, `${number(all / 1024)} KB`);
    this.bars[0].bar.style.width = percentOf(bytes.before, top);
    this.bars[1].bar.style.width = percentOf(bytes.now, top);
    this.scales.style.width = percentOf(bytes.scales, top);
    setText(this.note, record.length ? "speeds as measured" : "K and V of one head");
    this.#speeds(record, way);
  }

  /**
   * @param {Result["record"]} record
   * @param {string} way
   */
  #speeds(record, way) {
    const fastest = Math.max(...record.map(([, speed]) => speed));
    this.speeds.hidden = !record.length;
    const rows = record.map(([name, speed]) => {
      const { element, bar, value } = row(name === way ? `${name}, as chosen` : name);
      bar.style.width = percentOf(speed, fastest);
      setText(value, `${number(speed)} TFLOP/s`);
      element.dataset.chosen = String(name === way);
      return element;
    });
    this.speeds.replaceChildren(...rows);
  }
}
