// The base of every widget.

/** @import { Transport } from "./transport.js" */
import { watchTheme } from "./colours.js";
import { div, h, setText } from "./elements.js";
import { announcer, listenToKeys } from "./keys.js";

const NARROW_WIDGET = 560; // px: see narrow.css
const RESTARTED = "Python was restarted: run the cell again to change a setting.";
const SAVED = "To change a setting, run the notebook.";
const PATIENCE = 5; // seconds to wait for an idle Python that does not answer

/** True on a page saved with the state of its widgets, where no Python answers. */
export const isSaved = () => document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]') !== null;

/**
 * The state of Python, in Jupyter's words; "gone" if it was shut down, undefined if the page does not know.
 * @param {Model<any>} model
 */
function statusOfPython({ widget_manager }) {
  if (!widget_manager || !("kernel" in widget_manager)) return undefined;
  return widget_manager.kernel?.status ?? "gone";
}

/**
 * What is to stay in view while the notebook scrolls must not be in a box that scrolls by itself, as all of JupyterLab's
 * around an output do, or could; the boxes of one that the learner made scroll remain.
 * @param {HTMLElement} element
 * @param {boolean} stays
 */
function letStay(element, stays) {
  const cell = element.closest(".jp-Cell:not(.jp-mod-outputsScrolled)");
  for (let box = element.parentElement; cell && box && box !== cell; box = box.parentElement)
    box.style.overflow = stays ? "visible" : "";
}

/**
 * A widget on the page. A subclass puts its elements into `root`, calls `start`, and has `load`, which takes what Python
 * sent, `paint`, which takes the colours of the theme, and `draw`.
 * @template {SharedTraits} Traits
 */
export class Widget {
  /** @type {number | undefined} */
  waiting;
  /** @type {keyof Traits} */
  shown;
  /** @type {Transport | undefined} of a widget that plays */
  transport;
  /** @type {any} what was loaded last */
  #sent = null;

  /**
   * @param {Context<Traits>} context
   * @param {string} name
   * @param {string} label
   */
  constructor({ model, el }, name, label) {
    this.model = model;
    this.el = el;
    this.off = false; // whether controls that need Python are disabled
    this.root = div(`flash-widget flash-${name}`);
    Object.assign(this.root, { tabIndex: 0, role: "group", ariaLabel: label });
    this.root.flashWidget = this; // for tests and for the curious
    this.spoken = announcer();
    this.busy = h("span", { class: "flash-note", role: "status" });
    /** @type {Record<string, any>} the settings before the pending request */
    this.before = {};
    /** @type {(() => void)[]} */
    this.stops = [this.spoken.stop, () => clearInterval(this.waiting)];
    el.append(this.root);
  }

  /**
   * Take what Python sent. A player chooses its position the first time, and then keeps it.
   * @param {any} _sent
   */
  load(_sent) {}

  /** Take the colours of the theme. */
  paint() {}

  draw() {}

  /**
   * Controls to which Python responds, and the line for messages about it.
   * @param {...any} controls
   */
  settings(...controls) {
    return h("fieldset", { class: "flash-controls flash-settings" }, controls, this.busy);
  }

  /**
   * Request different settings from Python.
   * @param {Partial<Traits>} settings
   */
  ask(settings) {
    /** @type {Model<any>} */
    const model = this.model; // any name
    const changed = Object.entries(settings).filter(([name, value]) => model.get(name) !== value);
    if (this.off || !changed.length) return;
    for (const [name, value] of changed) {
      if (!(name in this.before)) this.before[name] = model.get(name);
      model.set(name, value);
    }
    model.set("asked", model.get("asked") + 1);
    model.save_changes();
    this.#wait();
  }

