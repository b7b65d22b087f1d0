/** @import { Motion } from "../shared/motion.js" */
/** @import { Program, Result, Row, Span } from "./types.js" */
import { div, h, note, panel, setSentence, setText, svg, typeset } from "../shared/elements.js";
import { say } from "../shared/language.js";
import { between } from "../shared/number_text.js";
import { PIPE_ALPHA, PIPE_DIGIT, PIPE_FILLED, PIPE_NAMED, pipeBox, pipeClass, pipeEdge, pipePath, pipeRowName } from "./marks.js";
import { pipeStates } from "./words.js";
import { watchRoom } from "../split_lab/axes.js";

const PIPE = { top: 4, axis: 18, gap: 4, least: 1.2 }; // px
/** px next to the axis, and how many letters fit: the names on the left, the current spans on the right. */
const PIPE_BESIDE = {
  wide: { label: 158, named: 24, now: 150, letters: 20 },
  narrow: { label: 84, named: 12, now: 104, letters: 13 }, // a phone
};
const PIPE_HIGH = { units: 16, roles: 16, slots: 13, barriers: 12 }; // px, of a row
/** The baseline of a row's text. */
const pipeFoot = (row, y) => y + 0.75 * PIPE_HIGH[row.group];
// An action is drawn up to its moment, so spans that it begins are not on before that.
const PIPE_BEHIND = new Set(["copy", "store", "product", "fill", "read", "act", "fault"]);

/**
 * Whether a span is on at a time. An action is drawn before the moment at which it ends.
 * @param {Span} span
 * @param {number} time
 * @param {Result} result
 */
function pipeIsOn([kind, , start, end], time, { axis, end: last }) {
  if (axis === "clocks") return start <= time && time < end;
  const begun = PIPE_BEHIND.has(kind) ? start < time : start <= time;
  return begun && (time < end || (time === end && (kind === "act" || kind === "fault" || end === last)));
}

const PIPE_WIDE = /[\p{Script=Han}\u3000-\u303f\uff01-\uff60]/gu; // Chinese, with its punctuation

/**
 * The width of a text in letters: a Chinese character is as wide as two.
 * @param {string} text
 */
const pipeWidth = (text) => text.length + (text.match(PIPE_WIDE)?.length ?? 0);

/**
 * @param {string} text
 * @param {number} most
 */
function pipeCut(text, most) {
  if (pipeWidth(text) <= most) return text;
  while (pipeWidth(text) >= most) text = text.slice(0, -1);
  return `${text}…`;
}

/**
 * Round numbers from low to high, evenly spaced, at most `most` of them.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 */
function pipeTicks(low, high, most) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7];
  const apart = steps.find((step) => (high - low) / step < most) ?? 1e8;
  const ticks = [];
  for (let at = Math.ceil(low / apart) * apart; at <= high; at += apart) ticks.push(at);
  return ticks;
}

/** One program: a row for each unit, role, slot and barrier, over the part of the axis in `view`. */
export class PipeRows {
  /** @type {number} */
  room;
  /** @type {string} */
  said;
  /** @type {number} */
  wide;
  beside = PIPE_BESIDE.wide;
  /** @type {Row[]} */
  rows;
  /** @type {SVGTextElement[]} */
  nows;
  /** @type {SVGPathElement} */
  cursor;
  /** @type {SVGRectElement} */
  cover;

