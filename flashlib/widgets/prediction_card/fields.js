// The controls of a card: a field for each number, a button for each choice. Their content is one text.

/** @import { Field } from "./types.js" */
import { h, note } from "../shared/elements.js";
import { itemsOf } from "./typed_text.js";

/**
 * The control of a field: its element, its text, "" if none, and a way to show one.
 * @param {Field} field
 * @param {string} name
 */
export const controlOf = (field, name) => (["number", "tuple"].includes(field.kind) ? numbers(field, name) : buttons(field, name));

/**
 * @param {Field} field
 * @param {string} name
 */
function numbers({ kind, length, unit, right, wrong }, name) {
  const isNegative = [right, ...wrong.map(([value]) => value)].flat().some((x) => typeof x === "number" && x < 0);
  const inputs = Array.from({ length }, (_, k) => {
    const one = kind === "tuple" ? `${name}, number ${k + 1} of ${length}` : name;
    return h("input", {
      type: "text",
      inputmode: isNegative ? "text" : "decimal", // a phone's number pad has no minus sign
      class: "flash-field",
      "aria-label": unit ? `${one}, in ${unit}` : one,
      placeholder: kind === "number" && "a number",
      autocomplete: "off",
      spellcheck: "false",
    });
  });
  const texts = () => inputs.map(({ value }) => value.trim());
  return {
    element: kind === "tuple" ? h("span", { class: "flash-card-tuple", role: "group", "aria-label": name }, inputs) : inputs[0],
    text: () => (texts().some((text) => text) ? texts().join(", ") : ""),
    /** @param {string} text */
    show(text) {
      const items = kind === "tuple" ? itemsOf(text) : [text];
      inputs.forEach((input, k) => (input.value = items[k] ?? ""));
    },
    focus() {
      const input = inputs.find(({ value }) => !value.trim()) ?? inputs[0];
      input.focus();
      input.select();
    },
    /** @param {boolean} again */
    mark: (again) => inputs.forEach((input) => (input.ariaInvalid = again ? "true" : null)),
  };
}

/**
 * @param {Field} field
 * @param {string} name
 */
function buttons({ kind, choices }, name) {
  const options = kind === "bool" ? ["True", "False"] : choices;
  /** @type {Set<string>} */
  let pressed = new Set();
  /** @param {string[]} now */
  const press = (now) => {
    pressed = new Set(now);
    all.forEach((button, k) => (button.ariaPressed = String(pressed.has(options[k]))));
  };
  /** @param {string} option */
  const toggle = (option) => {
    const others = kind === "set" ? [...pressed].filter((one) => one !== option) : [];
    press(pressed.has(option) ? others : [...others, option]);
  };
  const all = options.map((option) =>
    h("button", { type: "button", class: "flash-card-option", "aria-pressed": "false", onclick: () => toggle(option) }, option),
  );
  const several = kind === "set" && note("Choose all that apply.");
  return {
    element: h("span", { class: "flash-card-options", role: "group", "aria-label": name }, all, several),
    text: () => options.filter((option) => pressed.has(option)).join(", "),
    /** @param {string} text */
    show: (text) => press(kind === "set" ? itemsOf(text) : [text]),
    focus: () => (all.find((button) => button.ariaPressed === "true") ?? all[0]).focus(),
    mark() {}, // the verdict names it
  };
}