  /** Until Python has answered, show its state; once it is known not to answer, disable the controls that need it. */
  #wait() {
    clearInterval(this.waiting);
    let idle = 0; // seconds
    const look = () => {
      const status = statusOfPython(this.model);
      idle = status === "idle" ? idle + 1 : 0;
      if (status === "gone" || status === "dead" || idle >= PATIENCE) this.#lose();
      else if (status === undefined) setText(this.busy, "Waiting for Python. If it was restarted, run the cell again.");
      else setText(this.busy, status === "busy" ? "Waiting for Python, which is busy." : "Waiting for Python.");
    };
    this.waiting = setInterval(look, 1000);
    if (statusOfPython(this.model) === "gone") look();
  }

  /** Python no longer knows this widget: say so, and revert requests that were not answered. */
  #lose() {
    /** @type {Model<any>} */
    const model = this.model;
    const asked = Object.entries(this.before);
    for (const [name, value] of asked) model.set(name, value);
    if (asked.length) this.load(this.model.get(this.shown));
    this.#switch(RESTARTED);
  }

  /** Disable the controls that need Python and say why, or enable them if why is "". */
  #switch(why) {
    clearInterval(this.waiting);
    setText(this.busy, why || this.model.get("refused"));
    if (this.off === (why !== "")) return;
    this.off = !this.off;
    const held = document.activeElement;
    /** @type {NodeListOf<HTMLFieldSetElement | HTMLButtonElement>} */
    const controls = this.root.querySelectorAll(".flash-settings, .flash-asks");
    for (const control of controls) control.disabled = this.off;
    if (held && this.root.contains(held) && held.matches(":disabled")) this.root.focus(); // else JupyterLab gets the keys
    this.root.classList.toggle("flash-off", this.off);
    this.switched();
  }

  /** The controls that need Python were disabled or enabled. */
  switched() {}

  /** Disable controls, if there are any, that Python will never answer: of a saved page, or a reopened notebook. */
  #begin() {
    const alone = this.el.classList.contains("jupyter-widgets-disconnected");
    this.el.classList.remove("jupyter-widgets-disconnected"); // the class would draw a broken chain
    const asks = this.root.querySelector(".flash-settings :is(button, input, select), .flash-asks");
    if (asks) this.#switch(isSaved() && !this.model.answers ? SAVED : alone ? RESTARTED : "");
  }

  /** If another page with the same Python sent the request, only the answer says what it set. */
  #follow() {
    const heard = this.model.get("heard");
    if (heard <= this.model.get("asked")) return;
    /** @type {Model<any>} */
    const model = this.model; // any name
    const sent = model.get(this.shown);
    const isNew = sent !== this.#sent; // else the request was refused, and nothing was set
    for (const [name, value] of Object.entries((isNew && sent.setting) || {})) model.set(name, value);
    model.set("asked", heard);
  }

  /**
   * Show what Python sent in the trait `name`, now and whenever it changes, and listen to the keys.
   * @param {string & keyof Traits} name
   * @param {Record<string, () => void>} keys
   */
  start(name, keys = {}) {
    const problem = this.model.get("problem");
    if (problem) {
      this.root.removeAttribute("tabindex"); // nothing in it reacts to keys
      this.root.replaceChildren(h("p", { class: "flash-problem", role: "alert" }, problem));
      return;
    }
    this.shown = name;
    const loaded = () => {
      this.#follow();
      this.#sent = this.model.get(name);
      this.load(this.#sent);
      this.root.dataset.loads = String(Number(this.root.dataset.loads ?? 0) + 1);
    };
    const heard = () => {
      this.#follow();
      if (this.model.get("heard") !== this.model.get("asked")) return;
      this.before = {};
      this.#switch("");
    };
    this.root.append(this.spoken.element);
    this.#watchWidth();
    this.hear(name, loaded);
    this.hear("heard", heard);
    this.hear("refused", () => this.off || setText(this.busy, this.model.get("refused")));
    this.#on("comm_live_update", () => this.#lose()); // Jupyter's event for a restarted kernel
    this.stops.push(
      listenToKeys(this.root, keys),
      watchTheme(this.root, () => {
        if (!this.root.dataset.loads) return; // there is nothing to draw yet
        this.paint();
        this.draw();
      }),
    );
    loaded();
    this.#begin();
  }

  /** A narrow widget is high: its transport moves out of its header, and stays in view. */
  #watchWidth() {
    const row = this.transport?.element;
    const home = row?.parentElement;
    const header = [...this.root.children].find((part) => row && part.contains(row));
    const observer = new ResizeObserver(([{ contentRect }]) => {
      const isNarrow = contentRect.width > 0 && contentRect.width < NARROW_WIDGET;
      if (isNarrow === this.root.classList.contains("flash-narrow")) return;
      this.root.classList.toggle("flash-narrow", isNarrow);
      if (!row) return;
      if (isNarrow) header?.after(row);
      else home?.prepend(row);
      letStay(this.el, isNarrow);
    });
    observer.observe(this.root);
    this.stops.push(() => observer.disconnect());
  }

  /** @param {string} name @param {() => void} changed */
  hear(name, changed) {
    this.#on(`change:${name}`, changed);
  }

  /** @param {string} event @param {() => void} listener */
  #on(event, listener) {
    this.model.on(event, listener);
    this.stops.push(() => this.model.off(event, listener));
  }

  stop() {
    this.stops.forEach((stop) => stop());
    this.root.remove(); // JupyterLab keeps its container as long as the kernel lives
  }
}
