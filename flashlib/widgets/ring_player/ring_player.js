// RingPlayer: plays what ranks did. Python ran them and recorded every event; this file draws them.

/** @import { Result, Traits } from "./types.js" */
import { div, h, headline, setSentence, setText } from "../shared/elements.js";
import { Motion } from "../shared/motion.js";
import { between, float64 } from "../shared/number_text.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { RingCircle } from "./circle.js";
import { RingLanes } from "./lanes.js";
import { RingLayouts } from "./layouts.js";
import { ringLegend } from "./legend.js";
import { ringTime } from "./look.js";
import { RingRow } from "./row.js";
import { RingScores } from "./scores.js";
import { RingSettings } from "./settings.js";
import { holders, positionAt, rowAtFirst, standing } from "./standing.js";

/** @extends {Widget<Traits>} */
class RingPlayer extends Widget {
  /** @type {Result} */
  result;
  /** @type {RingSettings} */
  controls;
  /** @type {Float64Array} */
  numbers;
  /** @type {{ rank: number[], place: number[] }} */
  of;
  /** @type {RingLayouts} */
  layouts;
  /** @type {number | undefined} */
  row;
  /** @type {number} */
  drawTime;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "ring-player", "attention over ranks in a ring, over time");
    this.transport = new Transport({ unit: "step", units: "steps", moved: () => this.draw() });
    this.transport.speed.value = "5"; // about 20 seconds, slow enough for copies to move between steps
    this.motion = new Motion();
    this.status = h("span", { class: "flash-status" });
    this.sentence = h("p", {});
    this.longest = h("p", { "aria-hidden": "true" }); // invisible: nothing must jump
    this.fault = div("flash-ring-fault");
    this.head = headline("Attention over ranks: rows stay, keys travel");
    setText(this.head.now, "Each rank merges what its rows of Q see in the keys that arrive.");
    this.circle = new RingCircle();
    this.scores = new RingScores((row) => this.choose(row));
    this.lanes = new RingLanes((time) => this.transport.seek(positionAt(this.result.times, time)));
    this.merges = new RingRow((row) => this.choose(row));
    this.legend = div("");
    this.stops.push(() => this.transport.pause(), () => this.lanes.resized.disconnect());
    const result = this.model.get("result");
    if (result.setting) this.#build(result);
    this.start("result", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      ArrowUp: () => this.choose(Number(this.row) - 1),
      ArrowDown: () => this.choose(Number(this.row) + 1),
      "[": () => this.#jump(-1),
      "]": () => this.#jump(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.transport.last),
    });
  }

  /** @param {Result} result */
  #build(result) {
    this.controls = new RingSettings(result, (setting) => this.ask(setting));
    for (const name of Object.keys(result.setting)) this.hear(name, () => this.#show());
    this.layouts = new RingLayouts(
      result.compare.map(({ layout }) => layout),
      (cut) => this.ask({ cut }),
    );
    const jump = (by, label, sign) =>
      h("button", { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: () => this.#jump(by) }, sign);
    const { element, speed } = this.transport;
    this.root.append(
      this.head.element,
      div(
        "flash-panel flash-header",
        this.settings(this.controls.elements),
        div("flash-controls", element, div("flash-buttons", jump(-1, "to the event before ([)", "«"), jump(1, "to the next event (])", "»")), this.status, speed),
        div("flash-ring-sentence", this.sentence, this.longest),
        this.fault,
      ),
      div(
        "flash-ring-stage",
        [this.circle, this.scores, this.merges, this.lanes, this.layouts].map(({ element }) => element),
      ),
      this.legend,
    );
  }

  /** Show the last request, which may not be answered yet: a slider must not jump back under the hand. */
  #show() {
    const { setting } = this.result ?? {};
    if (setting) this.controls.show((name) => (this.off ? setting[name] : this.model.get(name)), this.result);
  }

  /** @param {Result} result */
  load(result) {
    const before = this.result;
    this.result = result;
    this.numbers = float64(result.buffer);
    this.of = holders(result.tokens);
    this.#show();
    if (before?.setting.N !== result.setting.N) this.row = rowAtFirst(result, this.numbers, this.of);
    this.circle.take(result);
    this.scores.take(result, this.of.rank);
    this.lanes.take(result);
    this.layouts.take(result);
    this.legend.replaceChildren(ringLegend(result));
    const said = result.fault?.said ?? [];
    this.fault.replaceChildren(...said.map((one, k) => h("p", {}, h("b", {}, k ? "" : "×"), one)));
    this.fault.hidden = !said.length;
    const sentences = [...result.moments.map(([, said]) => said), ...result.goes_on];
    setSentence(this.longest, `Now: ${sentences.reduce((a, b) => (a.length >= b.length ? a : b), "")}`);
    this.#take();
    const share = before ? before.times[this.transport.position] / before.end + 1e-9 : 0; // of the whole run
    const position = before ? positionAt(result.times, share * result.end) : result.opens;
    this.transport.reset(result.times.length - 1, position);
    this.transport.mark(result.moments.map(([time]) => result.times.indexOf(time)));
  }

  #take() {
    const row = Number(this.row);
    this.merges.take(this.result, this.numbers, row, this.of);
    this.scores.choose(row);
    this.root.dataset.row = String(row);
  }

  /**
   * Show another row.
   * @param {number} row
   */
  choose(row) {
    this.row = between(0, row, this.result.setting.N - 1);
    this.#take();
    this.draw();
  }

  /** Go to the next moment at which something happens, or to the one before. */
  #jump(by) {
    const { moments, times } = this.result;
    const now = times[this.transport.position];
    const [to] = (by > 0 ? moments.find(([time]) => time > now) : moments.findLast(([time]) => time < now)) ?? [now];
    this.transport.seek(times.indexOf(to));
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.result) return;
    const started = performance.now();
    const { position } = this.transport;
    const { times, moments, goes_on, end, sums } = this.result;
    const time = times[position];
    const at = standing(this.result, time);
    this.motion.begin(this.transport.motion);
    this.circle.draw(at, this.motion);
    this.scores.draw(at);
    this.lanes.draw(time, this.motion);
    this.merges.draw(at);
    const k = Math.max(0, moments.findLastIndex(([from]) => from <= time));
    const sentence = `Now: ${moments[k][0] < time ? goes_on[k] : moments[k][1]}`; // what happens, or what is going on
    setSentence(this.sentence, sentence);
    const forEver = time === end && end > sums.total; // ranks wait, and the axis shows only the beginning of it
    const where = `time ${ringTime(time)} ${forEver ? "and for ever" : `of ${ringTime(end)}`}`;
    setText(this.status, where);
    this.transport.scrub.setAttribute("aria-valuetext", where);
    this.root.dataset.position = String(position);
    this.spoken.say(`${sentence} ${this.merges.said(at)}`);
    this.drawTime = performance.now() - started; // ms
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const player = new RingPlayer(context);
    return () => player.stop();
  },
};
