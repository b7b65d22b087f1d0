// The charts of OnlineSoftmaxLab. `scan` is what Python computed: arrays by name, one number a score, and `terms`.
// j is the score of now; phase is "rescale", then "add" for each score, and "end" after the last.

const ROOM = 0.86; // of the height of a chart; what is above stays free

const percent = (part) => `${(100 * part).toFixed(2)}%`;

const bracketed = (x) => (x < 0 ? `(${number(x)})` : number(x)); // after a minus

/** Words with the names among them set as symbols: names stand between bars, as in "l = |alpha| · |l_old|". */
const formula = (text) => text.split("|").map((part, k) => (k % 2 ? symbol(part) : part));

/** One column a score: an area for what is drawn, and words below. At the left the axis, at the right a margin. */
class Chart {
  constructor(name, N, marks, draw) {
    this.columns = Array.from({ length: N }, (_, k) => {
      const column = div(
        "flash-online-column",
        div("flash-online-area"),
        h("span", { class: "flash-online-value" }),
      );
      [column.area, column.value] = column.children;
      draw(column, k);
      return column;
    });
    const axis = marks.map(([at, text]) => h("span", { style: `bottom:${percent(at)}` }, text));
    this.margin = div("flash-online-margin");
    this.field = div("flash-online-columns", this.columns);
    const parts = [div("flash-online-axis", axis), this.field, this.margin];
    this.element = h("div", { class: "flash-online-chart", role: "img", "data-name": name }, parts);
  }

  show(j, phase, label) {
    this.columns.forEach((column, k) => {
      column.dataset.state = k > j ? "pending" : k === j && phase !== "end" ? "now" : "seen";
    });
    this.element.setAttribute("aria-label", label);
  }
}

/** The scores and, as a line that goes up in steps, m. Scores are told apart by differences: no bar starts at 0. */
class Scores extends Chart {
  constructor({ N, x, m }) {
    const finite = [...x].filter(Number.isFinite);
    const size = Math.max(...finite.map(Math.abs)) || 1; // divided by it, differences stay finite
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    const place = (value) =>
      low === high ? ROOM / 2 : 0.1 + ((ROOM - 0.1) * (value / size - low / size)) / (high / size - low / size);
    const marks = finite.length ? [...new Set([low, high])].map((value) => [place(value), short(value)]) : [];
    super("scores", N, marks, (column, k) => {
      if (x[k] === -Infinity) column.classList.add("flash-online-masked");
      else column.area.append(h("i", { class: "flash-online-bar", style: `height:${percent(place(x[k]))}` }));
      if (m[k] > -Infinity) {
        // a line of 2px along the top and, where m grew, up the left side
        const from = k && m[k - 1] > -Infinity ? place(m[k - 1]) : place(m[k]);
        const style = `bottom:${percent(from)};height:calc(${percent(place(m[k]) - from)} + 2px)`;
        column.area.append(
          h("i", { class: `flash-online-m${from < place(m[k]) ? " flash-online-grew" : ""}`, style }),
        );
      }
      column.value.textContent = short(x[k]);
      column.title = `score ${k + 1}: ${exact(x[k])}`;
      column.append(h("span", { class: "flash-online-index" }, symbol(`x_${k + 1}`)));
    });
    Object.assign(this, { N, m, place });
    this.tag = this.margin.appendChild(h("span", { class: "flash-strong" }));
  }

  draw(j, phase) {
    const m = this.m[j];
    this.show(j, phase, `the scores; after ${j + 1} of ${this.N}, m is ${number(m)}`);
    this.tag.style.bottom = percent(m > -Infinity ? this.place(m) : 0);
    if (this.tag.dataset.m !== String(m)) this.tag.replaceChildren(symbol("m"), ` = ${number(m)}`);
    this.tag.dataset.m = m;
  }
}

/** What each score contributes to l; at the end, the weights. */
class Terms extends Chart {
  constructor(scan) {
    const marks = [0, 0.5, 1].map((term) => [ROOM * term, String(term)]);
    super("terms", scan.N, marks, (column) => {
      column.parts = ["bar", "excess", "ghost"].map((name) => h("i", { class: `flash-online-${name}` }));
      column.area.append(...column.parts);
    });
    this.scan = scan;
  }

  /** What is right, what is shown, and what it is to be compared with, for score k. */
  #values(k, j, phase, rescale) {
    const { N, p, terms, weight, weight_wrong } = this.scan;
    if (phase === "end") return [weight[k], rescale ? weight[k] : weight_wrong[k], weight[k]];
    if (k > j || (k === j && phase === "rescale")) return [0, 0, 0];
    const right = terms[j * N + k];
    if (!rescale) return [right, p[k], 0];
    return [right, right, phase === "rescale" ? terms[(j - 1) * N + k] : 0];
  }

  draw(j, phase, rescale) {
    const { N } = this.scan;
    this.show(j, phase, `${phase === "end" ? "the weights" : "the terms of l"}, ${j + 1} of ${N} scores`);
    this.columns.forEach((column, k) => {
      const [right, shown, compared] = this.#values(k, j, phase, rescale);
      const [bar, excess, ghost] = column.parts;
      const there = phase === "end" || k < j || (k === j && phase === "add");
      bar.classList.toggle("flash-online-added", k === j && phase === "add");
      bar.style.height = percent(ROOM * Math.min(right, shown));
      excess.style.bottom = percent(ROOM * right);
      excess.style.height = percent(ROOM * Math.max(0, shown - right));
      ghost.style.height = percent(compared > shown ? ROOM * compared : 0);
      setText(column.value, there ? short(shown) : "");
      column.title = there ? `score ${k + 1}: ${exact(shown)}` : "";
    });
  }
}

