/** @import { Motion } from "../shared/motion.js" */
/** @import { Result } from "./types.js" */
import { div, h, note, panel, setSentence, svg } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { watchRoom } from "../split_lab/axes.js";
import { ringBox, ringFill, ringPercent, ringTicks, ringTime } from "./look.js";

const LANE = { label: 46, right: 106, narrow: 44, top: 2, bar: 16, copy: 14, gap: 6, axis: 17, digit: 6.4 }; // px
const LANE_HIGH = LANE.bar + LANE.copy + LANE.gap;

/** All ranks over time: what each computes, below it the copies that it receives, and when it has nothing to do. */
export class RingLanes {
  /** @type {Result} */
  result;
  /** @type {number} */
  room;
  /** @type {number} */
  wide;
  /** @type {SVGPathElement} */
  cursor;
  /** @type {SVGRectElement} */
  cover;

  /** @param {(time: number) => void} seek */
  constructor(seek) {
    this.seek = seek;
    this.time = 0;
    this.svg = svg("svg", { role: "img", class: "flash-ring-lanes" });
    for (const kind of ["pointerdown", "pointermove"]) this.svg.addEventListener(kind, (event) => this.#point(event));
    this.words = h("p", {});
    this.why = h("p", { class: "flash-note" });
    this.note = note();
    const room = div("flash-ring-room", this.svg);
    this.element = panel("ring-time", "Who computes when", this.note, room, this.words, this.why);
    this.resized = watchRoom(room, this, () => this.#plot());
  }

  /** @param {Result} result */
  take(result) {
    this.result = result;
    setSentence(this.words, result.words[0]);
    setSentence(this.why, result.words[1]);
    this.svg.setAttribute("aria-label", result.words[0]);
    this.#plot();
  }

  /**
   * @param {number} time
   * @param {Motion} [motion]
   */
  draw(time, motion) {
    const before = this.time;
    this.time = time;
    if (!this.cursor) return;
    const [x, from] = [this.#x(time), this.#x(before)];
    this.cursor.setAttribute("transform", `translate(${x} 0)`);
    this.cover.setAttribute("x", x);
    this.cover.setAttribute("width", Math.max(0, this.#x(this.result.end) - x));
    const way = (at) => `translate(${at}px, 0)`;
    if (motion && x !== from) motion.play(this.cursor, [{ transform: way(from) }, { transform: way(x) }]);
  }

  /** @param {number} time */
  #x(time) {
    return LANE.label + (this.wide * between(0, time, this.result.end)) / (this.result.end || 1);
  }

  #point(event) {
    if (!this.wide || (event.type === "pointermove" && !event.buttons)) return;
    const x = event.clientX - this.svg.getBoundingClientRect().left - LANE.label;
    if (x >= 0) this.seek((between(0, x, this.wide) * this.result.end) / this.wide);
  }

  #plot() {
    if (!this.room || !this.result) return;
    const { computes, end } = this.result;
    this.narrow = this.room < 420;
    this.wide = this.room - LANE.label - (this.narrow ? LANE.narrow : LANE.right);
    const bottom = LANE.top + computes.length * LANE_HIGH;
    this.svg.setAttribute("viewBox", `0 0 ${this.room} ${bottom + LANE.axis}`);
    this.svg.setAttribute("height", bottom + LANE.axis);
    this.cursor = svg("path", { class: "flash-ring-cursor", d: `M0 0V${bottom}` });
    this.cover = svg("rect", { class: "flash-ring-cover", y: 0, height: bottom });
    const shapes = computes.flatMap((_, r) => this.#lane(r, LANE.top + r * LANE_HIGH));
    const texts = computes.flatMap((_, r) => this.#texts(r, LANE.top + r * LANE_HIGH));
    const axis = ringTicks(end, this.narrow ? 6 : 11).map((at) => this.#text(this.#x(at), bottom + 13, ringTime(at), "middle"));
    this.svg.replaceChildren(...shapes, this.cover, ...texts, this.#text(0, bottom + 13, "time"), ...axis, this.cursor);
    this.draw(this.time);
  }

  /** The computes, received copies and idle time of a rank, at the height y. */
  #lane(r, y) {
    const { computes, copies, idle, end, fault, asked, setting } = this.result;
    const wide = (start, stop) => Math.max(0.5, this.#x(Math.min(stop, end)) - this.#x(start) - 1);
    const bars = computes[r]
      .filter(([, , start, stop]) => stop > start)
      .map(([, hop, start, stop]) =>
        svg("path", { class: "flash-ring-compute", style: ringFill(r, hop, setting.ranks), d: ringBox(this.#x(start), y, wide(start, stop), LANE.bar) }),
      );
    const coming = copies.filter(([, to, , start, stop]) => to === r && stop > start);
    const comes = coming.map(([, , whose, start, stop]) =>
      svg("path", { class: "flash-ring-copy", style: whose < 0 ? "" : `fill: var(--flash-ring-${whose})`, d: ringBox(this.#x(start), y + LANE.bar + 1, wide(start, stop), LANE.copy - 2) }),
    );
    const rest = idle[r].map(([start, stop]) => ringBox(this.#x(start) + 1, y + 1, Math.max(0.5, wide(start, stop) - 2), LANE.bar - 2)).join("");
    const waits = asked.filter(([rank]) => rank === r).map(([, , , at]) => ringBox(this.#x(at), y + LANE.bar + 1, wide(at, end), LANE.copy - 2)).join("");
    const wrong = fault && (fault.rank === r || fault.rank < 0) ? `M${this.#x(end) - 5} ${y + 3}l-9 9m0 -9l9 9` : "";
    return [
      svg("path", { class: "flash-ring-idle", d: rest }),
      svg("path", { class: "flash-ring-asked", d: waits }),
      ...bars,
      ...comes,
      svg("path", { class: "flash-ring-wrong", d: wrong }),
    ];
  }

  #texts(r, y) {
    const { computes, copies, idle, end, fault } = this.result;
    const inside = (words, start, stop, at) => {
      const room = this.#x(Math.min(stop, end)) - this.#x(start);
      return room > words.length * LANE.digit + 6 ? [this.#text(this.#x(start) + room / 2, at, words, "middle")] : [];
    };
    const longest = (all, ...at) => all.map((words) => inside(words, ...at)).find((text) => text.length) ?? [];
    const hops = computes[r].flatMap(([source, hop, start, stop]) => longest([`hop ${hop}: keys of ${source}`, `hop ${hop}: KV ${source}`, `${hop}: KV ${source}`, `hop ${hop}`, String(hop)], start, stop, y + 12));
    const comes = copies.flatMap(([, to, whose, start, stop]) => (to === r && whose >= 0 ? longest([`KV ${whose} comes`, `KV ${whose}`, String(whose)], start, stop, y + LANE.bar + 10.5) : []));
    const rest = idle[r].flatMap(([start, stop]) => (fault ? [] : longest([`idle ${ringTime(stop - start)}`, "idle"], start, stop, y + 12)));
    const all = idle[r].reduce((sum, [start, stop]) => sum + stop - start, 0);
    const share = ringPercent(all / (end || 1));
    const right = fault ? "" : this.narrow ? share : `idle ${ringTime(all)}, ${share}`;
    return [this.#text(0, y + 12, `rank ${r}`), ...hops, ...comes, ...rest, this.#text(LANE.label + this.wide + 5, y + 12, right)];
  }

  #text(x, y, words, anchor = "start") {
    return svg("text", { class: "flash-ring-text", x, y, "text-anchor": anchor }, words);
  }
}
