// OverflowLab: what exp, the sum and the two softmaxes become in a floating-point format, as Python computed it.

const COLUMNS = ["x", "e", "naive", "shifted", "e_safe", "safe", "exact"];
const REST = ["m", "l", "l_safe", "naive_total", "safe_total", "log_l", "log_l_safe"];
const MARKS = { overflow: "▲ overflow", underflow: "▼ underflow", subnormal: "≈ subnormal", wrong: "✕ wrong" };
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

const LIMITS = { smallest: "smallest", normal: "normal from", largest: "largest", one: "exp(0) =" };

const SCROLLS = { tabindex: 0, role: "region", "aria-label": "the numbers" }; // on a narrow page, by keyboard too

const shown = (x) => (x === Infinity ? "inf" : number(x));

/** exp(x_j), exp(x_j − m) and the like as elements. */
const exps = (...parts) => h("span", { class: "flash-overflow-name" }, "exp(", parts, ")");

/** Set only what differs: most of the time goes into this. */
function put(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** A number with the word that marks it beneath; `draw` shows another one. */
class Value {
  constructor(name) {
    this.text = h("span", { class: "flash-overflow-number" });
    this.word = h("span", { class: "flash-overflow-word" });
    this.element = h("td", { "data-name": name }, this.text, this.word);
  }

  draw(x, mark = "", text = shown(x)) {
    setText(this.text, text);
    setText(this.word, MARKS[mark] ?? "");
    put(this.element, "title", x === Infinity ? "inf" : exact(x));
    put(this.element, "data-mark", mark);
  }
}

/** One line of the picture: a bar from 1 to the naive term, a diamond at the safe one, and what falls off. */
class Bar {
  constructor(label, name) {
    this.label = h("div", { class: "flash-overflow-label" }, label);
    this.bar = h("i", { class: "flash-overflow-bar" });
    this.diamond = h("i", { class: "flash-overflow-diamond" });
    this.low = h("span", { class: "flash-overflow-flag flash-overflow-flag-low" });
    this.high = h("span", { class: "flash-overflow-flag flash-overflow-flag-high" });
    this.element = h("div", { class: "flash-overflow-track" }, this.bar, this.diamond, this.low, this.high);
    this.element.dataset.name = name;
  }

  draw(place, naive, safe, mark) {
    const [left, right] = [place(naive), place(0)].sort((a, b) => a - b);
    this.bar.style.left = `${left}%`;
    this.bar.style.width = `${right - left}%`;
    this.diamond.style.left = `${place(safe)}%`;
    put(this.element, "data-mark", mark);
    setText(this.high, mark === "overflow" ? "▲ inf" : "");
    setText(this.low, mark === "underflow" ? "▼ 0" : "");
  }
}

class OverflowLab extends Widget {
  constructor(context) {
    super(context, "overflow", "Where softmax overflows and underflows");
    this.dtype = choice("dtype", "dtype", DTYPES, (dtype) => this.ask({ dtype }));
    this.copies = slider("copies", "copies of the row, in powers of two", (k) => this.askFor("copies", 2 ** k));
    this.copied = this.copies.element.querySelector("output");
    this.x = h("b", {});
    this.neighbours = ["previous", "next"].map((name, k) =>
      this.#button(`flash-overflow-${name}`, () => this.askFor("x", this.sent.neighbours[k][0])),
    );
    this.thresholds = THRESHOLDS.map(([name, text, title]) => {
      const button = this.#button("flash-overflow-jump", () => this.askFor("x", this.sent.thresholds[name][0]));
      button.append(note(text), h("b", {}));
      Object.assign(button.dataset, { name, title });
      return button;
    });
    this.range = h("input", { type: "range", class: "flash-overflow-range", "aria-label": "x" });
    this.range.addEventListener("input", () => this.askFor("x", Number(this.range.value)));
    this.range.addEventListener("keydown", (event) => {
      const neighbour = ["ArrowLeft", "ArrowRight"].indexOf(event.key);
      if (neighbour < 0) return;
      event.preventDefault(); // its own step is wider than the format's
      this.#step(neighbour);
    });
    this.words = ["naive", "safe"].map((name) => h("p", { "data-name": name }));
    const [previous, next] = this.neighbours;
    const here = h("span", { class: "flash-overflow-x" }, symbol("x"), " = ", this.x);
    const stepper = h("span", { class: "flash-overflow-stepper" }, previous, here, next);
    const jumps = h("span", { class: "flash-overflow-jumps" }, this.thresholds);
    this.header = div(
      "flash-panel flash-overflow-header",
      this.settings(this.dtype.element, this.copies.element),
      h("fieldset", { class: "flash-settings flash-controls", disabled: isSaved() }, stepper, jumps),
    );
    this.start("result", { ArrowLeft: () => this.#step(0), ArrowRight: () => this.#step(1) });
    const reset = () => this.sent && this.dtype.show(this.sent.asked.dtype); // what was refused is not chosen
    this.hear("refused", reset);
  }

  #button(name, pressed) {
    return h("button", { type: "button", class: `flash-button flash-overflow-button ${name}`, onclick: pressed });
  }

  #step(k) {
    if (!isSaved() && !this.neighbours[k].disabled) this.neighbours[k].click();
  }

  /** Ask for another value; asking for the same one again would bring no answer. */
  askFor(name, value) {
    if (value !== this.model.get(name)) this.ask({ [name]: value });
  }

  load(sent) {
    this.sent = sent;
    const { buffer, byteOffset, byteLength } = sent.buffer;
    const numbers = new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength)); // aligned to 8 bytes
    this.columns = Object.fromEntries(
      COLUMNS.map((name, k) => [name, numbers.subarray(k * sent.n, (k + 1) * sent.n)]),
    );
    REST.forEach((name, k) => (this.columns[name] = numbers[COLUMNS.length * sent.n + k]));
    if (!this.table) this.#build(sent.n);
    this.draw();
  }

  /** Make the rows of the picture and of the table. Their number stays. */
  #build(n) {
    const index = Array.from({ length: n }, (_, j) => j + 1);
    const x_j = symbol("x_j");
    const minus = () => [symbol("x_j"), " − ", symbol("m")];
    this.bars = index.map((j) => new Bar(exps(symbol(`x_${j}`)), `x_${j}`));
    this.bars.push(new Bar([note("sum "), symbol("l")], "l"));
    this.values = index.map(() => COLUMNS.map((name) => new Value(name)));
    this.sums = Object.fromEntries(
      ["l", "naive_total", "l_safe", "safe_total"].map((name) => [name, new Value(name)]),
    );
    this.caption = h("th", { scope: "row", colspan: 2 });
    const head = (...children) => h("th", { scope: "col" }, children);
    const group = (text, colspan) => h("th", { scope: "colgroup", colspan }, text);
    const { l, naive_total, l_safe, safe_total } = this.sums;
    this.table = h(
      "table",
      { class: "flash-overflow-table" },
      h("colgroup", {}, h("col", { class: "flash-overflow-col-j" }), h("col", { class: "flash-overflow-col-x" })),
      h("thead", {}, [
        h("tr", {}, h("td", { colspan: 2 }), group("naive", 2), group("safe", 3), group("exact", 1)),
        h("tr", {}, head(symbol("j")), head(x_j), head(exps(symbol("x_j"))), head("weight"), [
          [head(minus()), head(exps(minus())), head("weight"), head("weight")],
        ]),
      ]),
      h(
        "tbody",
        {},
        index.map((j, k) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, j),
            this.values[k].map((value) => value.element),
          ),
        ),
      ),
      h(
        "tfoot",
        {},
        h("tr", {}, this.caption, l.element, naive_total.element, h("td", {}), [
          [l_safe.element, safe_total.element, h("td", {}, "1")],
        ]),
      ),
    );
    const zones = ["low", "subnormal", "normal", "high"].map((name) => h("i", { "data-zone": name }));
    this.zones = Object.fromEntries(zones.map((zone) => [zone.dataset.zone, zone]));
    this.one = h("i", { class: "flash-overflow-one" });
    this.limits = Object.keys(LIMITS).map((name) => h("span", { "data-limit": name }));
    const picture = h("div", { class: "flash-overflow-picture" }, [
      [h("div", { class: "flash-overflow-label" }, symbol("x"))],
      h("fieldset", { class: "flash-settings flash-overflow-slide", disabled: isSaved() }, this.range),
      h("div", { class: "flash-overflow-zones", style: `grid-row:2 / span ${n + 1}` }, zones, this.one),
      this.bars.map((bar, k) => {
        for (const element of [bar.label, bar.element]) element.style.gridRow = k + 2;
        return [bar.label, bar.element];
      }),
      h("div", { class: "flash-overflow-axis" }, this.limits),
    ]);
    this.picture = h("section", { class: "flash-panel" }, picture);
    this.picture.classList.toggle("flash-overflow-many", n > 6);
    const words = h("div", { class: "flash-panel flash-words flash-overflow-words" }, this.words);
    const numbers = h("div", { class: "flash-panel flash-overflow-numbers", ...SCROLLS }, this.table);
    this.root.append(this.header, words, this.picture, numbers, legend());
  }

  paint() {} // the style sheet does

  draw() {
    const started = performance.now();
    const { sent, columns } = this;
    this.#drawControls(sent);
    this.#drawPicture(sent, columns);
    for (const [j, values] of this.values.entries())
      for (const [k, name] of COLUMNS.entries())
        values[k].draw(columns[name][j], sent.marks[name]?.[j], name === "x" ? sent.scores[j] : undefined);
    for (const [name, value] of Object.entries(this.sums)) value.draw(columns[name], sent.marks[name][0]);
    setText(this.caption, `sum of ${sent.n * sent.asked.copies}`);
    this.words.forEach((p, k) => setText(p, sent.words[k]));
    this.root.classList.toggle("flash-overflow-long", sent.name === "fp64");
    Object.assign(this.root.dataset, { x: sent.x[0], dtype: sent.asked.dtype, copies: sent.asked.copies });
    this.spoken.say(`x = ${sent.x[1]}. ${sent.words[0]}`);
    this.drawTime = performance.now() - started; // ms
  }

  #drawControls({ asked, name, x, neighbours, range, step, most_copies, thresholds }) {
    this.dtype.show(asked.dtype);
    this.copies.show(Math.round(Math.log2(asked.copies)), [0, Math.floor(Math.log2(most_copies))]);
    setText(this.copied, String(asked.copies));
    put(this.copies.range, "aria-valuetext", String(asked.copies));
    setText(this.x, x[1]);
    const signs = ["◀", "▶"];
    for (const [k, button] of this.neighbours.entries()) {
      const [value, text] = neighbours[k];
      setText(button, k ? `${text} ${signs[k]}` : `${signs[k]} ${text}`);
      put(button, "aria-label", `${k ? "next" : "previous"} ${name} number, ${text}`);
      put(button, "title", `${k ? "next" : "previous"} ${name} number (${k ? "right" : "left"} arrow)`);
      button.disabled = value < range[0] || value > range[1];
    }
    for (const button of this.thresholds) {
      const [value, text] = thresholds[button.dataset.name];
      setText(button.lastChild, text);
      put(button, "title", `${button.dataset.title}: ${text}`);
      put(button, "aria-current", String(value === x[0]));
    }
    Object.assign(this.range, { min: range[0], max: range[1], step });
    if (asked.x === this.model.get("x")) this.range.value = x[0]; // else it has been moved on meanwhile
    put(this.range, "aria-valuetext", `${x[1]} in ${name}`);
  }

  #drawPicture({ range, shift, limits, marks, n }, columns) {
    const [low, high] = range.map((end) => end + shift);
    const place = (log) => between(0, (100 * (log - low)) / (high - low), 100);
    const [smallest, normal, largest] = ["smallest", "normal", "largest"].map((name) => place(limits[name][0]));
    const zones = {
      low: [0, smallest],
      subnormal: [smallest, normal],
      normal: [normal, largest],
      high: [largest, 100],
    };
    for (const [name, [left, right]] of Object.entries(zones))
      Object.assign(this.zones[name].style, { left: `${left}%`, width: `${right - left}%` });
    this.one.style.left = `${place(0)}%`;
    for (const label of this.limits) {
      const [log, value] = limits[label.dataset.limit] ?? [0, 1];
      label.style.left = `${place(log)}%`;
      const text = Number.isInteger(value) && value < 1e6 ? String(value) : number(value);
      setText(label, `${LIMITS[label.dataset.limit]} ${text}`);
      put(label, "title", exact(value));
    }
    this.bars.slice(0, n).forEach((bar, j) => bar.draw(place, columns.x[j], columns.shifted[j], marks.e[j]));
    this.bars[n].draw(place, columns.log_l, columns.log_l_safe, marks.l[0]);
  }
}

function legend() {
  const item = (mark, ...text) => h("span", {}, mark, h("span", {}, text));
  const swatch = (name, zone) => h("i", { class: `flash-overflow-swatch ${name}`, "data-zone": zone });
  const shifted = exps([symbol("x_j"), " − ", symbol("m")]);
  return div("flash-legend flash-note", [
    item(swatch("flash-overflow-bar"), "naive: from 1 to ", exps(symbol("x_j")), ", on a log axis"),
    item(swatch("flash-overflow-diamond"), "safe: ", shifted),
    item(swatch("", "high"), "no numbers there"),
    item(swatch("", "subnormal"), "subnormal: digits go missing"),
    item("✕", "differs from exact by more than rounding explains"),
  ]);
}

export default {
  render(context) {
    const lab = new OverflowLab(context);
    return () => lab.stop();
  },
};
