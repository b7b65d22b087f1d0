// SplitLab: the keys of one query split over programs. Python computed all numbers and sentences; this file draws them.

/** @import { Result, State, Traits } from "./types.js" */
import { colourScale } from "../shared/colours.js";
import { disclosure } from "../shared/controls.js";
import { div, h, headline, note, panel, setSentence } from "../shared/elements.js";
import { between, float64 } from "../shared/number_text.js";
import { Widget } from "../shared/widget.js";
import { Account, Finished } from "./account.js";
import { Chip } from "./chip.js";
import { Parts } from "./parts.js";
import { SplitSettings } from "./settings.js";
import { Times } from "./times.js";

/**
 * The numbers of a result: the outline of the scores, the States of all nodes, and O and lse, merged and in one go.
 * @param {Result} result
 */
function unpack({ buffer, bins, n, D }) {
  const numbers = float64(buffer);
  const size = D + 4;
  const states = Array.from({ length: 2 * n - 1 }, (_, k) => {
    const at = bins + k * size;
    const [m, l] = numbers.subarray(at, at + 2);
    return { m, l, O_acc: numbers.subarray(at + 2, at + 2 + D), alphas: [...numbers.subarray(at + 2 + D, at + size)] };
  });
  const end = bins + states.length * size;
  const ends = [0, 1].map((k) => numbers.subarray(end + k * (D + 1), end + (k + 1) * (D + 1)));
  return { outline: numbers.subarray(0, bins), states, ends };
}

const OF_STATES = ["N_k", "parts", "order"];

/** @extends {Widget<Traits>} */
class SplitLab extends Widget {
  /** @type {SplitSettings} */
  controls;
  /** @type {Result} */
  result;
  /** @type {Float64Array} */
  outline;
  /** @type {State[]} */
  states;
  /** @type {Float64Array[]} */
  ends;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "split-lab", "one query's keys, split over programs");
    this.node = 0; // chosen
    /** @type {number | null} */
    this.pointed = null; // the one under the pointer
    this.head = headline("Decoding: keys in parts");
    this.words = h("p", {});
    this.picture = new Parts(
      (node) => this.point(node),
      (node) => this.choose(node),
    );
    this.account = new Account((by) => this.choose(this.node + by));
    this.finished = new Finished();
    this.chip = new Chip();
    this.times = new Times();
    this.model_words = h("p", {});
    const result = this.model.get("result");
    if (result.setting) this.#build(result);
    this.start("result", {
      ArrowLeft: () => this.choose(this.node - 1),
      ArrowRight: () => this.choose(this.node + 1),
      Home: () => this.choose(0),
      End: () => this.choose(2 * this.result.n - 2),
    });
  }

  /** @param {Result} result */
  #build({ gpus, setting }) {
    this.controls = new SplitSettings(gpus, (setting) => this.ask(setting));
    for (const name of Object.keys(setting)) this.hear(name, () => this.#show());
    const settings = this.settings(this.controls.elements);
    // A message about an answer takes the place of the hint: nothing below must jump.
    const beside = div("flash-split-hint", note("point at a part or a merge, or use arrow keys"), this.busy);
    const model = panel("split-model", "The model", note("not a measurement"), this.model_words);
    model.hidden = true;
    this.times.fold.append(disclosure("about the model", (open) => void (model.hidden = !open)));
    const drawn = [this.picture, this.chip, this.times];
    this.stops.push(() => drawn.forEach(({ resized }) => resized.disconnect()));
    this.root.append(
      this.head.element,
      div(
        "flash-split-stage",
        div("flash-panel flash-split-settings", settings),
        div(
          "flash-split-query",
          panel("split-parts", "The parts, merged", beside, this.words, this.picture.element),
          div("flash-split-states", this.account.element, this.finished.element),
        ),
        div("flash-split-whole", this.times.element, this.chip.element),
        model,
      ),
    );
  }

  /** Show the last request, which may not be answered yet: a slider must not jump back under the hand. */
  #show() {
    const { setting } = this.result ?? {};
    if (setting) this.controls.show((name) => (this.off ? setting[name] : this.model.get(name)), this.result);
  }

  /** @param {Result} result */
  load(result) {
    const before = this.result?.setting;
    const kept = OF_STATES.every((name) => before?.[name] === result.setting[name]);
    this.result = result;
    this.pointed = null;
    ({ outline: this.outline, states: this.states, ends: this.ends } = unpack(result));
    this.#show();
    this.node = Math.min(this.node, 2 * result.n - 2);
    if (!this.picture.colour) this.paint();
    this.draw(kept);
  }

  paint() {
    if (this.root.isConnected) this.picture.colour = colourScale(this.root);
  }

  /** kept: whether the States are already drawn. */
  draw(kept = false) {
    if (!this.result) return;
    const { words, equal, merges, model, n } = this.result;
    const merged = "Then l and O_acc, times alpha_s\u00a0=\u00a0exp(m_s\u00a0−\u00a0m), are added.";
    setSentence(this.head.now, n > 1 ? `Per head ${n} programs read a part each. ${merged}` : "One program reads all keys: there is nothing to merge.");
    setSentence(this.words, `${words[0]} ${merges}`);
    setSentence(this.model_words, model.join(" "));
    this.picture.node = this.node;
    if (!kept) this.picture.take(this.result, this.states, this.outline);
    this.finished.draw(this.result, this.ends);
    this.chip.draw(this.result);
    this.times.draw(this.result);
    this.#drawNode();
    this.spoken.say([...words, merges, equal].join(" "));
  }

  /** @param {number} node */
  choose(node) {
    this.node = between(0, node, 2 * this.result.n - 2);
    this.pointed = null;
    this.#drawNode();
    this.spoken.say(this.account.text.join(" "));
  }

  /** @param {number | null} node */
  point(node) {
    if (node === this.pointed) return;
    this.pointed = node;
    this.#drawNode();
  }

  #drawNode() {
    const node = this.pointed ?? this.node;
    this.picture.choose(node);
    this.account.draw(node, this.result, this.states);
    this.root.dataset.node = String(node);
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new SplitLab(context);
    return () => lab.stop();
  },
};
