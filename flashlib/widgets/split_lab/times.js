/** @import { Result } from "./types.js" */
import { div, h, note, panel, setSentence, setText, svg, typeset } from "../shared/elements.js";
import { threeDigits } from "../shared/number_text.js";
import { doublings, logarithmic, ticksOf, watchRoom } from "./axes.js";

const PLOT = { left: 40, right: 14, top: 16, high: 66, below: 32 }; // px
const PIECES = { launches: "launches", keys: "K and V", states: "merging" };

/** The model's time over the number of parts, with the measurements; and its components. */
export class Times {
  /** @type {Result} */
  sent;
  /** @type {number} */
  room;

  constructor() {
    this.svg = svg("svg", { role: "img", class: "flash-split-times" });
    this.words = h("p", {});
    this.note = note();
    this.fold = div("flash-split-stepper", this.note);
    this.keys = div("flash-legend flash-note");
    this.pieces = Object.entries(PIECES).map(([name, text]) => this.#piece(name, text));
    const bar = div("flash-split-bar", this.pieces.map(({ part }) => part));
    const list = h("dl", {}, this.pieces.map(({ element }) => element));
    const room = div("flash-split-room", this.svg);
    this.element = panel("split-time", "Time, by a model", this.fold, room, this.keys, this.words, bar, list);
    this.resized = watchRoom(room, this, () => this.#plot());
  }

  #piece(name, text) {
    const value = h("dd", { "data-time": name });
    const swatch = h("i", { class: `flash-split-swatch flash-split-time-${name}` });
    const element = h("div", {}, h("dt", {}, swatch, h("span", {}, typeset(text))), value);
    return { name, element, value, part: h("i", { class: `flash-split-time-${name}` }) };
  }

  /** @param {Result} sent */
  draw(sent) {
    this.sent = sent;
    const { now } = sent.times;
    setSentence(this.words, sent.words[2]);
    for (const { name, value, part } of this.pieces) {
      setText(value, `${threeDigits(now[name])} µs`);
      part.style.width = `${(100 * now[name]) / now.total}%`;
    }
    this.#legend();
    this.#plot();
  }

  #legend() {
    const { record, other_record, times: { best } } = this.sent;
    const key = (name, ...text) => h("span", {}, h("i", { class: `flash-split-key flash-split-key-${name}` }), h("span", {}, text));
    const keys = [key("now", "chosen"), key("default", "as decode chooses"), key("least", "full bandwidth")];
    if (best !== null) keys.splice(2, 0, key("best", "fastest"));
    if (record.length) keys.push(key("record", "measured"));
    this.keys.replaceChildren(...keys);
    setText(this.note, other_record ? "measured for a different call" : record.length ? "and as measured" : "");
  }

  #plot() {
    if (!this.room || !this.sent) return;
    const { times, record, n } = this.sent;
    const most = Math.max(2, ...times.curve.map(([parts]) => parts));
    const values = [...times.curve, ...record].map(([, time]) => time);
    const [low, high] = [Math.min(times.least, ...values) / 1.15, Math.max(...values) * 1.15];
    const bottom = PLOT.top + PLOT.high;
    const x = logarithmic(1, most, PLOT.left, this.room - PLOT.right);
    const y = logarithmic(low, high, bottom, PLOT.top);
    const line = times.curve.map(([parts, time], k) => `${k ? "L" : "M"}${x(parts)} ${y(time)}`).join("");
    const path = (name, d) => svg("path", { class: `flash-split-${name}`, d });
    /** @param {number} parts */
    const of = (parts) => times.curve.find(([found]) => found === parts) ?? [parts, NaN];
    const [own, now] = [of(times.default), of(n)];
    const best = times.best === null ? [] : [of(times.best)];
    this.svg.setAttribute("viewBox", `0 0 ${this.room} ${bottom + PLOT.below}`);
    this.svg.setAttribute("height", bottom + PLOT.below);
    this.svg.replaceChildren(
      ...this.#axes(x, y, most, low, high),
      path("least", `M${PLOT.left} ${y(times.least)}H${this.room - PLOT.right}`),
      path("curve", line),
      path("chosen", `M${x(n)} ${bottom}V${y(now[1])}`),
      path("default", diamond(x(own[0]), y(own[1]))),
      ...best.map(([parts, time]) => path("best", `M${x(parts)} ${y(time) - 3}l5 -9h-10z`)),
      svg("circle", { class: "flash-split-now", cx: x(n), cy: y(now[1]), r: 5 }),
      path("record", record.map(([parts, time]) => cross(x(parts), y(time))).join("")),
    );
    const chosen = `${threeDigits(now[1])} microseconds with ${n} parts, by the model`;
    this.svg.setAttribute("aria-label", `time over the number of parts: ${chosen}; ${record.length} points measured`);
  }

  #axes(x, y, most, low, high) {
    const bottom = PLOT.top + PLOT.high;
    const text = (left, top, words, anchor) =>
      svg("text", { class: "flash-split-text flash-split-tick", x: left, y: top, "text-anchor": anchor }, words);
    const rows = ticksOf(low, high, 5);
    const grid = rows.map((time) => `M${PLOT.left} ${y(time)}H${this.room - PLOT.right}`).join("");
    const ends = `M${PLOT.left} ${PLOT.top}V${bottom}H${this.room - PLOT.right}`;
    return [
      svg("path", { class: "flash-split-grid", d: grid }),
      svg("path", { class: "flash-split-axis", d: ends }),
      ...rows.map((time) => text(PLOT.left - 6, y(time) + 4, String(time), "end")),
      ...doublings(most).map((parts) => text(x(parts), bottom + 15, String(parts), "middle")),
      text(4, 10, "µs", "start"),
      text((PLOT.left + this.room - PLOT.right) / 2, bottom + 29, "parts", "middle"),
    ];
  }
}

const diamond = (x, y) => `M${x} ${y - 8}l8 8l-8 8l-8 -8z`;
const cross = (x, y) => `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`;
