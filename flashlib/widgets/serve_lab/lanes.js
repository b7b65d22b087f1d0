/** @import { Motion } from "../shared/motion.js" */
/** @import { Result, Run } from "./types.js" */
import { div, h, note, panel, setText, svg } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { box, footPath, markPath, MARKS } from "./marks.js";
import { watchRoom } from "../split_lab/axes.js";

const LANES = { label: 74, right: 4, top: 2, high: 12, all: 132, gap: 2, axis: 13, digit: 6 }; // px
const STRIPS = {
  slots: [["decode", "token"], ["reading", "read"], ["held", "held"]],
  tokens: [["decode", "token"], ["read", "read"]],
  pages: [["used", "used"], ["kept", "kept"]],
};

/** One run: a lane for each request and a strip for each shared resource, over the steps; `seek` goes to a step. */
export class Lanes {
  /** @type {Result} */
  result;
  /** @type {Run} */
  run;
  /** @type {number} */
  room;
  /** @type {number | undefined} */
  position;
  /** @type {number} */
  wide;
  /** @type {number} px, of a strip: fewer lanes leave more room */
  strip;
  /** @type {SVGRectElement} */
  behind;
  /** @type {SVGRectElement} */
  cursor;
  /** @type {SVGRectElement} */
  cover;

