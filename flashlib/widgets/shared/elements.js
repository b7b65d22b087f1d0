// The elements of the page that widgets are made of.

import { say } from "./language.js";

const WORDED = new Set(["title", "aria-label", "aria-valuetext", "placeholder", "label"]); // attributes with words

/**
 * Give an element attributes, listeners ("onclick") and children: elements, texts, lists of these; false is ignored.
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, any> | undefined} attributes
 * @param {any[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null)
      element.setAttribute(name, value === true ? "" : WORDED.has(name) ? say(value) : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false).map(say));
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 */
export const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** @param {string} name @param {...any} children */
export const div = (name, ...children) => h("div", { class: name }, ...children);

/** @param {...any} children */
export const note = (...children) => h("span", { class: "flash-note" }, ...children);

/** A note that changes, with room for the `longest` text that it is given: its neighbours must not jump. */
export function steadyNote() {
  const [text, longest] = [h("span", {}), h("span", { "aria-hidden": "true" })];
  return { element: h("span", { class: "flash-note flash-steady" }, text, longest), text, longest };
}

/**
 * A name such as "B_r" or "Q_i" as an element, with the part after the underscore as a subscript; it keeps its name.
 * @param {string} name
 */
export function symbol(name) {
  const [letter, index] = name.split("_");
  const as = name.replace(",", "_"); // O_acc,old is O_acc_old in code
  return h("span", { class: "flash-symbol", "data-symbol": as }, letter, index && h("sub", {}, index));
}

/**
 * @param {string} name
 * @param {any} title
 * @param {any} note
 * @param {...any} children
 */
export const panel = (name, title, note, ...children) =>
  h("section", { class: `flash-panel flash-${name}` }, h("header", {}, h("h3", {}, title), note), ...children);

/**
 * The first line of a widget: what it is, in plain words, and, in `now`, what it currently shows.
 * @param {string} title
 */
export function headline(title) {
  const now = h("span", { class: "flash-headline-now" });
  const what = h("b", { role: "heading", "aria-level": "2" }, typeset(title)); // above those of panels
  return { element: h("p", { class: "flash-headline" }, what, now), what, now };
}

/**
 * Set the text of an element; an existing text node is reused, since laying out a new one takes longer.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  text = say(text);
  const { firstChild, lastChild } = element;
  if (firstChild !== lastChild || !(firstChild instanceof Text)) element.textContent = text;
  else if (firstChild.data !== text) firstChild.data = text;
}

/**
 * Set an attribute if it differs: setting the same value again costs the browser nearly as much as a new one.
 * @param {Element} element
 * @param {string} name
 * @param {string} value
 */
export function put(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

const NAMES =
  /(?<![\w.])((?:d?[QKVSPO]|[mlxBTN]|lse|delta|alpha)_(?:ij|i|j|acc,old|acc|old|r|c|q|k|a|b|s|\d+)|d?[QKVSPO]|[mlNd]|lse|alpha|delta)(\^T)?(?![\w(])/g;

/**
 * A sentence or an equation with its names set as symbols, "O_acc", "K_j^T", "m", powers, and `code`, typed like this.
 * @param {string} text
 */
export function typeset(text) {
  return say(text).split(/`([^`]+)`/).flatMap((part, k) => (k % 2 ? h("code", {}, part) : withSymbols(part)));
}

/** @param {string} text */
function withSymbols(text) {
  const nodes = [];
  let end = 0;
  for (const { 0: all, 1: name, 2: transposed, index } of text.matchAll(NAMES)) {
    nodes.push(...powers(text.slice(end, index)), symbol(name));
    if (transposed) nodes.push(h("sup", {}, "T"));
    end = index + all.length;
  }
  return [...nodes, ...powers(text.slice(end))];
}

/**
 * A text with its powers, such as 10^-3, as superscripts; the caret is invisible, but read aloud.
 * @param {string} text
 */
function powers(text) {
  return text.split(/\^(-?\w+(?:\.\d+)?|\([^()]*\))/).map((part, k) =>
    k % 2 ? h("sup", {}, h("span", { class: "flash-caret" }, "^"), part) : part,
  );
}

/**
 * Set a sentence with its symbols; `element.flashText` keeps the plain text, which can be spoken.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function setSentence(element, text) {
  if (element.flashText === text) return;
  element.flashText = text;
  element.replaceChildren(...typeset(text));
}
