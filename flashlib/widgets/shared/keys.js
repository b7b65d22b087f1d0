// Keyboard and speech.

import { h, setText } from "./elements.js";

/**
 * Keys work anywhere in the widget, except those that the focused control uses itself. Keys pressed with Ctrl, Alt or Meta
 * belong to JupyterLab, and so does Shift with Enter, which runs the cell. Returns a function that stops this.
 * @param {HTMLElement} root
 * @param {Record<string, () => void>} actions by the name of the key
 */
export function listenToKeys(root, actions) {
  /** @param {Element} target @param {string} key */
  const native = (target, key) => {
    if (target.matches("textarea, input[type=text]")) return true;
    if (target.matches("select, input[type=radio]")) return key !== " " || target.matches("select");
    if (target.matches("input[type=range]")) return key !== " ";
    return key === " " && target.matches("button, input");
  };
  /** @param {KeyboardEvent} event */
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key === "Enter")) return;
    event.stopPropagation(); // else JupyterLab takes it for a command: d d deletes the cell
    if (!(event.key in actions) || native(/** @type {Element} */ (event.target), event.key)) return;
    event.preventDefault(); // the page would scroll
    actions[event.key]();
  };
  root.addEventListener("keydown", pressed);
  return () => root.removeEventListener("keydown", pressed);
}

/** A line for screen readers. Texts within `wait` ms of the last announcement are held back; the newest is announced. */
export function announcer(wait = 1500) {
  const element = h("div", { class: "flash-spoken", "aria-live": "polite" });
  let last = 0;
  /** @type {number | undefined} */
  let timer;
  /** @param {string} text */
  const say = (text) => {
    clearTimeout(timer);
    const speak = () => {
      last = performance.now();
      setText(element, text);
    };
    const left = last + wait - performance.now();
    if (left <= 0) speak();
    else timer = setTimeout(speak, left);
  };
  return { element, say, stop: () => clearTimeout(timer) };
}
