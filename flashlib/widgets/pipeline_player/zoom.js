/** @import { Result } from "./types.js" */
import { div, h, note, setText } from "../shared/elements.js";
import { moved, zoomed } from "./view.js";

/** The part of the axis that is shown, [from, to]; `changed` is called with it. */
export class PipeZoom {
  /**
   * @param {Result} result
   * @param {(view: number[]) => void} changed
   */
  constructor(result, changed) {
    this.result = result;
    this.changed = changed;
    this.view = [0, result.end];
    const button = (text, label, press) =>
      h("button", { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: press }, text);
    this.range = note();
    this.element = div(
      "flash-buttons flash-pipelining-zoom",
      button("+", "zoom in (+)", () => this.by(0.5)),
      button("−", "zoom out (−)", () => this.by(2)),
      button("all", "the whole axis (0)", () => this.whole()),
      this.range,
    );
    this.at = 0;
    this.#tell();
  }

  whole() {
    this.#go([0, this.result.end]);
  }

  /**
   * Show this many times as much, with the current time in the middle.
   * @param {number} factor
   */
  by(factor) {
    this.#go(zoomed(this.view, factor, this.at, this.result.end));
  }

  /**
   * Move on to another part if the current one does not contain this time.
   * @param {number} at
   */
  follow(at) {
    this.at = at;
    const [from, to] = this.view;
    if (at < from || at > to) this.#go(moved(this.view, at, this.result.end));
  }

  #go(view) {
    this.view = view;
    this.#tell();
    this.changed(this.view);
  }

  #tell() {
    const [from, to] = this.view.map(Math.round);
    setText(this.range, `${this.result.axis} ${from} to ${to}`);
  }
}
