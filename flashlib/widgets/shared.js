// What the widgets of the course share. Python puts this text before the widget's own file,
// so nothing is exported.

// ---- elements

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const div = (name, ...children) => h("div", { class: name }, ...children);

const note = (...children) => h("span", { class: "flash-note" }, ...children);

/** A name such as "B_r" or "Q_i" as an element, with what follows the underscore set lower. */
function symbol(name) {
  const [letter, index] = name.split("_");
  return h("span", { class: "flash-symbol" }, letter, index && h("sub", {}, index));
}

const panel = (name, title, note, ...children) =>
  h("section", { class: `flash-panel flash-${name}` }, h("header", {}, h("h3", {}, title), note), ...children);

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// ---- numbers

const between = (low, x, high) => Math.max(low, Math.min(high, x));

const tidy = (text) => text.replace("e+", "e").replaceAll("-", "−");

/** x to four significant digits: 1.950, −0.01234, 1.234e−7, −∞; 0 and other small whole numbers as they are. */
function number(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x > 0 ? "∞" : "−∞";
  if (Number.isInteger(x) && Math.abs(x) < 1e4) return tidy(String(x));
  return tidy(Math.abs(x) < 1e-4 ? x.toExponential(3) : x.toPrecision(4));
}

/** x in at most five characters, where space is short: 1.95, −12.3, 1e−7. */
function short(x) {
  if (!Number.isFinite(x)) return number(x);
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < 0.005 || size >= 9999.5) return tidy(x.toExponential(0));
  return tidy(x.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0));
}

/** x with every digit that tells it from its neighbours. */
const exact = (x) => (Number.isFinite(x) ? tidy(String(x)) : number(x));

// ---- colours

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/**
 * The diverging scale of the theme: from x and the largest size that x may have to a colour, as `css` or as the
 * `pixel` of an image. Sizes are taken to the power 0.7, so that small ones can be told apart.
 */
function colourScale(root) {
  const style = getComputedStyle(root);
  const [negative, zero, positive, masked] = ["negative", "zero", "positive", "masked"].map((name) =>
    rgb(style.getPropertyValue(`--flash-${name}`).trim()),
  );
  const colours = Array.from({ length: 257 }, (_, k) => {
    const t = (k - 128) / 128;
    const end = t < 0 ? negative : positive;
    return zero.map((z, c) => Math.round(z + Math.abs(t) ** 0.7 * (end[c] - z)));
  });
  colours.push(masked);
  const css = colours.map((colour) => `rgb(${colour.join(",")})`);
  const pixels = colours.map(([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  const index = (x, peak) =>
    Number.isFinite(x) ? 128 + Math.round(128 * Math.max(-1, Math.min(1, x / (peak || 1)))) : 257;
  return { css: (x, peak) => css[index(x, peak)], pixel: (x, peak) => pixels[index(x, peak)] };
}

/**
 * Mark the root as dark or light once it is on the page, and whenever the theme changes; `changed` is called then.
 * Returns a stop.
 */
function watchTheme(root, changed) {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  let dark = null;
  const look = () => {
    if (!root.isConnected) return; // it has no colours yet
    canvas.fillStyle = getComputedStyle(root).backgroundColor;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    const isDark = 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
    if (isDark === dark) return;
    dark = isDark;
    root.classList.toggle("flash-dark", dark);
    changed();
  };
  const observer = new MutationObserver(() => setTimeout(look, 50)); // the style sheet follows the attribute
  observer.observe(document.body, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  const shown = new ResizeObserver(look); // tells when the root comes onto the page
  shown.observe(root);
  return () => {
    observer.disconnect();
    shown.disconnect();
    system.removeEventListener("change", look);
  };
}

// ---- transport: first, back, play, forward, last, scrub, speed

const ICONS = {
  first: "M3 3v10M13 3L6 8l7 5z",
  back: "M11 3L4 8l7 5z",
  play: "M4 2.5v11L13 8z",
  pause: "M5 3v10M11 3v10",
  forward: "M5 3l7 5-7 5z",
  last: "M13 3v10M3 3l7 5-7 5z",
};

const SPEEDS = [0.5, 1, 2, 5, 10, 30, 60]; // steps a second

/**
 * Buttons, a scrub bar and a speed over positions 0 .. last. `moved(position)` is called whenever it changes.
 * It goes from one position to the next without anything in between: there is no motion to reduce.
 */
class Transport {
  constructor({ unit, moved }) {
    this.moved = moved;
    this.position = this.last = 0;
    this.frame = null;
    const button = (name, label, press) =>
      h(
        "button",
        {
          type: "button",
          class: `flash-button flash-${name}`,
          "aria-label": label,
          title: label,
          onclick: press,
        },
        svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] })),
      );
    this.playButton = button("play", "play (space)", () => this.toggle());
    this.scrub = h("input", {
      type: "range",
      class: "flash-scrub",
      min: 0,
      "aria-label": unit,
      oninput: () => this.seek(Number(this.scrub.value)),
    });
    this.speed = h(
      "select",
      { class: "flash-speed", "aria-label": `${unit}s per second` },
      SPEEDS.map((speed) =>
        h("option", { value: speed, selected: speed === 2 }, `${speed} ${unit}${speed === 1 ? "" : "s"}/s`),
      ),
    );
    this.buttons = h(
      "div",
      { class: "flash-buttons", role: "group", "aria-label": "playing" },
      button("first", "first (Home)", () => this.seek(0)),
      button("back", "back (left arrow)", () => this.step(-1)),
      this.playButton,
      button("forward", "forward (right arrow)", () => this.step(1)),
      button("last", "last (End)", () => this.seek(this.last)),
    );
  }

  get playing() {
    return this.frame !== null;
  }

  reset(last) {
    this.last = last;
    this.scrub.max = last;
    this.#go(0);
  }

  /** Go to a position and stay there. */
  seek(position) {
    this.pause();
    this.#go(position);
  }

  step(by) {
    this.seek(this.position + by);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.position === this.last) this.#go(0);
    let due = performance.now();
    const tick = (now) => {
      const wait = 1000 / Number(this.speed.value);
      if (now - due >= wait - 2) {
        due = now - due > 2 * wait ? now : due + wait; // after a pause of the page: go on, do not catch up
        this.#go(this.position + 1);
        if (this.position === this.last) return this.pause();
      }
      this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
    this.#showPlaying();
  }

  pause() {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
    this.frame = null;
    this.#showPlaying();
  }

  #showPlaying() {
    const name = this.playing ? "pause" : "play";
    this.playButton.querySelector("path").setAttribute("d", ICONS[name]);
    this.playButton.setAttribute("aria-label", `${name} (space)`);
    this.playButton.title = `${name} (space)`;
    this.playButton.dataset.playing = this.playing;
  }

  #go(position) {
    this.position = Math.max(0, Math.min(this.last, position));
    this.scrub.value = this.position;
    this.moved(this.position);
  }
}

