// ServeLab: plays two runs of a scheduler, step by step. Python ran both and kept their records; this file draws them.

/** @import { Result, Traits } from "./types.js" */
import { div, h, headline, setText } from "../shared/elements.js";
import { Motion } from "../shared/motion.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { Lanes } from "./lanes.js";
import { marksLegend } from "./marks.js";
import { ServeSettings } from "./settings.js";
import { Columns, rowsOf } from "./tables.js";

const ADMITS = {
  continuous: "in each step, whoever there is room for is admitted",
  static: "whoever waits is admitted once all of a batch have finished",
};

/** @extends {Widget<Traits>} */
class ServeLab extends Widget {
  /** @type {ServeSettings} */
  controls;
  /** @type {Lanes[]} */
  lanes;
  /** @type {Columns} */
  now;
  /** @type {Columns} */
  all;
  /** @type {Result} */
  result;
  /** @type {number} */
  drawTime;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "serving", "requests served by a scheduler, step by step");
    this.transport = new Transport({ unit: "step", units: "steps", moved: () => this.draw() });
    this.motion = new Motion();
    this.status = h("span", { class: "flash-status" });
    this.equal = h("p", { class: "flash-note" });
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
    this.controls = new ServeSettings(result, (setting) => this.ask(setting));
    for (const name of Object.keys(result.setting)) this.hear(name, () => this.#show());
    const names = result.runs.map(({ name }) => name);
    this.lanes = names.map((name, k) => {
      return new Lanes(name, ADMITS[name], (step) => this.transport.seek(step), k === names.length - 1);
    });
    this.now = new Columns("now", "This step", names);
    this.all = new Columns("all", "All steps", names, this.equal);
    this.stops.push(() => this.lanes.forEach(({ resized }) => resized.disconnect()));
    const { element, speed } = this.transport;
    this.root.append(
      headline("Continuous or static batching: which serves requests sooner?").element,
      div(
        "flash-panel flash-header",
        this.settings(this.controls.elements),
        div("flash-controls", element, this.status, speed),
      ),
      div(
        "flash-serving-stage",
        div("flash-serving-runs", this.lanes.map(({ element }) => element)),
        div("flash-serving-beside", this.now.element, this.all.element),
      ),
      marksLegend(),
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
    this.lanes.forEach((lanes, k) => lanes.take(result, result.runs[k]));
    this.all.show(result.totals);
    setText(this.equal, result.equal);
    const isSame = before?.scenario === result.setting.scenario; // the same requests arrive at the same steps
    this.transport.reset(result.steps - 1, isSame ? this.transport.position : result.opens);
    const ends = result.runs.flatMap(({ lanes }) => lanes.flatMap((lane) => [...lane.matchAll(/x/g)].map(({ index }) => index)));
    this.transport.mark([...new Set(ends)]);
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.result) return;
    const started = performance.now();
    const { position, last } = this.transport;
    const { runs, setting } = this.result;
    this.motion.begin(this.transport.motion);
    for (const lanes of this.lanes) lanes.draw(position, this.motion);
    const frames = runs.map((run) => run.frames[position]);
    this.now.show(rowsOf(frames, setting.batch));
    const where = `step ${position} of ${last}`;
    setText(this.status, where);
    this.transport.scrub.setAttribute("aria-valuetext", where);
    this.root.dataset.position = String(position);
    this.spoken.say(`${where}. ${runs.map(({ name }, k) => `${name}: ${frames[k].words}`).join(" ")}`);
    this.drawTime = performance.now() - started; // ms
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new ServeLab(context);
    return () => lab.stop();
  },
};