/** l in numbers and as a bar, and how wrong it is. */
class Sums {
  constructor(scan) {
    this.scan = scan;
    this.last = scan.N - 1;
    const names = ["m_old", "m", "alpha", "l_old", "l"];
    this.cells = names.map((name) => h("td", { "data-name": name }));
    const head = names.map((name) => h("th", { scope: "col" }, symbol(name)));
    const table = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, h("tr", {}, this.cells)));
    this.rule = div("flash-online-rule");
    this.lines = [0, 1].map(() => div("flash-online-line"));
    this.bars = ["reference", "shown"].map((name) => {
      const parts = ["bar", "added", "excess"].map((part) => h("i", { class: `flash-online-${part}` }));
      const [label, value] = [h("span"), h("span", { "data-name": name })];
      return {
        parts,
        label,
        value,
        element: div("flash-online-sum", label, div("flash-online-track", parts), value),
      };
    });
    this.peak = Math.max(...scan.error_wrong);
    this.path = svg("path");
    this.dot = div("flash-online-dot");
    this.error = h("span", { "data-name": "error" });
    const top = h("span", { style: `bottom:${percent(ROOM)}` }, this.peak ? short(this.peak) : "");
    const plot = svg(
      "svg",
      { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
      this.path,
    );
    const curve = div(
      "flash-online-curve",
      div("flash-online-axis", h("span", { style: "bottom:0" }, "0"), top),
      plot,
    );
    curve.append(this.dot);
    this.after = h("span", {});
    const error = div("flash-online-line", "Relative error of ", symbol("l"), this.after, this.error);
    const bars = this.bars.map((bar) => bar.element);
    const title = [symbol("l"), ", the sum of the terms"];
    const parts = div("flash-online-parts", div("", table, this.rule, this.lines), div("", bars, error, curve));
    this.element = panel("online-sums", title, null, parts);
  }

  draw(j, phase, rescale) {
    const { x, m_old, m, alpha, l_old, kept, p, l, l_wrong } = this.scan;
    const wrong_old = j ? l_wrong[j - 1] : 0;
    const total = rescale ? l : l_wrong;
    const start = rescale ? kept[j] : wrong_old; // what the new term is added to
    const values = [
      m_old[j],
      m[j],
      alpha[j],
      rescale ? l_old[j] : wrong_old,
      phase === "rescale" ? "…" : total[j],
    ];
    values.forEach((value, k) => {
      setText(this.cells[k], value === "…" ? value : number(value));
      this.cells[k].title = value === "…" ? "" : exact(value);
    });
    this.#drawRule(phase, rescale);
    if (phase === "end") {
      setText(
        this.lines[0],
        total[j] ? `= exp(x − ${bracketed(m[j])}) / ${number(total[j])}` : "= 0, since l = 0",
      );
      setText(this.lines[1], "");
    } else {
      const term = x[j] === -Infinity ? "0" : `exp(${number(x[j])} − ${bracketed(m[j])})`;
      const added = phase === "add";
      const product = rescale ? `${number(alpha[j])} · ${number(l_old[j])}` : number(start);
      setText(this.lines[0], `= ${product} + ${added ? term : "…"}`);
      setText(this.lines[1], `= ${number(start)} + ${added ? `${number(p[j])} = ${number(total[j])}` : "…"}`);
    }
    const right = phase === "rescale" ? kept[j] : l[j];
    const shown = phase === "rescale" ? start : total[j];
    const added = phase === "add" ? p[j] : 0;
    if (rescale) {
      this.#drawBar(0, "before", phase === "end" ? right : l_old[j], [phase === "end" ? right : l_old[j], 0, 0]);
      this.#drawBar(1, "now", right, [right - added, added, 0]);
    } else {
      this.#drawBar(0, "correct", right, [right, 0, 0]);
      this.#drawBar(1, "now", shown, [right, 0, shown - right]);
    }
    this.#drawError(phase === "rescale" ? j - 1 : j, rescale);
  }

  #drawRule(phase, rescale) {
    const kind = phase === "end" ? "end" : rescale ? "right" : "wrong";
    if (this.rule.dataset.kind === kind) return;
    this.rule.dataset.kind = kind;
    const factor = formula("|alpha| · ");
    this.rule.replaceChildren(
      ...(phase === "end"
        ? formula("weight = exp(|x| − |m|) / |l|")
        : [
            ...formula("|l| = "),
            ...(rescale ? factor : [h("s", {}, factor)]),
            ...formula("|l_old| + exp(|x_j| − |m|)"),
          ]),
    );
  }

  #drawBar(k, label, value, widths) {
    const bar = this.bars[k];
    const full = this.scan.l_wrong[this.last] || 1; // nothing is larger
    setText(bar.label, label);
    setText(bar.value, number(value));
    bar.value.title = exact(value);
    widths.forEach((width, part) => (bar.parts[part].style.width = percent(width / full)));
  }

  /** Draw the error as far as score j, -1 for the start. */
  #drawError(j, rescale) {
    const { N } = this.scan;
    const errors = rescale ? this.scan.error : this.scan.error_wrong;
    const up = (k) => (ROOM * errors[k]) / (this.peak || 1);
    const points = Array.from({ length: j + 1 }, (_, k) => [(k + 1) / N, up(k)]);
    this.path.setAttribute("d", `M0 100${points.map(([x, y]) => `L${100 * x} ${100 - 100 * y}`).join("")}`);
    const [across, height] = points.at(-1) ?? [0, 0];
    this.dot.style.setProperty("--across", across);
    this.dot.style.setProperty("--up", height);
    const error = j < 0 ? 0 : errors[j];
    setText(this.after, j < 0 ? ": " : `, after ${j + 1} ${j ? "scores" : "score"}: `);
    setText(this.error, number(error));
    this.error.title = exact(error);
  }
}
