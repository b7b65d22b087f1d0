// The error of the gradients over the steps.

/** @import { At } from "../flash_player/types.js" */
/** @import { BackwardFrames } from "./frames.js" */
/** @import { BackwardStep } from "./types.js" */
import { div, h, note, panel, setText, svg, typeset } from "../shared/elements.js";
import { andList, counted } from "../shared/language.js";
import { exact, number } from "../shared/number_text.js";
import { errorInWords } from "./frames.js";

const CURVE = { width: 1000, height: 100 }; // units of the picture, which is stretched to its place

export class ErrorCurve {
  static key = ({ wrt }) => wrt;

  /** @type {BackwardFrames} */
  frames;
  /** @type {(tiles: number) => number} */
  x;
  /** @type {string[]} for each step, the line of its block's error; those of one block are drawn */
  blocks;

  /** @param {BackwardFrames} frames */
  constructor({ gradients, pass }) {
    const names = [...gradients].sort();
    const path = (name) => svg("path", { class: `flash-${name}` });
    this.paths = { whole: path("whole"), block: path("block"), now: path("now") };
    const box = { viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, preserveAspectRatio: "none", role: "img" };
    this.picture = svg("svg", { class: "flash-curve", ...box }, Object.values(this.paths));
    /** @type {Record<string, HTMLElement>} */
    this.values = {};
    const line = (name, text) => {
      this.values[name] = h("output", { "aria-live": "off", "data-name": `error-${name}` });
      const swatch = svg("svg", { class: "flash-curve flash-stroke", viewBox: "0 0 20 8", "aria-hidden": "true" });
      swatch.append(svg("path", { class: `flash-${name}`, d: "M0 4H20" }));
      return h("div", { class: "flash-error" }, swatch, h("span", {}, text), this.values[name]);
    };
    const block = h("span", {}, typeset(andList(names.map((name) => `${name}_${pass.index}`))));
    this.indices = [...block.querySelectorAll("sub")];
    const mark = (place, text) => h("span", { class: `flash-note flash-${place}` }, text);
    this.top = mark("top", "");
    this.right = mark("right", "");
    this.element = panel(
      "errors",
      "Error",
      note("to exact gradients"),
      line("block", block),
      line("whole", `all of ${andList(names)}`),
      div(
        "flash-chart",
        this.top,
        mark("bottom", "0"),
        this.picture,
        mark("left", "0"),
        mark("middle", "tiles added"),
        this.right,
      ),
    );
  }

  /** @param {BackwardFrames} frames */
  take(frames) {
    this.frames = frames;
    const { T, numbers, errors, peaks, gradients } = frames;
    this.x = (tiles) => (CURVE.width * tiles) / Math.max(T, 1);
    const y = (error) => CURVE.height * (1 - error / (peaks.error || 1));
    const points = (pairs) =>
      pairs
        .filter(([, error]) => Number.isFinite(error))
        .map(([tiles, error], n) => `${n ? "L" : "M"}${this.x(tiles)} ${y(error)}`)
        .join("");
    const at = (name, k) => numbers[errors[name] + k];
    const whole = Array.from({ length: T + 1 }, (_, k) => [k, at("whole", k)]);
    this.blocks = frames.steps.map((step, k) => {
      const end = [k + 1, at("after", k)];
      return points(step.first ? [[k, at("before", k)], end] : [[k, at("after", k - 1)], end]);
    });
    this.paths.whole.setAttribute("d", points(whole));
    const names = andList([...gradients].sort());
    this.picture.setAttribute("aria-label", `error of ${names} over ${counted(T, "step", "steps")}`);
    setText(this.top, number(peaks.error));
    setText(this.right, String(T));
  }

  /** @param {At<BackwardStep>} at */
  draw(at) {
    const { pass } = this.frames;
    const { block, whole, tiles } = this.frames.error(at);
    const index = at.step ? at.step[pass.index] : pass.index;
    this.indices.forEach((element) => setText(element, String(index)));
    for (const [name, error] of Object.entries({ block, whole })) {
      setText(this.values[name], error === undefined ? "" : errorInWords(error, this.frames.dtype));
      this.values[name].title = error === undefined ? "" : exact(error);
    }
    const own = this.frames.steps.map((step, k) => (step[pass.index] === at.step?.[pass.index] ? this.blocks[k] : ""));
    this.paths.block.setAttribute("d", own.join(""));
    this.paths.now.setAttribute("d", `M${this.x(tiles)} 0V${CURVE.height}`);
  }
}
