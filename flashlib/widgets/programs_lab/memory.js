/** @import { Tensor } from "./types.js" */
/** @import { Place } from "./places.js" */
import { div, put, setText, svg } from "../shared/elements.js";
import { ELEMENT, MASKED, runsOf } from "./places.js";

const HIGH = 16; // px
const SEPARATE = 4; // px, of an offset whose edges are drawn

/** The same tensor as it lies in memory, one offset after the other. */
export class Memory {
  /** @param {string} kind */
  constructor(kind) {
    const path = (name) => svg("path", { class: `flash-programs-${name}` });
    this.parts = { elements: path("elements"), touched: path(kind), wrong: path("out"), frame: path("cells") };
    this.svg = svg("svg", { class: "flash-programs-memory", height: HIGH, "aria-hidden": "true" }, Object.values(this.parts));
    this.text = div("flash-note");
    this.element = div("flash-programs-strip", this.text, this.svg);
  }

  /**
   * @param {Tensor} tensor
   * @param {Place[]} lanes
   * @param {number} room
   */
  draw({ shape, strides, span, reach, holds }, lanes, room) {
    const [low, high] = reach;
    this.element.hidden = (shape.length < 2 && strides[0] === 1) || high === low;
    if (this.element.hidden) return;
    const one = (room - 1) / (high - low);
    /** @param {number[]} run */
    const box = ([from, to]) => `M${((from - low) * one).toFixed(2)} 1h${((to - from) * one).toFixed(2)}v${HIGH - 2}h${(-(to - from) * one).toFixed(2)}z`;
    const touched = (wanted) => runsOf(lanes.filter(({ state }) => wanted(state)).map(({ offset }) => offset), low, high);
    const edges = one >= SEPARATE ? Array.from({ length: high - low }, (_, k) => [low + k, low + k + 1]) : [span];
    put(this.svg, "viewBox", `0 0 ${room} ${HIGH}`);
    put(this.parts.elements, "d", holds.map(box).join(""));
    put(this.parts.touched, "d", touched((state) => state === ELEMENT).map(box).join(""));
    put(this.parts.wrong, "d", touched((state) => state !== MASKED && state !== ELEMENT).map(box).join(""));
    put(this.parts.frame, "d", edges.map(box).join(""));
    setText(this.text, `the same in memory: offsets ${span[0]} to ${span[1] - 1}`);
  }
}
