// OnlineSoftmaxLab: plays the scan that Python computed. Each score takes two positions, "rescale" and "add"; the last
// one, "end", shows the weights. The scan without the rescale was sent too, so its switch needs no answer from Python.

/** @import { Phase, Scan, Sent, Traits } from "./types.js" */
import { toggle } from "../shared/controls.js";
import { div, h, headline, note, setSentence, setText, symbol, typeset } from "../shared/elements.js";
import { Motion, storyPace } from "../shared/motion.js";
import { float64, number } from "../shared/number_text.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { isRescaled, openingOf, Scores, Terms } from "./charts.js";
import { Sum } from "./sum.js";
import { formula, Update } from "./update.js";
import { legend, sentences } from "./words.js";

/** @extends {Widget<Traits>} */
class OnlineLab extends Widget {
  /** @type {Scan} */
  scan;
  /** @type {Record<string, number>} */
  total;
  /** @type {Scores} */
  scores;
  /** @type {Terms} */
  terms;
  /** @type {Sum} */
  sum;
  /** @type {Update} */
  update;
  /** @type {{ field: number, words: number } | undefined} in px */
  room;
  /** @type {HTMLElement} */
  title;
  /** @type {HTMLElement} */
  note;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "online", "online softmax, score by score");
    const story = storyPace({ rescales: (position) => this.#rescales(position) });
    this.transport = new Transport({ unit: "step", units: "steps", moved: () => this.draw(), story });
    this.typed = h("input", {
      type: "text",
      class: "flash-field flash-online-typed",
      "aria-label": "x, the scores: numbers or -inf, with commas or spaces between them",
      spellcheck: "false",
      autocomplete: "off",
      onchange: () => this.type(this.typed.value),
    });
    this.filled = ""; // the text of the field when it was last shown or sent
    const fillIn = Object.entries(this.model.get("examples")).map(([name, text]) =>
      h("button", { type: "button", class: "flash-button flash-text", onclick: () => this.type(text) }, name),
    );
    const examples = h(
      "div",
      { class: "flash-online-examples", role: "group", "aria-label": "rows to fill in" },
      fillIn,
    );
    this.motion = new Motion();
    this.without = toggle("without the rescale", (without) => this.rescaleIs(!without));
    this.status = h("span", { class: "flash-online-status" });
    const { element, speed } = this.transport;
    const row = h("label", { class: "flash-online-row" }, symbol("x"), this.typed);
    const header = div(
      "flash-panel flash-online-header",
      div("flash-controls", element, this.status, speed, this.without.element),
      this.settings(row, examples),
    );
    this.sentence = h("p", { class: "flash-online-sentence" });
    this.body = div("flash-online-body");
    const title = headline("Softmax in one pass: what does each score change?").element;
    this.root.append(title, header, div("flash-panel flash-words", this.sentence), this.body, legend());
    const width = new ResizeObserver(() => {
      this.room = this.scores && { field: this.scores.field.clientWidth, words: this.sentence.clientWidth };
      this.fit();
    });
    width.observe(this.root);
    this.stops.push(
      () => this.transport.pause(),
      () => width.disconnect(),
    );
    this.hear("rescale", () => this.draw());
    this.hear("refused", () => this.typed.setAttribute("aria-invalid", this.model.get("refused") !== ""));
    this.start("frames", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.transport.last),
    });
  }

  type(text) {
    this.typed.value = this.filled = text;
    this.ask({ typed: text });
  }

  rescaleIs(rescale) {
    this.model.set("rescale", rescale);
    if (!this.off) this.model.save_changes();
  }

  /** @param {Sent} sent */
  load({ N, rows, text, weight, weight_wrong, buffer }) {
    const numbers = float64(buffer);
    const named = Object.fromEntries(rows.map((name, k) => [name, numbers.subarray(k * N, (k + 1) * N)]));
    const isAsLong = this.scan?.N === N; // then only scores were changed, and the learner wants to compare
    const scan = /** @type {Scan} */ ({ N, terms: numbers.subarray(rows.length * N), ...named });
    this.scan = scan;
    this.total = { true: weight, false: weight_wrong };
    if (this.typed.value === this.filled) this.typed.value = this.filled = text; // else the learner has gone on typing
    this.scores = new Scores(scan);
    this.terms = new Terms(scan);
    this.sum = new Sum(scan);
    this.update = new Update(scan);
    this.body.replaceChildren(this.#charts(), this.update.element);
    this.root.dataset.n = String(N);
    this.fit();
    this.transport.reset(2 * N, isAsLong ? this.transport.position : openingOf(scan));
    this.transport.mark([...scan.m.keys()].filter((j) => isRescaled(scan, j)).map((j) => 2 * j));
  }

  /**
   * Whether the sums are rescaled at a position.
   * @param {number} position
   */
  #rescales(position) {
    return position % 2 === 0 && position < 2 * this.scan.N && isRescaled(this.scan, position / 2);
  }

  #charts() {
    this.title = h("h3");
    this.note = note();
    const cut = this.scores.cut ? "the bars do not begin at 0" : "";
    const scores = h("h3", {}, typeset("Scores x_j, and m, the largest so far"));
    const sum = h("h3", {}, typeset("l, the sum of the terms"));
    return h(
      "section",
      { class: "flash-panel flash-online-charts" },
      h("header", {}, scores, note(cut)),
      this.scores.element,
      h("header", {}, this.title, this.note),
      this.terms.element,
      h("header", {}, sum, this.sum.beside),
      this.sum.element,
    );
  }

  /**
   * The words below the columns are left out if they would not fit; there is room for the longest sentence. The width is
   * queried only when it changes: the query forces a layout.
   */
  fit() {
    if (!this.room) return;
    const column = this.room.field / this.scan.N; // px
    const lines = Math.ceil(1250 / Math.max(this.room.words, 250));
    this.root.classList.toggle("flash-online-tight", column < 34);
    this.root.classList.toggle("flash-online-narrow", column < 20);
    this.sentence.parentElement?.style.setProperty("--lines", lines);
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.scan) return;
    const { N } = this.scan;
    const { position } = this.transport;
    const rescale = this.model.get("rescale");
    /** @type {Phase} */
    const phase = position === 2 * N ? "end" : position % 2 ? "add" : "rescale";
    const j = Math.min(N - 1, Math.floor(position / 2));
    this.motion.begin(this.transport.motion);
    this.scores.draw(j, phase, this.motion);
    for (const part of [this.terms, this.sum, this.update]) part.draw(j, phase, rescale, this.motion);
    this.without.show(!rescale);
    const doing = phase === "end" ? "the weights" : phase === "add" ? "add" : rescale ? "rescale" : "no rescale";
    const where = phase === "end" ? `end: ${doing}` : `score ${j + 1} of ${N}: ${doing}`;
    const terms = phase === "end" ? "Weights, exp(|x| − |m|) / |l|" : "Terms of |l|, exp(|x| − |m|)";
    if (this.title.dataset.terms !== terms) this.title.replaceChildren(...formula(terms));
    this.title.dataset.terms = terms;
    setSentence(this.note, this.#noteOn(phase, rescale));
    setText(this.status, where);
    setSentence(this.sentence, sentences(this.scan, j, this.total)[phase](rescale));
    this.transport.scrub.setAttribute("aria-valuetext", where);
    Object.assign(this.root.dataset, { position, phase, rescale });
    this.spoken.say(`${where}. ${this.sentence.flashText}`);
  }

  #noteOn(phase, rescale) {
    if (phase === "end") return `they add up to ${number(this.total[rescale])}`;
    return rescale ? "all with the current m" : "each with the m at its time";
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new OnlineLab(context);
    return () => lab.stop();
  },
};
