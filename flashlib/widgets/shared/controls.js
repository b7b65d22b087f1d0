// Sliders, choices and toggles. All are updated at each answer; unchanged values are not set again, which is cheaper.

import { h, put, setText, symbol } from "./elements.js";

/**
 * @param {HTMLInputElement} range
 * @param {number} value
 */
function setValue(range, value) {
  if (range.value !== String(value)) range.value = String(value);
}

/**
 * @param {HTMLInputElement} input
 * @param {boolean} on
 */
function setChecked(input, on) {
  if (input.checked !== on) input.checked = on;
}

/**
 * @param {string} name
 * @param {string} label
 * @param {(value: number) => void} input
 */
export function slider(name, label, input) {
  const range = h("input", {
    type: "range",
    "aria-label": label,
    "data-name": name,
    oninput: () => input(Number(range.value)),
  });
  const output = h("output", { "aria-live": "off" });
  const element = h("label", { class: "flash-slider" }, symbol(name), range, output);
  /** @param {number} value @param {number[]} [ends] */
  const show = (value, ends) => {
    if (ends) ["min", "max"].forEach((name, k) => put(range, name, String(ends[k]))); // before the value, which they clamp
    setValue(range, value);
    range.disabled = Number(range.min) === Number(range.max);
    setText(output, String(value));
  };
  return { element, range, show };
}

/**
 * A slider that steps through the values it is shown with; null means none.
 * @param {string} name
 * @param {string} text
 * @param {string} label
 * @param {(value: any) => void} input
 */
export function stops(name, text, label, input) {
  /** @type {(number | null)[]} */
  let values = [];
  const range = h("input", {
    type: "range",
    min: 0,
    "aria-label": label,
    "data-name": name,
    oninput: () => input(values[Number(range.value)]),
  });
  const output = h("output", { "aria-live": "off" });
  const element = h("label", { class: "flash-slider" }, symbol(text), range, output);
  /** @param {number | null} value @param {(number | null)[]} all @param {string} [shown] the value as a text */
  const show = (value, all, shown = value === null ? "none" : String(value)) => {
    values = all.includes(value) ? all : [...all, value].sort((a, b) => Number(a) - Number(b));
    put(range, "max", String(values.length - 1));
    setValue(range, values.indexOf(value));
    put(range, "aria-valuetext", shown);
    setText(output, shown);
  };
  return { element, show };
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string[][]} options value, text and optionally a title of each
 * @param {(value: string) => void} change
 */
export function choice(name, label, options, change) {
  const group = `flash-${name}-${Math.random().toString(36).slice(2)}`;
  const inputs = options.map(([value]) =>
    h("input", { type: "radio", name: group, value, onchange: () => change(value) }),
  );
  const element = h(
    "fieldset",
    { class: "flash-choice", "aria-label": label },
    options.map(([, text, title], k) => h("label", { title }, inputs[k], h("span", {}, text))),
  );
  /** @param {string} value */
  const show = (value) => inputs.forEach((input) => setChecked(input, input.value === value));
  return { element, show };
}

/**
 * @param {any} label
 * @param {(on: boolean) => void} change
 */
export function toggle(label, change) {
  const input = h("input", { type: "checkbox", onchange: () => change(input.checked) });
  return {
    element: h("label", { class: "flash-toggle" }, input, label),
    /** @param {boolean} value */
    show: (value) => setChecked(input, value),
  };
}

/**
 * A button that opens and closes something; `show` is called with whether it is open.
 * @param {string} label
 * @param {(open: boolean) => void} show
 */
export function disclosure(label, show) {
  const button = h(
    "button",
    {
      type: "button",
      class: "flash-button flash-text flash-disclosure",
      "aria-expanded": "false",
      onclick() {
        const open = button.ariaExpanded !== "true";
        button.ariaExpanded = String(open);
        show(open);
      },
    },
    label,
  );
  return button;
}
