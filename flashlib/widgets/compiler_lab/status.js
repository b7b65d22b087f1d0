// What the compiler is doing, and what can be done about it.

/** @import { Work } from "./types.js" */
import { div, h, setSentence, setText } from "../shared/elements.js";

/**
 * A line: "Compiling ... 3 s", why it failed, that it was cancelled, or how long it took. `doing` has the actions of its
 * buttons: cancel, again, back (to the settings of the result); `lost` says whether Python no longer answers.
 */
export class Status {
  /** @type {number | undefined} */
  counting;

  /**
   * @param {Record<"cancel" | "again" | "back", () => void>} doing
   * @param {() => boolean} lost
   */
  constructor(doing, lost) {
    this.lost = lost;
    this.words = h("span", { role: "status" });
    this.seconds = h("span", { class: "flash-compiler-seconds", "aria-hidden": "true" }); // not announced every second
    const button = (name, label) => {
      const look = { type: "button", class: "flash-button flash-text flash-asks" };
      return h("button", { ...look, "data-name": name, onclick: doing[name] }, label);
    };
    this.buttons = {
      cancel: button("cancel", "Cancel"),
      again: button("again", "Try again"),
      back: button("back", "Go back"),
    };
    this.element = div("flash-compiler-status", h("p", {}, this.words, this.seconds), Object.values(this.buttons));
  }

  /**
   * work: what Python sent. fresh: whether it was sent just now. there: whether a result is shown.
   * @param {Work} work
   * @param {boolean} fresh
   * @param {boolean} there
   */
  show(work, fresh, there) {
    clearInterval(this.counting);
    this.element.dataset.state = work.state;
    setSentence(this.words, this.#sentence(work));
    setText(this.seconds, "");
    if (work.state === "compiling") this.#count(fresh ? 0 : Math.max(0, Date.now() / 1000 - work.started));
    const useful = { cancel: ["compiling"], again: ["cancelled"], back: there ? ["failed", "cancelled"] : [] };
    for (const [name, button] of Object.entries(this.buttons)) {
      const held = button === document.activeElement;
      button.hidden = !useful[name].includes(work.state);
      /** @type {HTMLElement | null} */
      const widget = button.closest(".flash-widget");
      if (held && button.hidden) widget?.focus(); // else JupyterLab gets the keys
    }
  }

  /** @param {Work} work */
  #sentence({ state, words, why, took }) {
    const time = `${took.toFixed(took < 9.95 ? 1 : 0)} s`;
    if (state === "compiling") return `Compiling ${words}`;
    if (state === "failed") return `▲ ${words}: ${why}`;
    if (state === "cancelled") return `Cancelled: ${words}`;
    return took < 0.1 ? "Compiled earlier, and kept." : `Compiled in ${time}.`;
  }

  /** Count seconds on this page's clock: that of Python's computer may differ. */
  #count(seconds) {
    const started = performance.now() - 1000 * seconds;
    const tick = () => {
      if (this.lost()) return this.#end();
      setText(this.seconds, `${Math.floor((performance.now() - started) / 1000)} s`);
    };
    this.counting = setInterval(tick, 250);
    tick();
  }

  /** Python was restarted, or the page was saved, during compilation. */
  #end() {
    this.stop();
    setText(this.seconds, "");
    setSentence(this.words, "The compilation did not finish.");
  }

  stop() {
    clearInterval(this.counting);
  }
}
