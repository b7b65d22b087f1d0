// The bytes moved by both orders over the steps, and in all by standard attention, in one chart.

/** @import { Frames } from "./frames.js" */
import { div, h, note, setText, svg } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { bytes } from "./frames.js";

const MOVERS = { fa1: "FA1", fa2: "FA2", standard: "standard attention, in all" };
const TALL = 100; // units of the picture, which is stretched to its place

/** Each position of the scrub bar is directly above that of the chart. The axes have their numbers in the corners. */
export class BytesChart {
  constructor() {
    const names = Object.keys(MOVERS);
    this.paths = Object.fromEntries(names.map((name) => [name, svg("path", { "data-name": name })]));
    this.now = svg("path", { class: "flash-now" });
    const name = { role: "img", "aria-label": "bytes moved over the steps" };
    const box = { class: "flash-bytes-curves", preserveAspectRatio: "none", ...name };
    this.picture = svg("svg", box, this.now, Object.values(this.paths));
    this.texts = Object.fromEntries(names.map((name) => [name, h("b", { "data-name": name })]));
    const key = (name) => {
      const stroke = svg("path", { "data-name": name, d: "M0 4H26" });
      const line = svg("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, stroke);
      return h("span", {}, line, `${MOVERS[name]}: `, this.texts[name]);
    };
    this.top = note();
    this.end = note();
    const keys = div("flash-bytes-keys", note("0 B, step 0"), names.map(key), this.end);
    this.element = div("flash-bytes", this.top, this.picture, keys);
  }

  /**
   * Take the frames of both orders.
   * @param {Record<"fa1" | "fa2", Frames>} both
   */
  take(both) {
    this.both = Object.entries(both);
    const [[, first]] = this.both;
    const last = Math.max(first.last, 1);
    const standard = first.sum(first.standardMoved());
    const most = Math.max(standard, ...this.both.map(([, frames]) => frames.sum(frames.total())), 1);
    const up = (moved) => TALL * between(0, 1 - moved / most, 1);
    const point = (frames, k) => `${k} ${up(this.#moved(frames, k))}`;
    this.picture.setAttribute("viewBox", `0 0 ${last} ${TALL}`);
    for (const [name, frames] of this.both) {
      const points = Array.from({ length: frames.last + 1 }, (_, k) => point(frames, k));
      this.paths[name].setAttribute("d", `M${points.join("L")}`);
    }
    this.paths.standard.setAttribute("d", `M0 ${up(standard)}H${last}`);
    setText(this.texts.standard, bytes(standard));
    setText(this.top, `bytes moved, up to ${bytes(most)}`);
    setText(this.end, `step ${first.last}`);
  }

  /**
   * The bytes moved up to a position.
   * @param {Frames} frames
   * @param {number} position
   */
  #moved(frames, position) {
    return frames.sum(frames.moved(frames.at(position)));
  }

  /** @param {number} position */
  draw(position) {
    this.now.setAttribute("d", `M${position} 0V${TALL}`);
    for (const [name, frames] of this.both ?? []) setText(this.texts[name], bytes(this.#moved(frames, position)));
  }
}
