// PagesLab: plays what an allocator did, one operation at a time. Python ran it and read its state; this file draws it.

/** @import { Result, Traits } from "./types.js" */
import { div, h, headline, setText } from "../shared/elements.js";
import { Motion } from "../shared/motion.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { RowCounts } from "./counts.js";
import { PageSettings } from "./settings.js";
import { pagesLegend, Strip } from "./strip.js";
import { Tables } from "./tables.js";

/** @extends {Widget<Traits>} */
class PagesLab extends Widget {
  /** @type {PageSettings} */
  controls;
  /** @type {Result} */
  result;
  /** @type {number} */
  drawTime;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "paging", "pages of a key/value cache, operation by operation");
    this.transport = new Transport({ unit: "step", units: "steps", moved: () => this.draw() });
    this.motion = new Motion();
    this.status = h("span", { class: "flash-status" });
    this.call = h("code", { class: "flash-paging-call" });
    this.words = h("p", {});
    this.room = h("p", { "aria-hidden": "true" }); // the longest sentence, invisible: the page below must not jump
    this.strip = new Strip();
    this.tables = new Tables();
    this.counts = new RowCounts();
    const result = this.model.get("result");
    if (result.setting) this.#build(result);
    this.stops.push(() => this.transport.pause());
    this.start("result", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.transport.last),
    });
  }

  #build(result) {
    this.controls = new PageSettings(result, (setting) => this.ask(setting));
    for (const name of Object.keys(result.setting)) this.hear(name, () => this.#show());
    const { element, speed } = this.transport;
    this.root.append(
      headline("Which page of the cache belongs to which request?").element,
      div(
        "flash-panel flash-header",
        this.settings(this.controls.elements),
        div("flash-controls", element, this.status, speed),
      ),
      div("flash-panel flash-words flash-paging-words", this.call, div("flash-paging-sentence", this.words, this.room)),
      div("flash-paging-stage", this.strip.element, div("flash-paging-beside", this.tables.element, this.counts.element)),
      pagesLegend(),
    );
  }

  /** Show the last request, which may not be answered yet: a slider must not jump back under the hand. */
  #show() {
    const { setting } = this.result ?? {};
    if (setting) this.controls.show((name) => (this.off ? setting[name] : this.model.get(name)));
  }

  /** @param {Result} result */
  load(result) {
    const before = this.result?.setting;
    this.result = result;
    this.#show();
    const { frames } = result;
    for (const part of [this.strip, this.tables, this.counts]) part.take(result);
    const longest = frames.reduce((a, b) => (a.words.length >= b.words.length ? a : b));
    setText(this.room, longest.words);
    const isSame = before?.scenario === result.setting.scenario;
    this.transport.reset(frames.length - 1, isSame ? this.transport.position : result.opens);
    const marked = ({ kind, copied }) => kind === "out" || kind === "fault" || copied.length > 0;
    this.transport.mark([...frames.keys()].filter((k) => marked(frames[k])));
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.result) return;
    const started = performance.now();
    const { position, last } = this.transport;
    const { frames } = this.result;
    const frame = frames[position];
    this.motion.begin(this.transport.motion);
    this.strip.draw(frame, frames[position - 1], this.motion);
    this.tables.draw(position);
    this.counts.draw(frame, this.motion);
    const where = `step ${position} of ${last}`;
    setText(this.status, where);
    setText(this.call, frame.call || "end");
    setText(this.words, `${frame.kind === "fault" ? "✕ " : ""}${frame.words}`);
    this.transport.scrub.setAttribute("aria-valuetext", `${where}: ${frame.call || "end"}`);
    Object.assign(this.root.dataset, { position, kind: frame.kind });
    this.spoken.say(`${where}. ${frame.call} ${frame.words}`);
    this.drawTime = performance.now() - started; // ms
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new PagesLab(context);
    return () => lab.stop();
  },
};