  /**
   * @param {string} name
   * @param {string} note_text
   * @param {(step: number) => void} seek
   * @param {boolean} last whether the axis is below it, which all runs share
   */
  constructor(name, note_text, seek, last) {
    this.name = name;
    this.axis = last ? LANES.axis : 0;
    this.seek = seek;
    this.words = h("p", {});
    this.room_of_words = h("p", { "aria-hidden": "true" }); // the longest sentence, invisible: nothing must jump
    this.svg = svg("svg", { role: "img", class: "flash-serving-lanes" });
    for (const kind of ["pointerdown", "pointermove"]) this.svg.addEventListener(kind, (event) => this.#point(event));
    const room = div("flash-serving-room", this.svg);
    const sentence = div("flash-serving-sentence", this.words, this.room_of_words);
    const title = name === "continuous" ? "Continuous batching" : "Static batching";
    this.element = panel(`serving-run flash-serving-${name}`, title, note(note_text), sentence, room);
    this.resized = watchRoom(room, this, () => this.#plot());
  }

  /**
   * @param {Result} result
   * @param {Run} run
   */
  take(result, run) {
    this.result = result;
    this.run = run;
    const longest = run.frames.reduce((a, b) => (a.words.length >= b.words.length ? a : b));
    setText(this.room_of_words, longest.words);
    this.svg.setAttribute("aria-label", run.words);
    this.#plot();
  }

  /**
   * @param {number} position
   * @param {Motion} [motion]
   */
  draw(position, motion) {
    const moved = position - (this.position ?? position);
    this.position = position;
    setText(this.words, this.run.frames[position].words);
    if (!this.cursor) return;
    const x = this.#x(position);
    for (const mark of [this.cursor, this.behind]) mark.setAttribute("x", x);
    this.cover.setAttribute("x", x + this.wide);
    this.cover.setAttribute("width", Math.max(0, this.#x(this.result.steps) - x - this.wide));
    if (!moved || !motion) return;
    const way = `translateX(${-moved * this.wide}px)`;
    for (const mark of [this.cursor, this.behind]) motion.from(mark, { transform: way });
  }

  /** @param {number} step */
  #x(step) {
    return LANES.label + step * this.wide;
  }

  #point(event) {
    if (!this.wide || (event.type === "pointermove" && !event.buttons)) return;
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    if (x >= LANES.label) this.seek(between(0, Math.floor((x - LANES.label) / this.wide), this.result.steps - 1));
  }

  #plot() {
    if (!this.room || !this.result) return;
    const { requests, steps } = this.result;
    this.wide = (this.room - LANES.label - LANES.right) / steps;
    const below = LANES.top + requests.length * LANES.high + LANES.gap;
    const strips = Object.keys(STRIPS);
    this.strip = (LANES.all - requests.length * LANES.high) / strips.length;
    const bottom = below + strips.length * (this.strip + LANES.gap);
    const rectangle = (name) =>
      svg("rect", { class: `flash-serving-${name}`, x: 0, y: LANES.top, width: this.wide, height: bottom - LANES.top });
    this.behind = rectangle("behind");
    this.cursor = rectangle("cursor");
    this.cover = rectangle("cover");
    this.svg.setAttribute("viewBox", `0 0 ${this.room} ${bottom + this.axis}`);
    this.svg.setAttribute("height", bottom + this.axis);
    this.svg.replaceChildren(
      this.behind,
      ...this.#lanes(),
      ...strips.flatMap((name, k) => this.#bars(name, below + k * (this.strip + LANES.gap))),
      this.cover,
      this.cursor,
      ...(this.axis ? this.#axis(bottom) : []),
    );
    if (this.position !== undefined && this.position < steps) this.draw(this.position);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {string} words
   * @param {string} [anchor]
   */
  #text(x, y, words, anchor = "start") {
    return svg("text", { class: "flash-serving-text", x, y, "text-anchor": anchor }, words);
  }

  #lanes() {
    const { requests } = this.result;
    const marks = Object.fromEntries([...Object.keys(MARKS), "foot"].map((letter) => [letter, ""]));
    const texts = [];
    requests.forEach(({ prompt, answer }, k) => {
      const y = LANES.top + k * LANES.high;
      const place = (step) => [this.#x(step), y, this.wide, LANES.high];
      [...this.run.lanes[k]].forEach((letter, step) => {
        if (letter !== " ") marks[letter] += markPath(letter, ...place(step));
      });
      marks.end += markPath("end", ...place(this.run.last[k]));
      for (const [step, n, wrote] of this.run.parts[k]) {
        if (wrote) marks.foot += footPath(...place(step));
        const fits = this.wide >= String(n).length * LANES.digit + 4;
        if (fits) texts.push(this.#text(this.#x(step + 0.5), y + 9.5, String(n), "middle"));
      }
      texts.push(this.#text(0, y + 10, `${k}: ${prompt} + ${answer}`));
    });
    const paths = Object.entries(marks).map(([letter, d]) =>
      svg("path", { class: `flash-serving-${letter === "foot" ? "token" : MARKS[letter][0]}`, d }),
    );
    return [...paths, ...texts];
  }

  /** Stacked bars of a step, in a frame whose height stands for the capacity. */
  #bars(name, y) {
    const { setting, most } = this.result;
    const all = { slots: setting.batch, tokens: most, pages: setting.n_pages }[name];
    const bars = STRIPS[name].map(() => "");
    this.run.frames.slice(0, this.run.steps).forEach((frame, step) => {
      let top = y + this.strip;
      STRIPS[name].forEach(([part], k) => {
        const n = part === "held" ? frame.taken - frame.decode - frame.reading : frame[part];
        const high = (n * this.strip) / all;
        top -= high;
        const gap = Math.min(0.5, high / 4); // above and below, also of a low one
        if (n) bars[k] += box(this.#x(step) + 0.75, top + gap, this.wide - 1.5, high - 2 * gap);
      });
    });
    const frame = box(this.#x(0), y, this.run.steps * this.wide, this.strip);
    const label = { slots: `slots: ${all}`, tokens: `tokens: ≤ ${all}`, pages: `pages: ${all}` }[name];
    return [
      svg("path", { class: "flash-serving-frame", d: frame }),
      ...bars.map((d, k) => svg("path", { class: `flash-serving-bar-${STRIPS[name][k][1]}`, d })),
      this.#text(0, y + this.strip / 2 + 4, label),
    ];
  }

  #axis(bottom) {
    const apart = this.wide * 5 < 24 ? 10 : 5;
    const steps = Array.from({ length: Math.ceil(this.result.steps / apart) }, (_, k) => k * apart);
    return [
      this.#text(0, bottom + 11, "step"),
      ...steps.map((step) => this.#text(this.#x(step + 0.5), bottom + 11, String(step), "middle")),
    ];
  }
}
