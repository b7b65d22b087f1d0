// Which keys a widget takes, and which it leaves to the control in focus.

import assert from "node:assert/strict";
import test from "node:test";

import { listenToKeys } from "../../../flashlib/widgets/shared/keys.js";

/** A stand-in for an element: it matches the selectors that name it. */
const control = (...names) => ({ matches: (selectors) => selectors.split(", ").some((one) => names.includes(one)) });
const PLAIN = control("div");
const BUTTON = control("button");
const SLIDER = control("input", "input[type=range]");
const CHOICE = control("input", "input[type=radio]");
const LIST = control("select");
const TEXT = control("textarea");

/** Press a key on a control; return whether the widget took it, and whether JupyterLab hears of it. */
function press(target, key, held = {}) {
  let listener, taken = 0, heard = true, scrolls = true;
  const root = { addEventListener: (_, f) => (listener = f), removeEventListener: () => (listener = undefined) };
  const stop = listenToKeys(root, { " ": () => taken++, ArrowLeft: () => taken++, Enter: () => taken++ });
  listener({ key, target, ...held, stopPropagation: () => (heard = false), preventDefault: () => (scrolls = false) });
  assert.equal(scrolls, taken === 0);
  stop();
  assert.equal(listener, undefined);
  return [taken, heard];
}

test("the space bar plays wherever it means nothing else", () => {
  for (const target of [PLAIN, SLIDER, CHOICE]) assert.deepEqual(press(target, " "), [1, false]);
  for (const target of [BUTTON, LIST, TEXT]) assert.deepEqual(press(target, " "), [0, false]);
});

test("arrows step, except in a control that uses them", () => {
  for (const target of [PLAIN, BUTTON]) assert.deepEqual(press(target, "ArrowLeft"), [1, false]);
  for (const target of [SLIDER, CHOICE, LIST, TEXT]) assert.deepEqual(press(target, "ArrowLeft"), [0, false]);
});

test("keys without an action are kept from JupyterLab, and keys pressed with Ctrl or Alt are left to it", () => {
  assert.deepEqual(press(PLAIN, "d"), [0, false]);
  for (const held of ["ctrlKey", "altKey", "metaKey"]) assert.deepEqual(press(PLAIN, " ", { [held]: true }), [0, true]);
  assert.deepEqual(press(PLAIN, "Enter", { shiftKey: true }), [0, true]);
  assert.deepEqual(press(PLAIN, "Enter"), [1, false]);
});
