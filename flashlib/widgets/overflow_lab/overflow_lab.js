// OverflowLab: exp, the sum and both softmaxes in a floating-point format, as computed by Python.

/** @import { Result, Traits } from "./types.js" */
import { choice, slider } from "../shared/controls.js";
import { div, h, headline, put, setSentence, setText, symbol, typeset } from "../shared/elements.js";
import { float64 } from "../shared/number_text.js";
import { Widget } from "../shared/widget.js";
import { Axis, marksLegend } from "./picture.js";
import { COLUMNS, Table } from "./table.js";

const REST = ["m", "l", "l_safe", "naive_total", "safe_total", "log_l", "log_l_safe"];
const DTYPES = [
  ["float16", "fp16", "float16: 5 bits of exponent, 10 of fraction"],
  ["bfloat16", "bf16", "bfloat16: 8 bits of exponent, 7 of fraction; PyTorch computes it"],
  ["float32", "fp32", "float32: 8 bits of exponent, 23 of fraction"],
  ["float64", "fp64", "float64: 11 bits of exponent, 52 of fraction"],
];
const THRESHOLDS = [
  ["positive", "l > 0 from", "go to the lowest x with l > 0"],
  ["sum", "l finite to", "go to the highest x with a finite sum l"],
  ["terms", "exp finite to", "go to the highest x with every exp(x_j) finite"],
];

/** @extends {Widget<Traits>} */
class OverflowLab extends Widget {
  /** @type {Result} */
  sent;
  /** @type {Record<string, any>} */
  columns;
  /** @type {Axis} */
  axis;
  /** @type {Table} */
  table;
  /** @type {number} */
  drawTime;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "overflow", "Where softmax overflows and underflows");
    this.dtype = choice("dtype", "dtype", DTYPES, (dtype) => this.ask({ dtype }));
    this.copies = slider("copies", "copies of the row, in powers of two", (k) => this.ask({ copies: 2 ** k }));
    this.copied = /** @type {HTMLOutputElement} */ (this.copies.element.querySelector("output"));
    this.words = ["naive", "safe"].map((name) => h("p", { "data-name": name }));
    this.x = h("b", {});
    this.neighbours = ["previous", "next"].map((name, k) =>
      this.#button(`flash-overflow-${name}`, () => this.ask({ x: this.sent.neighbours[k][0] })),
    );
    this.thresholds = THRESHOLDS.map(([name, text, title]) => this.#threshold(name, text, title));
    this.controls = this.#controls();
    this.range = this.#range();
    this.start("result", { ArrowLeft: () => this.#step(0), ArrowRight: () => this.#step(1) });
    const reset = () => this.sent && this.dtype.show(this.sent.asked.dtype); // a refused dtype must not stay selected
    this.hear("refused", reset);
  }

  /** The steps of x, and buttons for its thresholds. */
  #controls() {
    const [previous, next] = this.neighbours;
    const here = h("span", { class: "flash-overflow-x" }, symbol("x"), " = ", this.x);
    const stepper = h("span", { class: "flash-overflow-stepper" }, previous, here, next);
    const jumps = h("span", { class: "flash-overflow-jumps" }, this.thresholds.map(({ button }) => button));
    return h("fieldset", { class: "flash-settings flash-overflow-controls" }, stepper, jumps);
  }

  #threshold(name, text, title) {
    const button = this.#button("flash-overflow-jump", () => this.ask({ x: this.sent.thresholds[name][0] }));
    const value = h("b", {});
    button.append(h("span", {}, typeset(text)), value);
    button.dataset.name = name;
    return { name, title, button, value };
  }

  #range() {
    const range = h("input", { type: "range", class: "flash-overflow-range", "aria-label": "x" });
    range.addEventListener("input", () => this.ask({ x: Number(range.value) }));
    range.addEventListener("keydown", (event) => {
      const neighbour = ["ArrowLeft", "ArrowRight"].indexOf(event.key);
      if (neighbour < 0) return;
      event.preventDefault(); // the slider's own step is wider than the format's
      this.#step(neighbour);
    });
    return range;
  }

  #button(name, pressed) {
    return h("button", { type: "button", class: `flash-button flash-overflow-button ${name}`, onclick: pressed });
  }

  #step(k) {
    this.neighbours[k].click(); // which does nothing while the button is disabled
  }

  /** @param {Result} sent */
  load(sent) {
    this.sent = sent;
    const numbers = float64(sent.buffer);
    this.columns = Object.fromEntries(
      COLUMNS.map((name, k) => [name, numbers.subarray(k * sent.n, (k + 1) * sent.n)]),
    );
    REST.forEach((name, k) => (this.columns[name] = numbers[COLUMNS.length * sent.n + k]));
    if (!this.table) this.#build(sent.n);
    this.draw();
  }

  /** Create everything that depends on the number of scores, which never changes. */
  #build(n) {
    this.axis = new Axis(n, this.controls, this.range);
    this.table = new Table(n);
    this.root.prepend(headline("From which scores on does softmax overflow?").element);
    this.root.append(
      div("flash-panel", this.settings(this.dtype.element, this.copies.element)),
      div("flash-panel flash-words flash-overflow-words", this.words),
      this.axis.element,
      this.table.element,
      marksLegend(),
    );
  }

  paint() {} // all colours are in the style sheet

  draw() {
    const started = performance.now();
    const { sent, columns } = this;
    this.#drawControls(sent);
    this.axis.draw(sent, columns);
    this.table.draw(sent, columns);
    this.words.forEach((p, k) => setSentence(p, sent.words[k]));
    this.root.classList.toggle("flash-overflow-long", sent.name === "fp64");
    Object.assign(this.root.dataset, { x: sent.x[0], dtype: sent.asked.dtype, copies: sent.asked.copies });
    this.spoken.say(`x = ${sent.x[1]}. ${sent.words[0]}`);
    this.drawTime = performance.now() - started; // ms
  }

  /** @param {Result} sent */
  #drawControls({ asked, name, x, neighbours, range, step, most_copies, thresholds }) {
    this.dtype.show(asked.dtype);
    // The last request, which may not be answered yet: a slider must not jump back under the hand.
    const chosen = (name) => (this.off ? asked[name] : this.model.get(name));
    this.copies.show(Math.round(Math.log2(chosen("copies"))), [0, Math.floor(Math.log2(most_copies))]);
    setText(this.copied, String(chosen("copies")));
    put(this.copies.range, "aria-valuetext", String(chosen("copies")));
    setText(this.x, x[1]);
    const signs = ["◀", "▶"];
    for (const [k, button] of this.neighbours.entries()) {
      const [value, text] = neighbours[k];
      setText(button, k ? `${text} ${signs[k]}` : `${signs[k]} ${text}`);
      put(button, "aria-label", k ? `next ${name} number, ${text}` : `previous ${name} number, ${text}`);
      put(button, "title", k ? `next ${name} number (right arrow)` : `previous ${name} number (left arrow)`);
      button.disabled = value < range[0] || value > range[1];
    }
    for (const { name: threshold, title, button, value } of this.thresholds) {
      const [at, text] = thresholds[threshold];
      setText(value, text);
      put(button, "title", `${title}: ${text}`);
      put(button, "aria-current", String(at === x[0]));
    }
    [this.range.min, this.range.max, this.range.step] = [...range, step].map(String);
    if (chosen("x") === asked.x) this.range.value = String(x[0]);
    put(this.range, "aria-valuetext", `${x[1]} in ${name}`);
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new OverflowLab(context);
    return () => lab.stop();
  },
};
