// OnlineSoftmaxLab: plays the scan that Python computed. Each score takes two positions, "rescale" and "add"; the
// last one, "end", shows the weights. The scan without the rescale was sent too: that switch does not ask Python.

class OnlineLab extends Widget {
  constructor(context) {
    super(context, "online", "online softmax, score by score");
    this.transport = new Transport({ unit: "step", moved: () => this.draw() });
    this.typed = h("input", {
      type: "text",
      class: "flash-online-typed",
      "aria-label": "x, the scores: numbers or -inf, with commas or spaces between them",
      spellcheck: "false",
      autocomplete: "off",
      onchange: () => this.type(this.typed.value),
      // the keys of a text field are its own
      onkeydown: (event) => !(event.ctrlKey || event.metaKey || event.altKey) && event.stopPropagation(),
    });
    const fillIn = Object.entries(this.model.get("examples")).map(([name, text]) =>
      h("button", { type: "button", class: "flash-online-example", onclick: () => this.type(text) }, name),
    );
    const examples = h(
      "div",
      { class: "flash-online-examples", role: "group", "aria-label": "rows to fill in" },
      fillIn,
    );
    this.without = toggle("without the rescale", (without) => this.rescaleIs(!without));
    this.status = h("span", { class: "flash-online-status" });
    const { buttons, scrub, speed } = this.transport;
    const row = h("label", { class: "flash-online-row" }, symbol("x"), this.typed);
    const header = div(
      "flash-panel flash-online-header",
      div("flash-controls", buttons, scrub, this.status, speed, this.without.element),
      this.settings(row, examples),
    );
    this.body = div("flash-online-body");
    this.note = note();
    this.sentence = h("p", { class: "flash-online-sentence" });
    this.root.append(header, this.body, div("flash-panel flash-words", this.sentence), legend());
    const width = new ResizeObserver(() => this.fit());
    width.observe(this.root);
    this.stops.push(
      () => this.transport.pause(),
      () => width.disconnect(),
    );
    this.hear("rescale", () => this.draw());
    this.hear("refused", () => this.typed.setAttribute("aria-invalid", this.model.get("refused") !== ""));
    this.start("frames", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.transport.last),
    });
  }

  type(text) {
    this.typed.value = text;
    if (text !== this.model.get("typed")) this.ask({ typed: text });
  }

  rescaleIs(rescale) {
    this.model.set("rescale", rescale);
    if (!isSaved()) this.model.save_changes();
  }

  load({ N, rows, text, weight, weight_wrong, buffer }) {
    const { buffer: bytes, byteOffset, byteLength } = buffer;
    const numbers = new Float64Array(bytes.slice(byteOffset, byteOffset + byteLength));
    const scan = (this.scan = { N, terms: numbers.subarray(rows.length * N) });
    rows.forEach((name, k) => (scan[name] = numbers.subarray(k * N, (k + 1) * N)));
    this.sum = { true: weight, false: weight_wrong };
    this.typed.value = text;
    this.scores = new Scores(scan);
    this.terms = new Terms(scan);
    this.sums = new Sums(scan);
    this.title = h("h3");
    const title = h(
      "header",
      {},
      h("h3", {}, "Scores ", symbol("x"), ", and ", symbol("m"), ", the largest so far"),
    );
    const charts = h("section", { class: "flash-panel flash-online-charts" }, title, this.scores.element);
    charts.append(h("header", {}, this.title, this.note), this.terms.element);
    this.body.replaceChildren(charts, this.sums.element);
    this.root.dataset.n = N;
    this.fit();
    this.transport.reset(2 * N);
  }

  /** Numbers below the columns are left out where they would not fit. */
  fit() {
    if (this.scores)
      this.root.classList.toggle("flash-online-tight", this.scores.field.clientWidth / this.scan.N < 34);
  }

  paint() {} // all colours are in the style sheet

  draw() {
    if (!this.scan) return;
    const { N } = this.scan;
    const { position } = this.transport;
    const rescale = this.model.get("rescale");
    const phase = position === 2 * N ? "end" : position % 2 ? "add" : "rescale";
    const j = Math.min(N - 1, Math.floor(position / 2));
    this.scores.draw(j, phase);
    this.terms.draw(j, phase, rescale);
    this.sums.draw(j, phase, rescale);
    this.without.show(!rescale);
    const told = phase === "end" ? "the weights" : phase === "add" ? "add" : rescale ? "rescale" : "no rescale";
    const where = phase === "end" ? `end: ${told}` : `score ${j + 1} of ${N}: ${told}`;
    setText(this.title, phase === "end" ? "Weights, exp(x − m) / l" : "Terms of l, exp(x − m)");
    setText(this.note, this.#noteOn(phase, rescale));
    setText(this.status, where);
    setText(this.sentence, sentences(this.scan, j, this.sum)[phase](rescale));
    this.transport.scrub.setAttribute("aria-valuetext", where);
    Object.assign(this.root.dataset, { position, phase, rescale });
    this.spoken.say(`${where}. ${this.sentence.textContent}`);
  }

  #noteOn(phase, rescale) {
    if (phase === "end") return `they add up to ${number(this.sum[rescale])}`;
    return rescale ? "all with the m of now" : "each with the m of when it was added";
  }
}