// ---- other controls

function slider(name, label, input) {
  const range = h("input", {
    type: "range",
    "aria-label": label,
    "data-name": name,
    oninput: () => input(Number(range.value)),
  });
  const output = h("output", { "aria-live": "off" });
  const element = h("label", { class: "flash-slider" }, symbol(name), range, output);
  const show = (value, [min, max] = [range.min, range.max]) => {
    Object.assign(range, { min, max }); // before the value, which they clamp
    range.value = value;
    range.disabled = Number(min) === Number(max);
    setText(output, String(value));
  };
  return { element, range, show };
}

function choice(name, label, options, change) {
  const group = `flash-${name}-${Math.random().toString(36).slice(2)}`;
  const inputs = options.map(([value]) =>
    h("input", { type: "radio", name: group, value, onchange: () => change(value) }),
  );
  const element = h(
    "fieldset",
    { class: "flash-choice", "aria-label": label },
    options.map(([, text, title], k) => h("label", { title }, inputs[k], h("span", {}, text))),
  );
  const show = (value) => inputs.forEach((input) => (input.checked = input.value === value));
  return { element, show };
}

function toggle(label, change) {
  const input = h("input", { type: "checkbox", onchange: () => change(input.checked) });
  return {
    element: h("label", { class: "flash-toggle" }, input, label),
    show: (value) => (input.checked = value),
  };
}

// ---- keyboard and speech

/** Keys work anywhere in the widget, except those that the control in focus uses itself. Returns a stop. */
function listenToKeys(root, actions) {
  const native = (target, key) => {
    if (target.matches("textarea, input[type=text]")) return true;
    if (target.matches("select, input[type=radio]")) return key !== " " || target.matches("select");
    if (target.matches("input[type=range]")) return key !== " ";
    return key === " " && target.matches("button, input");
  };
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation(); // else JupyterLab takes it for its notebook
    if (!(event.key in actions) || native(event.target, event.key)) return;
    event.preventDefault(); // the page would scroll
    actions[event.key]();
  };
  root.addEventListener("keydown", pressed);
  return () => root.removeEventListener("keydown", pressed);
}

/** A line for screen readers. What comes within `wait` ms of what was said last is held back; the newest is said. */
function announcer(wait = 1500) {
  const element = h("div", { class: "flash-spoken", "aria-live": "polite" });
  let [last, timer] = [0, null];
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

// ---- what every widget does

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
