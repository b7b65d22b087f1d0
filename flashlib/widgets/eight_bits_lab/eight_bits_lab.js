// EightBitsLab: attention with eight-bit numbers. Python computed all numbers and sentences; this file draws them.

/** @import { Colours } from "../shared/colours.js" */
/** @import { Numbers, Place, Result, Traits } from "./types.js" */
import { colourScale, paintScale } from "../shared/colours.js";
import { choice } from "../shared/controls.js";
import { div, headline, setSentence } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { Widget } from "../shared/widget.js";
import { Causes } from "./causes.js";
import { Grids } from "./grids.js";
import { Maps } from "./maps.js";
import { Read } from "./read.js";
import { Score } from "./score.js";
import { EightBitsSettings } from "./settings.js";
import { RunningSum } from "./sums.js";
import { unpackLab } from "./unpack.js";

/** The views next to the controls, one at a time. */
const EIGHT_VIEWS = [
  ["causes", "where the error comes from", "what each rounding alone does to O, and what is read"],
  ["scores", "one score", "the errors of S and of the weights, and how one arises"],
  ["sums", "one sum", "the error of O, and how one of its sums grows"],
  ["grids", "formats", "how large the numbers are, and which numbers eight bits have"],
];

/** @extends {Widget<Traits>} */
class EightBitsLab extends Widget {
  /** @type {EightBitsSettings} */
  controls;
  /** @type {Result} */
  result;
  /** @type {Numbers} */
  numbers;
  /** @type {ReturnType<typeof choice>} */
  choice;
  /** @type {{ name: string, element: HTMLElement }[]} */
  boxes;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "eight-bits-lab", "attention with numbers of eight bits, and its error");
    /** @type {Place} */
    this.place = { row: 0, key: 0, column: 0 }; // chosen
    /** @type {Partial<Place> | null} */
    this.pointed = null; // what is under the pointer
    /** @type {Colours | null} */
    this.colour = null; // the scale of the theme
    this.head = headline("Attention in eight bits: how far off is O?");
    this.view = "causes";
    this.causes = new Causes();
    this.grids = new Grids();
    this.maps = new Maps((place, pressed) => (pressed && place ? this.choose(place) : this.point(place)));
    this.score = new Score((by) => this.step(by));
    this.sum = new RunningSum((by) => this.step(by));
    this.read = new Read();
    const result = this.model.get("result");
    if (result.setting) this.#build(result);
    this.start("result", {
      ArrowUp: () => this.#walk({ row: -1 }, "scores", "sums"),
      ArrowDown: () => this.#walk({ row: 1 }, "scores", "sums"),
      ArrowLeft: () => this.#walk({ key: -1 }, "scores"),
      ArrowRight: () => this.#walk({ key: 1 }, "scores"),
      PageUp: () => this.#walk({ column: -1 }, "sums"),
      PageDown: () => this.#walk({ column: 1 }, "sums"),
      Home: () => this.#walk({ key: -this.place.key }, "scores"),
      End: () => this.#walk({ key: this.result.shown }, "scores"),
    });
  }

  /** @param {Result} result */
  #build(result) {
    this.place = { ...result.opens };
    this.controls = new EightBitsSettings(result, (setting) => this.ask(setting));
    for (const name of Object.keys(result.setting)) this.hear(name, () => this.#show());
    const drawn = [this.grids, this.score, this.sum];
    this.stops.push(() => drawn.forEach(({ resized }) => resized.disconnect()));
    const views = {
      causes: [this.causes, this.read],
      scores: [{ element: this.maps.scores }, this.score],
      sums: [{ element: this.maps.output }, this.sum],
      grids: [this.grids],
    };
    this.choice = choice("view", "what is shown", EIGHT_VIEWS, (view) => this.open(view));
    this.boxes = Object.entries(views).map(([name, parts]) => {
      const element = div(`flash-eight-view flash-eight-view-${name}`, parts.map((part) => part.element));
      return { name, element };
    });
    this.root.append(
      this.head.element,
      div(
        "flash-eight-stage",
        div("flash-panel flash-eight-settings", this.settings(this.controls.elements)),
        div("flash-eight-shown", this.choice.element, this.boxes.map(({ element }) => element)),
      ),
    );
    this.#turn();
  }

  /** Show only the chosen view. */
  #turn() {
    this.choice.show(this.view);
    for (const { name, element } of this.boxes) element.hidden = name !== this.view;
    this.root.dataset.view = this.view;
  }

  /** @param {string} view */
  open(view) {
    if (view === this.view) return;
    this.view = view;
    this.#turn();
    this.#drawView();
  }

  /**
   * Move with the keys, in the views that show it.
   * @param {Partial<Place>} by
   * @param {...string} views
   */
  #walk(by, ...views) {
    if (!views.includes(this.view)) this.open(views[0]);
    this.step(by);
  }

  /** Show the last request, which may not be answered yet: a slider must not jump back under the hand. */
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
    if (!this.colour) this.paint();
    this.draw();
  }

  paint() {
    if (!this.root.isConnected) return;
    this.colour = colourScale(this.root);
    paintScale(this.root, this.colour);
  }

  draw() {
    if (!this.result) return;
    const { words } = this.result;
    setSentence(this.head.now, words[0]);
    this.causes.draw(this.result); // visible or not: it keeps the error before the last change
    this.#drawView();
    this.spoken.say(`${words[1]} ${this.sum.text}`);
  }

  /** Draw the visible view. */
  #drawView() {
    if (this.view === "causes") this.read.draw(this.result);
    if (this.view === "grids") this.grids.draw(this.result);
    if (this.view === "scores") this.maps.drawScores(this.result, this.numbers, this.colour);
    if (this.view === "sums") this.maps.drawOutput(this.result, this.numbers, this.colour);
    this.#drawPlace();
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
    this.maps.choose(place, this.result);
    this.score.draw(place, this.result, this.numbers, this.view === "scores");
    this.sum.draw(place, this.result, this.numbers, this.view === "sums");
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
