import { h } from "../shared/elements.js";

/** A text field, which sends its text when it is entered; the typed text stays until a different one is shown. */
export function field(name, label, change) {
  const input = h("input", {
    type: "text",
    class: "flash-field",
    "aria-label": label,
    "data-name": name,
    spellcheck: "false",
    autocomplete: "off",
    onchange: () => change(input.value),
  });
  const element = h("label", { class: "flash-mask-typed" }, h("span", {}, name), input);
  let shown = null; // the last text that was shown
  const show = (text) => {
    if (text !== shown) input.value = shown = text;
  };
  const invalid = (is) => input.setAttribute("aria-invalid", String(is));
  return { element, show, invalid };
}