  /**
   * @param {Result} result
   * @param {Program} program
   * @param {(time: number) => void} seek
   */
  constructor(result, program, seek) {
    this.result = result;
    this.program = program;
    this.seek = seek;
    this.all = result.programs.length === 1; // all rows, or only those of units and roles
    this.view = [0, result.end];
    this.at = 0;
    this.words = h("p", {});
    this.state = pipeStates(program);
    const sentences = program.moments.flatMap(([at, said]) => [this.#told([at, said], at), this.#told([at, said], at + 1)]);
    const longest = sentences.reduce((a, b) => (a.length >= b.length ? a : b), "");
    const room_of_words = h("p", { "aria-hidden": "true" }, typeset(longest)); // invisible: nothing must jump
    const fault = program.fault.map((said, k) =>
      h("p", { class: "flash-pipelining-said" }, h("b", {}, k ? "" : "×"), said),
    );
    this.svg = svg("svg", { role: "img", class: "flash-pipelining-rows", "aria-label": program.words });
    for (const kind of ["pointerdown", "pointermove"]) this.svg.addEventListener(kind, (event) => this.#point(event));
    const room = div("flash-pipelining-room", this.svg);
    const sentence = div("flash-pipelining-sentence", this.words, room_of_words);
    this.alpha = h("p", { class: "flash-note flash-pipelining-alpha", hidden: true }, typeset(PIPE_ALPHA));
    this.element = panel("pipelining-program", program.name, note(program.words), fault, sentence, room, this.alpha);
    this.resized = watchRoom(room, this, () => this.plot());
  }

  /**
   * Show all rows, or only those of units and roles; and a part of the axis.
   * @param {boolean} all
   * @param {number[]} view
   */
  look(all, view) {
    this.all = all;
    this.view = view;
    this.plot();
  }

  draw(time, motion) {
    const before = this.at;
    this.at = time;
    const moment = this.program.moments.findLast(([at]) => at <= time + 0.005) ?? this.program.moments[0];
    this.said = this.#told(moment, time);
    setSentence(this.words, this.said);
    if (!this.cursor) return;
    const [x, from] = [this.#x(time), this.#x(before)];
    this.cursor.setAttribute("transform", `translate(${x} 0)`);
    this.cover.setAttribute("x", x);
    this.cover.setAttribute("width", Math.max(0, this.#x(this.view[1]) - x));
    this.rows.forEach((row, k) => setText(this.nows[k], pipeCut(this.#now(row, time), this.beside.letters)));
    const way = (at) => `translate(${at}px, 0)`;
    if (motion && x !== from) motion.play(this.cursor, [{ transform: way(from) }, { transform: way(x) }]);
  }

  /**
   * What happens at this time, and what else is going on; if nothing begins or ends, only what is going on.
   * @param {[number, string]} moment
   * @param {number} time
   */
  #told([at, said], time) {
    if (this.result.axis !== "clocks" || !this.program.rows.length) return said;
    if (at === this.program.end) return `Now: ${said}`;
    if (Math.round(time) <= Math.round(at)) {
      const others = this.state(([kind, , from, to]) => kind !== "product" && from < at && at < to, true); // in `said`
      return others ? `Now: ${said} Meanwhile ${others[0].toLowerCase() + others.slice(1)}` : `Now: ${said}`;
    }
    return `Now: ${this.state((span) => pipeIsOn(span, time, this.result))}`;
  }

  /**
   * @param {Row} row
   * @param {number} time
   */
  #now({ group, spans, ticks }, time) {
    if (group === "barriers") {
      const phase = ticks.filter(([at]) => at <= time).length;
      return `phase ${phase}, parity ${phase % 2}`;
    }
    const on = spans.filter((span) => pipeIsOn(span, time, this.result));
    const one = on.find(([kind]) => ["read", "fault", "act"].includes(kind)) ?? on[0];
    if (!one) return "";
    const [kind, name, , , role] = one;
    if (kind === "wait") return this.#waits(name);
    if (kind === "fill") return `${name} comes`;
    if (kind === "read") return `${name} is read`;
    return group === "units" ? `${name}, ${this.program.roles[role]}` : name;
  }

  /**
   * Who waits for what, with its meaning if it has one; on a phone there is only room for the meaning.
   * @param {string} name
   */
  #waits(name) {
    const meaning = this.program.meanings[name];
    return meaning && this.beside === PIPE_BESIDE.narrow ? meaning : `waits: ${meaning ?? name}`;
  }

  /** @param {number} time */
  #x(time) {
    const [low, high] = this.view;
    return this.beside.label + (this.wide * (between(low, time, high) - low)) / (high - low || 1);
  }

  #point(event) {
    if (!this.wide || (event.type === "pointermove" && !event.buttons)) return;
    const x = event.clientX - this.svg.getBoundingClientRect().left - this.beside.label;
    const [low, high] = this.view;
    if (x >= 0) this.seek(low + (between(0, x, this.wide) * (high - low)) / this.wide);
  }

  /** The visible rows. */
  get shown() {
    return this.program.rows.filter(({ group }) => this.all || group === "units" || group === "roles");
  }

  plot() {
    if (!this.room || !this.program.rows.length) return;
    this.beside = this.room < 480 ? PIPE_BESIDE.narrow : PIPE_BESIDE.wide;
    this.wide = Math.max(60, this.room - this.beside.label - this.beside.now);
    this.rows = this.shown;
    const paths = new Map();
    const texts = [];
    let [y, group] = [PIPE.top, "units"];
    this.nows = this.rows.map((row) => {
      if (row.group !== group) y += PIPE.gap;
      group = row.group;
      this.#label(row, y, texts);
      this.#spans(row, y, paths, texts);
      this.#ticks(row, y, paths, texts);
      const now = this.#lowered(row, this.#text(this.beside.label + this.wide + 6, pipeFoot(row, y), ""));
      y += PIPE_HIGH[row.group];
      texts.push(now);
      return now;
    });
    this.#place(paths, texts, y);
    this.draw(this.at);
  }

  #place(paths, texts, bottom) {
    this.svg.setAttribute("viewBox", `0 0 ${this.room} ${bottom + PIPE.axis}`);
    this.svg.setAttribute("height", bottom + PIPE.axis);
    this.cursor = svg("path", { class: "flash-pipelining-cursor", d: `M0 0V${bottom}` });
    this.cover = svg("rect", { class: "flash-pipelining-cover", y: 0, height: bottom });
    const shapes = [...paths].map(([name, d]) => svg("path", { class: name, d }));
    this.svg.replaceChildren(...shapes, this.cover, ...texts, ...this.#axis(bottom), this.cursor);
  }

  #text(x, y, words, anchor = "start") {
    return svg("text", { class: "flash-pipelining-text", x, y, "text-anchor": anchor }, words);
  }

  /** A text of a row, smaller if the row is low. */
  #lowered({ group }, text) {
    text.classList.toggle("flash-pipelining-low", group === "slots" || group === "barriers");
    return text;
  }

  /**
   * @param {Row} row
   * @param {number} y
   * @param {SVGElement[]} texts
   */
  #label(row, y, texts) {
    const { name, use, group } = row;
    const meaning = group === "barriers" ? this.program.meanings[name] : "";
    const wide = this.beside === PIPE_BESIDE.wide;
    const words = wide ? [say(pipeRowName(row)), meaning].filter(Boolean).join(" ") : name;
    const known = name && use !== undefined && this.result.axis === "clocks";
    const busy = known ? `${Math.round(100 * use)}%` : "";
    const shown = wide && busy ? ` ${busy}` : "";
    const title = meaning ? `${name}: ${meaning}` : name;
    const text = this.#lowered(row, this.#text(0, pipeFoot(row, y), pipeCut(words, this.beside.named - shown.length) + shown));
    text.append(svg("title", {}, busy ? `${title}, busy for ${busy}` : title));
    texts.push(text);
  }

  /**
   * @param {Row} row
   * @param {number} y
   */
  #spans(row, y, paths, texts) {
    const [low, high] = this.view;
    const tall = PIPE_HIGH[row.group];
    const add = (name, d) => d && paths.set(name, (paths.get(name) ?? "") + d);
    for (const [kind, name, start, end, role] of row.spans) {
      if (end <= low || start >= high) continue;
      const x = this.#x(start);
      const wide = Math.max(PIPE.least, this.#x(end) - x);
      add(pipeClass(kind, role), pipePath(kind, x, y, wide, tall));
      if (PIPE_FILLED.has(kind)) add("flash-pipelining-edge", pipeEdge(role, x, y, wide, tall));
      const words = say((kind === "wait" && this.program.meanings[name]) || name);
      if (PIPE_NAMED.has(kind) && wide > pipeWidth(words) * PIPE_DIGIT + 5)
        texts.push(this.#text(x + wide / 2, pipeFoot(row, y) - 1, words, "middle"));
    }
  }

  /** Phases of a barrier: each ends with a tick, and the row is shaded during odd ones. */
  #ticks(row, y, paths, texts) {
    const { group, ticks } = row;
    if (group !== "barriers") return;
    const tall = PIPE_HIGH[group];
    const add = (name, d) => paths.set(name, (paths.get(name) ?? "") + d);
    ticks.forEach(([at, number], k) => {
      const [next] = ticks[k + 1] ?? [this.result.end];
      const wide = this.#x(next) - this.#x(at);
      if (k % 2 === 0) add("flash-pipelining-odd", pipeBox(this.#x(at), y + 3, wide, tall - 6));
      if (at < this.view[0] || at > this.view[1]) return;
      add("flash-pipelining-tick", pipePath("tick", this.#x(at), y, 0, tall));
      if (wide > 14) texts.push(this.#lowered(row, this.#text(this.#x(at) + 4, pipeFoot(row, y), String(number))));
    });
  }

  #axis(bottom) {
    const { axis } = this.result;
    const [low, high] = this.view;
    const ticks = pipeTicks(low, high, between(2, this.wide / 50, 9));
    return [
      this.#text(0, bottom + 14, axis),
      this.#text(this.room, bottom + 14, this.beside === PIPE_BESIDE.wide ? "what is on now" : "on now", "end"),
      ...ticks.map((at) => this.#text(this.#x(at), bottom + 14, String(at), "middle")),
    ];
  }
}
