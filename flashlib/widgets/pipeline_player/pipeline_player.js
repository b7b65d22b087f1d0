// PipelinePlayer: plays what the units and roles of a pipeline did. Python ran it; this file draws its spans.

/** @import { Result, Traits } from "./types.js" */
import { toggle } from "../shared/controls.js";
import { div, h, headline, setText } from "../shared/elements.js";
import { Motion } from "../shared/motion.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { pipeLegend, pipeRescales } from "./marks.js";
import { PipeRows } from "./rows.js";
import { pipeTitle, playedAt, playedTimes } from "./view.js";
import { PipeZoom } from "./zoom.js";

const PIPE_FITS = 24; // rows: with more, slots and barriers are shown on demand

/** @extends {Widget<Traits>} */
class PipelinePlayer extends Widget {
  /** @type {Result} */
  result;
  /** @type {PipeRows[]} */
  rows;
  /** @type {PipeZoom} */
  zoom;
  /** @type {boolean} */
  whole;
  /** @type {number[]} at each position */
  times;
  /** @type {number} */
  drawTime;
  /** @type {HTMLElement} */
  legend;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "pipelining", "a pipeline: what its units and roles do over time");
    this.transport = new Transport({ unit: "step", units: "steps", moved: (position) => this.#moved(position) });
    this.time = 0; // the time that is shown: of the position, or of an event between two positions
    /** @type {number | undefined} */
    this.event = undefined;
    this.motion = new Motion();
    this.status = h("span", { class: "flash-status" });
    this.stops.push(() => this.transport.pause());
    const result = this.model.get("result");
    if (result.programs) this.#build(result);
    this.start("result", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      "[": () => this.#jump(-1),
      "]": () => this.#jump(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.transport.last),
      "+": () => this.zoom.by(0.5),
      "=": () => this.zoom.by(0.5),
      "-": () => this.zoom.by(2),
      0: () => this.zoom.whole(),
    });
  }

  /** @param {Result} result */
  #build(result) {
    this.result = result;
    this.rows = result.programs.map((program) => new PipeRows(result, program, (time) => this.#go(time)));
    this.stops.push(() => this.rows.forEach(({ resized }) => resized.disconnect()));
    this.zoom = new PipeZoom(result, () => this.#look());
    this.whole = this.rows.length === 1 && result.programs[0].rows.length <= PIPE_FITS;
    const memory = toggle("slots and barriers", (on) => {
      this.whole = on;
      this.#look();
    });
    memory.show(this.whole);
    const jump = (by, label, sign) =>
      h("button", { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: () => this.#jump(by) }, sign);
    const jumps = div("flash-buttons", jump(-1, "to the event before ([)", "«"), jump(1, "to the next event (])", "»"));
    const { element, speed } = this.transport;
    const [title, how] = pipeTitle(result);
    const head = headline(title);
    setText(head.now, how);
    this.legend = div("flash-legend flash-note");
    this.root.append(
      head.element,
      div(
        "flash-panel flash-controls flash-pipelining-controls", // no settings: nothing here needs Python
        div("flash-controls", element, jumps, this.status, speed),
        div("flash-controls", this.zoom.element, memory.element),
      ),
      ...this.rows.map(({ element }) => element),
      this.legend,
    );
  }

  /** @param {number} position */
  #moved(position) {
    this.time = this.event ?? this.times?.[position] ?? 0;
    this.draw();
  }

  /**
   * Go to a time, and to the last position up to it.
   * @param {number} time
   */
  #go(time) {
    const position = Math.max(0, this.times.findLastIndex((at) => at <= time));
    this.event = this.result.axis === "clocks" ? time : undefined;
    this.transport.seek(position);
    this.event = undefined;
  }

  /** Go to the next event, or to the one before. */
  #jump(by) {
    const { events } = this.result;
    this.#go((by > 0 ? events.find((at) => at > this.time) : events.findLast((at) => at < this.time)) ?? this.time);
  }

  #look() {
    for (const rows of this.rows) rows.look(this.whole, this.zoom.view);
    const last = this.rows.findLast(({ shown }) => pipeRescales(shown)); // once, above the legend
    for (const rows of this.rows) rows.alpha.hidden = rows !== last;
    this.legend.replaceChildren(...pipeLegend(this.rows.map((rows) => [rows.program, rows.shown])).flat(2));
  }

  /** @param {Result} result */
  load(result) {
    this.result = result;
    this.times = playedTimes(result);
    const { speed } = this.transport;
    speed.value = String(playedAt(this.times.length, Array.from(speed.options, ({ value }) => Number(value))));
    this.#look();
    this.transport.reset(this.times.length - 1);
    this.#go(result.opens);
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.result) return;
    const started = performance.now();
    const { axis, end } = this.result;
    const { time } = this;
    this.zoom.follow(time);
    this.motion.begin(this.transport.motion);
    for (const rows of this.rows) rows.draw(time, this.motion);
    const where = `${axis === "clocks" ? "clock" : "action"} ${Math.round(time)} of ${Math.round(end)}`;
    setText(this.status, where);
    this.transport.scrub.setAttribute("aria-valuetext", where);
    this.root.dataset.position = String(this.transport.position);
    const name = ({ program }) => (this.rows.length > 1 ? `${program.name}. ` : "");
    this.spoken.say(this.rows.map((rows) => `${name(rows)}${rows.said}`).join(" "));
    this.drawTime = performance.now() - started; // ms
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const player = new PipelinePlayer(context);
    return () => player.stop();
  },
};