/** What happens at score j, in words, by phase. */
function sentences({ x, m_old, m, alpha, l_old, kept, p, l, l_wrong, error_wrong }, j, sum) {
  const masked = `Score ${j + 1} is −∞: it has weight 0 and changes nothing`;
  const old = j ? l_wrong[j - 1] : 0;
  return {
    rescale(rescale) {
      if (m[j] === -Infinity) return `${masked}. There is no maximum yet; m stays −∞.`;
      if (x[j] === -Infinity) return `${masked}. m stays ${number(m[j])}.`;
      if (m_old[j] === -Infinity)
        return `The first finite score is the maximum: m = ${number(m[j])}. Nothing was summed yet, so alpha = 0 loses nothing.`;
      if (m[j] === m_old[j])
        return `${number(x[j])} is not above the maximum ${number(m[j])}: alpha = 1, and nothing has to be rescaled.`;
      const grew = `The maximum grew from ${number(m_old[j])} to ${number(m[j])}, so everything summed so far`;
      const factor = `alpha = exp(${number(m_old[j])} − ${bracketed(m[j])}) = ${number(alpha[j])}`;
      return rescale
        ? `${grew} is multiplied by ${factor}: ${number(l_old[j])} becomes ${number(kept[j])}.`
        : `${grew} should be multiplied by ${factor}. It is not: ${number(old)} stays, where ${number(kept[j])} is right.`;
    },
    add(rescale) {
      if (x[j] === -Infinity) return `${masked}: exp(−∞) = 0 is added.`;
      const total = rescale ? l : l_wrong;
      const added = `exp(${number(x[j])} − ${bracketed(m[j])}) = ${number(p[j])} is added: l = ${number(total[j])}.`;
      if (rescale || !(l_wrong[j] > l[j])) return added;
      return `${added} It should be ${number(l[j])}; the relative error is ${number(error_wrong[j])}.`;
    },
    end(rescale) {
      if (m[j] === -Infinity) return "All scores are −∞: m = −∞, l = 0, and every weight is 0.";
      const added = `With m and l known, a second pass over x makes the weights. They add up to ${number(sum[rescale])}`;
      if (rescale) return `${added}.`;
      if (l_wrong[j] > l[j])
        return `${added}, not 1: l is ${number(l_wrong[j])} and should be ${number(l[j])}, so each weight is too small.`;
      return `${added}: in this row nothing had to be rescaled, and the mistake does not show.`;
    },
  };
}

function legend() {
  const mark = (name, text, when) =>
    h("span", { "data-when": when }, h("i", { class: `flash-online-swatch flash-online-${name}` }), text);
  return div(
    "flash-legend flash-note",
    mark("m", "m"),
    mark("bar", "seen, and in l"),
    mark("added", "the score of now"),
    mark("pending", "to come"),
    mark("masked", "−∞"),
    mark("ghost", "before the rescale", "true"),
    mark("excess", "too much: was not rescaled", "false"),
    mark("ghost", "at the end: the right weight", "false"),
  );
}

export default {
  render(context) {
    const lab = new OnlineLab(context);
    return () => lab.stop();
  },
};
