// Linked names: a name that is pointed at, or in focus, is highlighted everywhere: in words, cells, equations, code.

/** @typedef {(symbol: string) => void} Show */

const NAMED = "[data-symbol], td[data-name], .flash-matrix[data-name]";

/**
 * Where a name appears: among the rows of a table only in the described one.
 * @param {string} name
 */
const places = (name) =>
  [
    `[data-symbol="${name}"]`,
    `tr[aria-current] td[data-name="${name}"]`,
    `.flash-matrix[data-name="${name}"]:not(.flash-rows tr:not([aria-current]) *)`,
  ].join();

/**
 * The name at the target of an event, or null.
 * @param {EventTarget | null} target
 */
function nameOf(target) {
  const element = /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest(NAMED) : null);
  return element?.dataset.symbol ?? element?.dataset.name ?? null;
}

export class Links {
  /**
   * @param {HTMLElement} root
   * @param {(name: string | null) => void} changed
   */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    /** @type {string | null} */
    this.name = null;
    const listen = (events, heard) => events.forEach((event) => root.addEventListener(event, heard));
    listen(["pointerover", "focusin"], ({ target }) => this.#light(nameOf(target)));
    listen(["pointerleave", "focusout"], () => this.#light(null));
  }

  /** @param {string | null} name */
  #light(name) {
    if (this.name === name) return;
    this.name = name;
    this.show();
  }

  /** Highlight everything with the name; called again when the page has changed. */
  show() {
    for (const element of this.root.querySelectorAll(".flash-linked")) element.classList.remove("flash-linked");
    const found = this.name && /^\w+$/.test(this.name) ? [...this.root.querySelectorAll(places(this.name))] : [];
    if (found.length > 1) for (const element of found) element.classList.add("flash-linked");
    this.changed(found.length > 1 ? this.name : null);
  }
}
