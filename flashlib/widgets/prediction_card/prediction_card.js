// PredictionCard: fields, a button, and the verdict; a wrong guess gets a hint before the answer. The page grades;
// Python only keeps what is given.

/** @import { Field, Traits } from "./types.js" */
import { choice } from "../shared/controls.js";
import { h, note, typeset } from "../shared/elements.js";
import { Widget } from "../shared/widget.js";
import { grade } from "./grade.js";

const NEXT = "You hear at once whether it is right, and why; a wrong one gets a hint first.";
const SAID = { right: ["✓", "Right:"], wrong: ["✗", "Wrong:"], open: ["○", "Not answered yet:"] };

/** @extends {Widget<Traits>} */
class Card extends Widget {
  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "card", "a prediction");
    this.card = this.model.get("card");
    /** @type {string[]} the parts to look at again */
    this.again = [];
    const several = this.card.fields.length > 1;
    this.fields = this.card.fields.map((field) => ({
      part: field.part,
      label: several ? field.label : "",
      unit: field.unit,
      ...fieldOf(field),
    }));
    const rows = this.fields.map(({ label, element, unit }) =>
      h(
        "div",
        { class: "flash-card-field" },
        label && h("span", { "aria-hidden": "true" }, typeset(label)),
        element,
        unit && h("span", { "aria-hidden": "true" }, unit), // a screen reader hears it with the field
      ),
    );
    const button = h("button", { class: "flash-button flash-text" }, "Check");
    const last = h("div", { class: "flash-card-check" }, button, note(NEXT));
    const form = h("form", { class: "flash-card-form", novalidate: true }, rows, last);
    form.addEventListener("submit", (event) => {
      event.preventDefault(); // the page would be left
      this.#check();
    });
    this.verdict = h("div", { class: "flash-card-verdict", role: "status", tabindex: -1 });
    const asks = h("p", { class: "flash-card-asks" }, typeset(this.card.asks));
    this.root.append(h("p", { class: "flash-card-title" }, "Predict, before you run it"), asks, form, this.verdict);
    this.start("given");
  }

  #check() {
    const texts = this.fields.map(({ part, text }) => [part, text()]);
    const given = Object.fromEntries(texts.filter(([, text]) => text));
    this.model.set("given", given);
    if (!this.off) this.model.save_changes();
    this.load(given); // where it is the same as before nothing changes
    if (this.again.length && this.root.dataset.outcome === "open") this.#retry();
    else this.verdict.focus();
  }

  /** Go to the first field to look at again; what was said of it stays. */
  #retry() {
    const { focus } = this.fields.find(({ part }) => this.again.includes(part)) ?? this.fields[0];
    focus();
  }

  /** @param {Record<string, string>} given */
  load(given) {
    for (const { part, show } of this.fields) if (part in given) show(given[part]);
    this.#say(given, false);
  }

  /** @param {Record<string, string>} given @param {boolean} shows */
  #say(given, shows) {
    const { outcome, sentence, read, hint, reason, slips } = grade(this.card, given, shows);
    this.root.dataset.outcome = outcome;
    this.again = slips ?? [];
    for (const { part, mark } of this.fields) mark(this.again.includes(part) && part in given);
    const [sign, word] = SAID[outcome];
    const isForm = outcome === "open" && hint === undefined; // how to write a guess: as it is typed
    const said = [h("p", {}, `${sign} `, h("b", {}, word), " ", isForm ? sentence : typeset(sentence))];
    if (read) said.push(h("p", { class: "flash-note" }, read));
    if (hint) said.push(h("p", {}, h("b", {}, "Hint: "), typeset(hint)));
    if (reason) said.push(h("p", {}, "Why: ", typeset(reason)));
    this.verdict.replaceChildren(...(sentence ? said : []));
    if (hint !== undefined) this.verdict.append(this.#buttons(given));
  }

  /** @param {Record<string, string>} given */
  #buttons(given) {
    const name = { class: "flash-button flash-text", type: "button" };
    const show = () => {
      this.#say(given, true);
      this.verdict.focus();
    };
    const again = h("button", { ...name, onclick: () => this.#retry() }, "Try again");
    return h("p", { class: "flash-card-next" }, again, h("button", { ...name, onclick: show }, "Show the answer"));
  }

  paint() {} // all its colours are the style sheet's

  draw() {}
}

/**
 * The control of a field: its element, what it holds as a text, and a way to show one.
 * @param {Field} field
 */
function fieldOf({ kind, part, label, choices, length, unit }) {
  const name = label || "your answer";
  if (kind === "bool" || kind === "choice") {
    const options = kind === "bool" ? ["True", "False"] : choices;
    let chosen = "";
    const control = choice(part || "answer", name, options.map((option) => [option, option]), (value) => (chosen = value));
    /** @param {string} text */
    const show = (text) => control.show((chosen = text));
    const focus = () => /** @type {HTMLElement} */ (control.element.querySelector("input")).focus();
    return { element: control.element, text: () => chosen, show, focus, mark: (_wrong) => {} };
  }
  const number = unit ? `a number (${unit})` : "a number";
  const set = length ? "a set: (a, b), (c, d)" : "a set: a, b";
  const hint = { number, tuple: `${length} numbers: a, b`, set }[kind];
  const input = h("input", {
    type: "text",
    class: "flash-field",
    "aria-label": name,
    placeholder: hint,
    autocomplete: "off",
    spellcheck: "false",
    style: `width:${Math.max(20, 3 * length + 4)}ch`,
  });
  return {
    element: input,
    text: () => input.value.trim(),
    show: (text) => void (input.value = text),
    focus: () => {
      input.focus();
      input.select();
    },
    /** @param {boolean} wrong */
    mark: (wrong) => void (input.ariaInvalid = wrong ? "true" : null),
  };
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const card = new Card(context);
    return () => card.stop();
  },
};
