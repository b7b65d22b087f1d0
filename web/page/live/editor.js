// An editor for Python: a text field that indents and releases the keyboard, over its text in colours, and keys for it.

import { colouredLines } from "./colours.js";
import { keysFor, showCaret } from "./keys.js";

const STEP = "    ";

/** Replace all text of a field; this can be undone. @param {HTMLTextAreaElement} field @param {string} text */
export function rewrite(field, text) {
  field.focus();
  field.select();
  insert(field, text);
}

/** @param {HTMLTextAreaElement} field @param {string} text replaces the selection, so that this can be undone */
function insert(field, text) {
  const isActive = document.activeElement === field; // not if it is folded away
  if (isActive && document.execCommand("insertText", false, text)) return;
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input"));
}

/** Indent or unindent the selected lines. */
function shift(field, back) {
  const { value, selectionStart, selectionEnd } = field;
  const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
  if (selectionStart === selectionEnd && !back && !value.slice(start, selectionEnd).trim()) {
    insert(field, STEP);
    return;
  }
  const lines = value.slice(start, selectionEnd).split("\n");
  const moved = lines.map((line) => (back ? line.replace(/^ {1,4}/, "") : line && STEP + line)).join("\n");
  field.setSelectionRange(start, selectionEnd);
  insert(field, moved);
  field.setSelectionRange(lines.length > 1 ? start : start + moved.length, start + moved.length);
}

/** Start a new line with the indent of the one above, and more after a colon. */
function breakLine(field) {
  const above = field.value.slice(field.value.lastIndexOf("\n", field.selectionStart - 1) + 1, field.selectionStart);
  insert(field, `\n${above.match(/^ */)?.[0] ?? ""}${above.trimEnd().endsWith(":") ? STEP : ""}`);
}

const STRAIGHT = { "“": '"', "”": '"', "‘": "'", "’": "'" }; // some phones write the others by themselves

/**
 * @param {string} text
 * @param {string} label
 * @param {() => void} run called for Shift or Ctrl with Enter; for a single line, for Enter without Shift
 * @param {{ isLine?: boolean }} [options] whether it is a single line, next to a button that runs it
 */
export function editor(text, label, run, { isLine = false } = {}) {
  const field = document.createElement("textarea");
  Object.assign(field, { className: "editor", value: text, spellcheck: false, ariaLabel: label, rows: 1 });
  field.title = `${isLine ? "Enter" : "Shift+Enter"} runs it. Tab indents; after Escape, Tab moves on.`;
  if (isLine) field.enterKeyHint = "go";
  for (const name of ["autocapitalize", "autocomplete", "autocorrect"]) field.setAttribute(name, "off");
  const ink = Object.assign(document.createElement("div"), { className: "ink", ariaHidden: "true" });
  const paint = () => ink.replaceChildren(...colouredLines(field.value));
  let leaves = false; // after Escape, Tab goes on to the next control
  field.addEventListener("input", () => {
    paint();
    if (document.activeElement === field) showCaret(field);
  });
  field.addEventListener("blur", () => (leaves = false));
  field.addEventListener("keydown", (event) => {
    const { key, shiftKey, ctrlKey, metaKey } = event;
    if (key === "Escape") leaves = true;
    else if (key === "Tab" && !leaves) {
      event.preventDefault();
      shift(field, shiftKey);
    } else if (key === "Enter" && (shiftKey !== isLine || ctrlKey || metaKey)) {
      event.preventDefault();
      run();
    }
  });
  field.addEventListener("beforeinput", (event) => {
    const straight = STRAIGHT[event.data ?? ""];
    if (event.inputType !== "insertLineBreak" && !straight) return;
    event.preventDefault();
    if (straight) insert(field, straight);
    else breakLine(field);
  });
  paint();
  const sheet = Object.assign(document.createElement("div"), { className: "sheet" });
  sheet.append(ink, field);
  const element = Object.assign(document.createElement("div"), { className: "typing" });
  const keys = keysFor(field, (sign) => insert(field, sign), (back) => shift(field, back), isLine ? undefined : run);
  element.append(sheet, keys);
  return { element, field };
}
