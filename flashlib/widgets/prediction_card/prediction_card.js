// PredictionCard: fields, a button, and the verdict; a wrong answer gets a hint before the right one. The page grades;
// Python only stores the answers.

/** @import { Answer, Traits } from "./types.js" */
import { h, typeset } from "../shared/elements.js";
import { Widget } from "../shared/widget.js";
import { controlOf } from "./fields.js";
import { grade } from "./grade.js";
import { readAll } from "./typed_text.js";

const SAID = { right: ["✓", "Right:"], wrong: ["✗", "Wrong:"], open: ["○", "Not answered yet:"] };

/** @extends {Widget<Traits>} */
class Card extends Widget {
  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "card", "a prediction");
    this.card = this.model.get("card");
    if (this.card.asks) this.root.ariaLabel = this.card.asks.replaceAll("`", "");
    /** @type {string[]} the parts to look at again */
    this.again = [];
    const several = this.card.fields.length > 1;
    this.controls = this.card.fields.map((field) => {
      const name = several ? field.label : "your answer";
      return { part: field.part, label: several && field.label, unit: field.unit, ...controlOf(field, name) };
    });
    const seen = (text) => text && h("span", { "aria-hidden": "true" }, typeset(text)); // it is announced with the control
    const rows = this.controls.map(({ label, element, unit }) =>
      h("div", { class: "flash-card-field" }, seen(label), element, seen(unit)),
    );
    const button = h("button", { class: "flash-button flash-text" }, "Check");
    const last = h("div", { class: "flash-card-check" }, button);
    const form = h("form", { class: "flash-card-form", novalidate: true }, rows, last);
    form.addEventListener("submit", (event) => {
      event.preventDefault(); // the browser would leave the page
      this.#check();
    });
    this.verdict = h("div", { class: "flash-card-verdict", role: "status", tabindex: -1 });
    const title = h("p", { class: "flash-card-title" }, "Predict, before you run it");
    const asks = h("div", { class: "flash-card-asks" }, title, h("p", {}, typeset(this.card.asks)));
    this.root.append(asks, form, this.verdict);
    this.start("given");
  }

  #check() {
    const texts = Object.fromEntries(this.controls.map(({ part, text }) => [part, text()]).filter(([, text]) => text));
    const { slips } = readAll(this.card.fields, texts);
    if (slips.length) {
      const again = slips.map(({ part }) => part);
      const sentence = slips.map((slip) => slip.sentence).join(" ");
      this.#tell({ outcome: "open", sentence, again }, () => true);
      this.#retry();
      return;
    }
    const kept = this.model.get("given");
    const { answers } = readAll(this.card.fields, kept);
    const unread = Object.entries(kept).filter(([part]) => !(part in answers)); // from an earlier form of the question
    const given = { ...Object.fromEntries(unread), ...texts };
    this.model.set("given", given);
    if (!this.off) this.model.save_changes();
    this.load(given); // if it is unchanged, nothing happens
    if (this.root.dataset.outcome === "open") this.#retry();
    else this.verdict.focus();
  }

  /** Go to the first field to look at again; the verdict on it stays. */
  #retry() {
    const { focus } = this.controls.find(({ part }) => this.again.includes(part)) ?? this.controls[0];
    focus();
  }

  /** Show the earlier answers that can be read. @param {Record<string, string>} given */
  load(given) {
    const { answers } = readAll(this.card.fields, given);
    for (const { part, show } of this.controls) if (part in answers) show(answers[part].text);
    this.#say(answers, false);
  }

  /** @param {Record<string, Answer>} answers @param {boolean} shows */
  #say(answers, shows) {
    const verdict = grade(this.card, answers, shows);
    this.#tell(verdict, (part) => part in answers);
    if (verdict.hint !== undefined) this.verdict.append(this.#buttons(answers));
  }

  /** @param {ReturnType<typeof grade>} verdict @param {(part: string) => boolean} isWrong of those to look at again */
  #tell({ outcome, sentence, hint, reason, again }, isWrong) {
    this.root.dataset.outcome = outcome;
    this.again = again ?? [];
    for (const { part, mark } of this.controls) mark(this.again.includes(part) && isWrong(part));
    const [sign, word] = SAID[outcome];
    const isForm = outcome === "open" && hint === undefined; // how to write an answer: shown literally
    const said = [h("p", {}, `${sign} `, h("b", {}, word), " ", isForm ? sentence : typeset(sentence))];
    if (hint) said.push(h("p", {}, h("b", {}, "Hint:"), " ", typeset(hint)));
    if (reason) said.push(h("p", {}, "Why:", " ", typeset(reason)));
    this.verdict.replaceChildren(...(sentence ? said : []));
  }

  /** @param {Record<string, Answer>} answers */
  #buttons(answers) {
    const name = { class: "flash-button flash-text", type: "button" };
    const show = () => {
      this.#say(answers, true);
      this.verdict.focus();
    };
    const again = h("button", { ...name, onclick: () => this.#retry() }, "Try again");
    return h("p", { class: "flash-card-next" }, again, h("button", { ...name, onclick: show }, "Show the answer"));
  }

  paint() {} // all colours are in the style sheet

  draw() {}
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const card = new Card(context);
    return () => card.stop();
  },
};
