// Sliders, choices and toggles.

import { h, setText, symbol } from "./elements.js";

export function slider(name, label, input) {
  const range = h("input", {
    type: "range",
    "aria-label": label,
    "data-name": name,
    oninput: () => input(Number(range.value)),
  });
  const output = h("output", { "aria-live": "off" });
  const element = h("label", { class: "flash-slider" }, symbol(name), range, output);
  const show = (value, [min, max] = [range.min, range.max]) => {
    Object.assign(range, { min, max }); // before the value, which they clamp
    range.value = value;
    range.disabled = Number(min) === Number(max);
    setText(output, String(value));
  };
  return { element, range, show };
}

/** A slider that steps through the values it is shown with; null is none. */
export function stops(name, text, label, input) {
  let values = [];
  const range = h("input", {
    type: "range",
    min: 0,
    "aria-label": label,
    "data-name": name,
    oninput: () => input(values[range.value]),
  });
  const output = h("output", { "aria-live": "off" });
  const element = h("label", { class: "flash-slider" }, symbol(text), range, output);
  const show = (value, all, unit = "") => {
    values = all.includes(value) ? all : [...all, value].sort((a, b) => a - b);
    range.max = values.length - 1;
    range.value = values.indexOf(value);
    const shown = value === null ? "none" : value + unit;
    range.setAttribute("aria-valuetext", shown);
    setText(output, shown);
  };
  return { element, show };
}

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
  const show = (value) => inputs.forEach((input) => (input.checked = input.value === value));
  return { element, show };
}

export function toggle(label, change) {
  const input = h("input", { type: "checkbox", onchange: () => change(input.checked) });
  return {
    element: h("label", { class: "flash-toggle" }, input, label),
    show: (value) => (input.checked = value),
  };
}

/** A button that opens and closes something; `show` is called with whether it is open. */
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
