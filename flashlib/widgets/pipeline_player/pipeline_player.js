// PipelinePlayer: plays what the units and roles of a pipeline did. Python ran it; this draws its spans.

/** @import { Result, Traits } from "./types.js" */
import { toggle } from "../shared/controls.js";
import { div, h, setText } from "../shared/elements.js";
import { Motion } from "../shared/motion.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { pipeLegend } from "./marks.js";
import { PipeRows } from "./rows.js";
import { PipeZoom } from "./zoom.js";

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
  /** @type {number} */
  drawTime;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "pipelining", "a pipeline: what its units and roles do over time");
    this.transport = new Transport({ unit: "event", moved: () => this.draw() });
    this.motion = new Motion();
    this.status = h("span", { class: "flash-status" });
    this.stops.push(() => this.transport.pause());
    const result = this.model.get("result");
    if (result.programs) this.#build(result);
    this.start("result", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
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
    this.rows = result.programs.map((program) => new PipeRows(result, program, (time) => this.#seek(time)));
    this.stops.push(() => this.rows.forEach(({ resized }) => resized.disconnect()));
    this.zoom = new PipeZoom(result, () => this.#look());
    this.whole = this.rows.length === 1;
    const memory = toggle("slots and barriers", (on) => {
      this.whole = on;
      this.#look();
    });
    memory.show(this.whole);
    const { buttons, bar, speed } = this.transport;
    this.root.append(
      div(
        "flash-panel flash-header",
        div("flash-controls", buttons, bar, this.status, speed),
        div("flash-controls", this.zoom.element, memory.element), // no settings: nothing here asks Python
      ),
      ...this.rows.map(({ element }) => element),
      pipeLegend(result),
    );
  }

  /**
   * Go to the last event up to a time.
   * @param {number} time
   */
  #seek(time) {
    this.transport.seek(Math.max(0, this.result.events.findLastIndex((at) => at <= time)));
  }

  #look() {
    for (const rows of this.rows) rows.look(this.whole, this.zoom.view);
  }

  /** @param {Result} result */
  load(result) {
    this.result = result;
    this.#look();
    this.transport.reset(result.events.length - 1);
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.result) return;
    const started = performance.now();
    const { position } = this.transport;
    const { events, axis, end } = this.result;
    const time = events[position];
    this.zoom.follow(time);
    this.motion.begin(this.transport.motion);
    for (const rows of this.rows) rows.draw(time, this.motion);
    const where = `${axis === "clocks" ? "clock" : "action"} ${Math.round(time)} of ${Math.round(end)}`;
    setText(this.status, where);
    this.transport.scrub.setAttribute("aria-valuetext", where);
    this.root.dataset.position = String(position);
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
