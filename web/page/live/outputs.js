// What a cell prints, shows and raises, as in a notebook.

import { keep } from "../kept.js";
import { playFrom } from "../play.js";

/** @param {string} text @param {string} kind */
export function printed(text, kind) {
  const pre = document.createElement("pre");
  Object.assign(pre, { className: `output ${kind}`, tabIndex: 0, ariaLabel: kind === "raises" ? "error" : "output" });
  pre.setAttribute("role", "group");
  pre.textContent = text.replace(/\n$/, "");
  return pre;
}

/** @param {string} text */
export function note(text) {
  return Object.assign(document.createElement("p"), { className: "note", textContent: text });
}

/** Show the stored pictures of a cell for those that its code would draw: nothing draws on a page. */
function drawn(count, pictures, isChanged) {
  const found = pictures.splice(0, count).map((picture) => picture.cloneNode(true));
  if (!found.length) return [note("Pictures are not drawn on these pages.")];
  return isChanged ? [...found, note("The picture as it was stored: pictures are not drawn on these pages.")] : found;
}

/** Record the verdict on an answer as progress. */
function take({ exercise, outcome }) {
  if (outcome !== "right") return;
  keep(({ solved }) => void (solved[exercise] ??= new Date().toISOString().slice(0, 10)));
}

/**
 * Show the outputs of a cell in its place.
 * @param {Element} place
 * @param {any[]} outputs
 * @param {{ pictures: Element[], isChanged: boolean, python: any, cell: string }} told
 */
export async function showOutputs(place, outputs, { pictures, isChanged, python, cell }) {
  const left = [...pictures];
  const parts = [];
  const widgets = [];
  for (const one of outputs) {
    if (one.verdict) take(one.verdict);
    if (one.kind === "picture") parts.push(...drawn(one.count, left, isChanged));
    else if (one.kind === "widget") {
      const widget = Object.assign(document.createElement("div"), { className: "widget" });
      widgets.push([widget, one]);
      parts.push(widget);
    } else if (one.html) {
      parts.push(Object.assign(document.createElement("div"), { className: "made", innerHTML: one.html }));
    } else if (one.text) parts.push(printed(one.text, one.kind));
  }
  place.replaceChildren(...parts);
  for (const [widget, one] of widgets) await playFrom(python, cell, widget, one);
}
