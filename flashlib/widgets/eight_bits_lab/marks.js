import { div, h, svg } from "../shared/elements.js";

/**
 * A mark of a legend, and its meaning.
 * @param {string} name
 * @param {any} text
 */
export const eightKey = (name, text) =>
  h("span", {}, h("i", { class: `flash-eight-key flash-eight-key-${name}` }), text);

/**
 * A text in a picture.
 * @param {number} x
 * @param {number} y
 * @param {string} words
 */
export const eightText = (x, y, words, anchor = "middle") =>
  svg("text", { class: "flash-eight-text", x, y, "text-anchor": anchor }, words);

/** @param {string} name @param {string} [d] */
export const eightPath = (name, d) => svg("path", { class: `flash-eight-${name}`, d });

/**
 * Buttons that step: the symbol, label and action of each.
 * @param {[sign: string, label: string, press: () => void][]} buttons
 */
export const stepButtons = (buttons) =>
  div(
    "flash-eight-stepper",
    buttons.map(([sign, label, press]) => {
      const attributes = { type: "button", class: "flash-button", "aria-label": label, title: label };
      return h("button", { ...attributes, onclick: press }, sign);
    }),
  );
