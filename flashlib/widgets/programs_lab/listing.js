/** @import { Result } from "./types.js" */
import { div, h, note, put, setText } from "../shared/elements.js";

const isFault = (text) => text.startsWith("✕");

/** The lines of the kernel, each with the value that it has in the program that is shown. */
export class Listing {
  /** @type {Result} */
  result;
  /** @type {Map<number, HTMLElement>} by line */
  values;

  constructor() {
    this.note = note();
    this.launch = h("code", {});
    this.element = div("flash-programs-code");
  }

  /** @param {Result} result */
  take(result) {
    this.result = result;
    setText(this.launch, result.launch);
    const same = this.text === result.lines.map(({ text }) => text).join("\n");
    this.text = result.lines.map(({ text }) => text).join("\n");
    if (same) return;
    this.values = new Map();
    const launch = div("flash-programs-launch", h("span"), this.launch);
    this.element.replaceChildren(...result.lines.map((line) => this.#row(line)), launch);
  }

  #row({ key, number, text, kind }) {
    const value = h("code", {});
    this.values.set(key, value);
    const line = h("span", {}, h("code", {}, text), value);
    return h("div", { "data-kind": kind }, h("code", { class: "flash-programs-line" }, String(number)), line);
  }

  /**
   * A line that ran several times has the value of the turn; of its last one if there is none of that turn.
   * @param {number} program
   * @param {number} turn
   */
  draw(program, turn) {
    const shown = new Map();
    const { values, programs } = this.result;
    for (const [its, line, at, text] of values) if (its === program && at <= turn) shown.set(line, text);
    this.note.hidden = ![...shown.values()].some((text) => !isFault(text));
    setText(this.note, `values in ${programs[program]?.name ?? ""}`);
    for (const [line, value] of this.values) {
      const text = shown.get(line) ?? "";
      setText(value, text);
      put(value, "data-mark", isFault(text) ? "wrong" : "value");
    }
  }
}
