// The bar at the bottom of the window: the progress of Python, and a way to stop it.

const PATIENCE_FOR_BAR = 700; // milliseconds until it says that something runs

/** @param {number} bytes */
export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

export class Bar {
  /** @param {() => void} stop */
  constructor(stop) {
    this.words = document.createElement("span");
    this.words.setAttribute("role", "status");
    this.amount = document.createElement("span");
    this.amount.ariaHidden = "true"; // screen readers hear the meter
    this.meter = document.createElement("progress");
    this.meter.setAttribute("aria-label", "download of Python");
    this.button = Object.assign(document.createElement("button"), { type: "button", textContent: "Stop" });
    this.button.addEventListener("click", stop);
    this.root = Object.assign(document.createElement("div"), { className: "python-bar", hidden: true });
    this.root.append(this.words, this.amount, this.meter, this.button);
    document.body.append(this.root);
  }

  /** @param {string} words @param {any} [more] done, all: bytes; stops: whether it can be stopped; after: milliseconds */
  show(words, { done, all, stops = false, after = 0 } = {}) {
    clearTimeout(this.timer);
    const now = () => {
      this.root.hidden = false;
      if (this.words.textContent !== words) this.words.textContent = words;
      this.meter.hidden = all === undefined;
      this.amount.textContent = all === undefined ? "" : `${megabytes(done)} of ${megabytes(all)} MB`;
      if (all !== undefined) Object.assign(this.meter, { max: all, value: done });
      this.button.hidden = !stops;
    };
    if (after && this.root.hidden) this.timer = setTimeout(now, after);
    else now();
  }

  hide() {
    clearTimeout(this.timer);
    this.root.hidden = true;
  }

  /**
   * Show a state of Python.
   * @param {any} state as Python reports it
   * @param {boolean} isAtWork
   */
  tell({ kind, done, all, words }, isAtWork) {
    if (kind === "fetching" && done === all) this.show("Python has arrived and is starting.");
    else if (kind === "fetching") this.show("Downloading Python, once.", { done, all, stops: true });
    else if (kind === "starting") this.show("Python is starting.", { stops: true });
    else if (kind === "lost") this.show(`${words} Try again.`);
    else if (isAtWork) this.show("Python is running.", { stops: true, after: PATIENCE_FOR_BAR });
    else this.hide();
  }
}
