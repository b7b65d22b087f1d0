// MaskLab: what a mask leaves to compute. Python computed all numbers and sentences; this file draws them.

/** @import { Result, Traits } from "./types.js" */
import { div, h, headline, note, panel, setSentence, setText, typeset } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { Widget } from "../shared/widget.js";
import { Against, Loop, TileCounts } from "./counts.js";
import { Scores } from "./scores.js";
import { MaskSettings } from "./settings.js";

/** @extends {Widget<Traits>} */
class MaskLab extends Widget {
  /** @type {MaskSettings} */
  controls;
  /** @type {HTMLElement} */
  title;
  /** @type {Result} */
  result;
  /** @type {number} */
  drawTime;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "mask-lab", "a mask over the scores, tile by tile");
    this.row = 0; // chosen
    /** @type {number | null} */
    this.pointed = null; // the row under the pointer
    this.code = h("code", { class: "flash-mask-code" });
    this.words = h("p", {});
    this.sentence = h("p", {});
    this.scores = new Scores(
      (row) => this.point(row),
      (row) => this.choose(row),
    );
    this.parts = [new TileCounts(), new Against(), new Loop()];
    const result = this.model.get("result");
    if (result.setting) this.#build(result);
    this.start("result", {
      ArrowUp: () => this.choose(this.row - 1),
      ArrowDown: () => this.choose(this.row + 1),
      PageUp: () => this.choose(this.row - this.result.setting.B_r),
      PageDown: () => this.choose(this.row + this.result.setting.B_r),
      Home: () => this.choose(0),
      End: () => this.choose(this.result.setting.N_q - 1),
    });
  }

  #build({ kinds_offered, setting }) {
    this.row = Math.floor(setting.N_q / 2);
    this.controls = new MaskSettings(kinds_offered, (setting) => this.ask(setting));
    for (const name of Object.keys(setting)) this.hear(name, () => this.#show());
    this.hear("refused", () => this.#show());
    const step = (by, sign, label) =>
      h(
        "button",
        { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: () => this.choose(this.row + by) },
        sign,
      );
    const stepper = div(
      "flash-mask-stepper",
      step(-1, "▲", "previous row (up arrow)"),
      step(1, "▼", "next row (down arrow)"),
    );
    const title = typeset("S, cut into tiles");
    const hint = note("point at a row, or use the arrow keys");
    this.root.append(
      headline("Which scores does a mask hide, and which tiles?").element,
      div(
        "flash-mask-stage",
        div("flash-panel flash-mask-settings", this.settings(this.controls.elements)),
        panel("mask-scores", title, hint, this.scores.picture),
        div("flash-panel flash-words flash-mask-words", this.code, this.words),
        panel("mask-one", (this.title = h("span", {})), stepper, this.sentence),
        this.parts.map(({ element }) => element),
      ),
    );
  }

  /** Show the last request, which may not be answered yet: a slider must not jump back under the hand. */
  #show() {
    const { setting, used } = this.result ?? {};
    if (!setting) return;
    this.controls.show((name) => (this.off ? setting[name] : this.model.get(name)), used);
    this.controls.mark((name) => this.model.get("refused") !== "" && this.model.get(name) !== setting[name]);
  }

  /** @param {Result} result */
  load(result) {
    this.result = result;
    this.#show();
    this.scores.take(result);
    this.row = Math.min(this.row, result.setting.N_q - 1);
    this.pointed = null;
    this.draw();
  }

  /** @param {number} row */
  choose(row) {
    this.row = between(0, row, this.result.setting.N_q - 1);
    this.pointed = null;
    this.#drawRow();
    this.spoken.say(this.result.rows[this.row]);
  }

  /** @param {number | null} row */
  point(row) {
    if (row === this.pointed) return;
    this.pointed = row;
    this.#drawRow();
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.result) return;
    const started = performance.now();
    const { code, words } = this.result;
    setText(this.code, code);
    setSentence(this.words, [words[0], ...words.slice(2)].join(" "));
    for (const part of this.parts) part.draw(this.result);
    this.#drawRow();
    this.spoken.say(words.join(" "));
    this.drawTime = performance.now() - started; // ms
  }

  #drawRow() {
    const row = this.pointed ?? this.row;
    this.scores.draw(row);
    setText(this.title, `Row ${row}`);
    setSentence(this.sentence, this.result.rows[row]);
    this.root.dataset.row = String(row);
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new MaskLab(context);
    return () => lab.stop();
  },
};
