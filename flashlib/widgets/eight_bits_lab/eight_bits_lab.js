// EightBitsLab: attention with numbers of eight bits. Python computed all numbers and sentences; this draws them.

/** @import { Colours } from "../shared/colours.js" */
/** @import { Numbers, Place, Result, Traits } from "./types.js" */
import { colourScale, paintScale } from "../shared/colours.js";
import { div, h, setSentence } from "../shared/elements.js";
import { between } from "../shared/numbers.js";
import { Widget } from "../shared/widget.js";
import { Causes } from "./causes.js";
import { Grids } from "./grids.js";
import { Maps } from "./maps.js";
import { Read } from "./read.js";
import { Score } from "./score.js";
import { EightBitsSettings } from "./settings.js";
import { RunningSum } from "./sums.js";
import { unpackLab } from "./unpack.js";

/** @extends {Widget<Traits>} */
class EightBitsLab extends Widget {
  /** @type {EightBitsSettings} */
  controls;
  /** @type {Result} */
  result;
  /** @type {Numbers} */
  numbers;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "eight-bits-lab", "attention with numbers of eight bits, and its error");
    /** @type {Place} */
    this.place = { row: 0, key: 0, column: 0 }; // chosen
    /** @type {Partial<Place> | null} */
    this.pointed = null; // what is under the pointer
    /** @type {Colours | null} */
    this.colour = null; // the scale of the theme
    this.words = h("p", { class: "flash-note" });
    this.causes = new Causes();
    this.grids = new Grids();
    this.maps = new Maps((place, pressed) => (pressed && place ? this.choose(place) : this.point(place)));
    this.score = new Score((by) => this.step(by));
    this.sum = new RunningSum((by) => this.step(by));
    this.read = new Read();
    const result = this.model.get("result");
    if (result.setting) this.#build(result);
    this.start("result", {
      ArrowUp: () => this.step({ row: -1 }),
      ArrowDown: () => this.step({ row: 1 }),
      ArrowLeft: () => this.step({ key: -1 }),
      ArrowRight: () => this.step({ key: 1 }),
      PageUp: () => this.step({ column: -1 }),
      PageDown: () => this.step({ column: 1 }),
      Home: () => this.choose({ key: 0 }),
      End: () => this.choose({ key: this.result.shown - 1 }),
    });
  }

  /** @param {Result} result */
  #build(result) {
    this.place = { ...result.opens };
    this.controls = new EightBitsSettings(result, (setting) => this.ask(setting));
    for (const name of Object.keys(result.setting)) this.hear(name, () => this.#show());
    const drawn = [this.grids, this.score, this.sum];
    this.stops.push(() => drawn.forEach(({ resized }) => resized.disconnect()));
    const parts = [this.causes, this.maps, this.score, this.sum, this.grids, this.read];
    this.root.append(
      div(
        "flash-eight-stage",
        div("flash-panel flash-eight-settings", this.settings(this.controls.elements), this.words),
        parts.map(({ element }) => element),
      ),
    );
  }

  /** Show what was asked last, which may not be answered yet: a slider must not jump back under the hand. */
  #show() {
    const { setting } = this.result ?? {};
    if (setting) this.controls.show((name) => (this.off ? setting[name] : this.model.get(name)), this.result);
  }

  /** @param {Result} result */
  load(result) {
    this.result = result;
    this.numbers = unpackLab(result);
    this.pointed = null;
    this.#show();
    this.maps.take(result, this.numbers);
    if (this.colour) this.maps.paint(this.colour);
    else this.paint();
    this.draw();
  }

  paint() {
    if (!this.root.isConnected) return;
    this.colour = colourScale(this.root);
    this.maps.paint(this.colour);
    paintScale(this.root, this.colour);
  }

  draw() {
    if (!this.result) return;
    const { words } = this.result;
    setSentence(this.words, words[0]);
    this.causes.draw(this.result);
    this.read.draw(this.result);
    this.grids.draw(this.result);
    this.#drawPlace();
    this.spoken.say(`${words[1]} ${this.sum.text}`);
  }

  /** @param {Partial<Place>} by */
  step(by) {
    const moved = Object.entries(by).map(([name, step]) => [name, this.place[name] + step]);
    this.choose(Object.fromEntries(moved));
  }

  /** @param {Partial<Place>} place */
  choose(place) {
    const { rows, shown, cols } = this.result;
    const { row, key, column } = { ...this.place, ...place };
    const within = (k, count) => between(0, k, count - 1);
    this.place = { row: within(row, rows), key: within(key, shown), column: within(column, cols) };
    this.pointed = null;
    this.#drawPlace();
    this.spoken.say("column" in place ? this.sum.text : this.score.text.join(" "));
  }

  /** @param {Partial<Place> | null} place */
  point(place) {
    this.pointed = place;
    this.#drawPlace();
  }

  #drawPlace() {
    const place = { ...this.place, ...this.pointed };
    this.maps.choose(place);
    this.score.draw(place, this.result, this.numbers);
    this.sum.draw(place, this.result, this.numbers);
    this.root.dataset.shows = [place.row, place.key, place.column].join();
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new EightBitsLab(context);
    return () => lab.stop();
  },
};
