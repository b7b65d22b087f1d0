// What every widget does.

/** True on a page saved with the state of its widgets: it plays, but no Python answers there. */
const isSaved = () => document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]') !== null;

/**
 * A widget on the page. A subclass puts its elements into `root`, calls `start`, and has `load`, which takes what
 * Python sent, `paint`, which takes the colours of the theme, and `draw`.
 */
class Widget {
  constructor({ model, el }, name, label) {
    this.model = model;
    this.root = div(`flash-widget flash-${name}`);
    Object.assign(this.root, { tabIndex: 0, role: "group", ariaLabel: label });
    this.root.flashWidget = this; // for tests and for the curious
    this.spoken = announcer();
    this.busy = h("span", { class: "flash-note", role: "status" });
    this.stops = [this.spoken.stop, () => clearTimeout(this.waiting)];
    el.append(this.root);
  }

  /** Controls that Python answers. They are off on a saved page, which says so. */
  settings(...controls) {
    const off = isSaved();
    if (off) setText(this.busy, "A saved page: it plays, but to change a setting, run the notebook.");
    return h("fieldset", { class: "flash-controls flash-settings", disabled: off }, controls, this.busy);
  }

  /** Ask Python for other settings, and say so if it does not answer: there may be no kernel, or a busy one. */
  ask(settings) {
    const changed = Object.entries(settings).filter(([name, value]) => this.model.get(name) !== value);
    if (!changed.length) return;
    for (const [name, value] of changed) this.model.set(name, value);
    this.model.save_changes();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => setText(this.busy, "Waiting for Python, which computes what is shown."), 1500);
  }

  /** Show what Python has sent in the trait `name`, now and whenever it sends another, and listen to the keys. */
  start(name, keys = {}) {
    const problem = this.model.get("problem");
    if (problem) return this.root.replaceChildren(h("p", { class: "flash-problem", role: "alert" }, problem));
    const answered = () => {
      clearTimeout(this.waiting);
      if (!isSaved()) setText(this.busy, this.model.get("refused"));
    };
    const loaded = () => {
      answered();
      this.load(this.model.get(name));
      this.root.dataset.loads = Number(this.root.dataset.loads ?? 0) + 1;
    };
    this.root.append(this.spoken.element);
    this.hear(name, loaded);
    this.hear("refused", answered);
    this.stops.push(
      listenToKeys(this.root, keys),
      watchTheme(this.root, () => {
        this.paint();
        this.draw();
      }),
    );
    loaded();
  }

  hear(name, changed) {
    this.model.on(`change:${name}`, changed);
    this.stops.push(() => this.model.off(`change:${name}`, changed));
  }

  stop() {
    this.stops.forEach((stop) => stop());
  }
}
