// PredictionCard: fields, a button, and the verdict. The page grades; Python only keeps what is given.

/** @import { Field, Traits } from "./types.js" */
import { choice } from "../shared/controls.js";
import { h, typeset } from "../shared/elements.js";
import { Widget } from "../shared/widget.js";
import { grade } from "./grade.js";

const SAID = { right: ["✓", "Right:"], wrong: ["✗", "Wrong:"], open: ["○", "Not answered yet:"] };

/** @extends {Widget<Traits>} */
class Card extends Widget {
  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "card", "a prediction");
    this.card = this.model.get("card");
    const several = this.card.fields.length > 1;
    this.fields = this.card.fields.map((field) => ({
      part: field.part,
      label: several ? field.label : "",
      ...fieldOf(field),
    }));
    const rows = this.fields.map(({ label, element }) =>
      h("div", { class: "flash-card-field" }, label && h("span", { "aria-hidden": "true" }, typeset(label)), element),
    );
    const button = h("button", { class: "flash-button flash-text" }, "Check");
    const form = h("form", { class: "flash-card-form", novalidate: true }, rows, button);
    form.addEventListener("submit", (event) => {
      event.preventDefault(); // the page would be left
      this.#check();
    });
    this.verdict = h("div", { class: "flash-card-verdict", role: "status" });
    this.root.append(h("p", { class: "flash-card-title" }, "Your prediction"), form, this.verdict);
    this.start("given");
  }

  #check() {
    const texts = this.fields.map(({ part, text }) => [part, text()]);
    const given = Object.fromEntries(texts.filter(([, text]) => text));
    this.model.set("given", given);
    if (!this.off) this.model.save_changes();
    this.load(given); // where it is the same as before nothing changes
  }

  /** @param {Record<string, string>} given */
  load(given) {
    for (const { part, show } of this.fields) if (part in given) show(given[part]);
    const { outcome, sentence, reason } = grade(this.card, given);
    this.root.dataset.outcome = outcome;
    const [sign, word] = SAID[outcome];
    const said = h("p", {}, `${sign} `, h("b", {}, word), " ", typeset(sentence));
    this.verdict.replaceChildren(...(sentence ? [said] : []));
    if (reason) this.verdict.append(h("p", {}, "Why: ", typeset(reason))); // of what is wrong
  }

  paint() {} // all its colours are the style sheet's

  draw() {}
}

/**
 * The control of a field: its element, what it holds as a text, and a way to show one.
 * @param {Field} field
 */
function fieldOf({ kind, part, label, choices, length }) {
  const name = label || "your answer";
  if (kind === "bool" || kind === "choice") {
    const options = kind === "bool" ? ["True", "False"] : choices;
    let chosen = "";
    const control = choice(part || "answer", name, options.map((option) => [option, option]), (value) => (chosen = value));
    /** @param {string} text */
    const show = (text) => control.show((chosen = text));
    return { element: control.element, text: () => chosen, show };
  }
  const hint = { number: "a number", tuple: `${length} numbers: a, b`, set: "a set: a, b" }[kind];
  const input = h("input", {
    type: "text",
    class: "flash-field",
    "aria-label": name,
    placeholder: hint,
    autocomplete: "off",
    spellcheck: "false",
    style: `width:${Math.max(18, 3 * length + 4)}ch`,
  });
  return { element: input, text: () => input.value.trim(), show: (text) => void (input.value = text) };
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const card = new Card(context);
    return () => card.stop();
  },
};
