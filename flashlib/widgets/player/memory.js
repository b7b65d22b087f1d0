// HBM: Q, K, V and O as strips, m and l too in the FA1 order, and the bytes that were moved.

const STRIP = { width: 48, height: 240, cell: 12 }; // of a matrix, in pixels

class Memory {
  static key = ({ N_q, N_k, d, order, dtype }) => [N_q, N_k, d, order, dtype];

  constructor(frames) {
    const { N_q, N_k, d, order } = frames;
    const height = between(0.5, STRIP.height / Math.max(N_q, N_k, 1), STRIP.cell);
    const width = Math.min(STRIP.width / d, STRIP.cell, Math.max(4 * height, 3));
    const strip = (name, rows, cols, width) => {
      const matrix = new Matrix({ name, rows, cols, width, height, numbers: false });
      const here = h("div", { class: "flash-here", hidden: true });
      const title = div("flash-name", symbol(name), cols > 1 && [" ", note(`${rows}×${cols}`)]);
      const element = div("flash-strip", title, div("flash-strip-cells", matrix.element, here));
      return { matrix, here, rows, cols, element };
    };
    this.strips = { Q: strip("Q", N_q, d, width), K: strip("K", N_k, d, width), V: strip("V", N_k, d, width) };
    this.strips.O = strip("O", N_q, d, width);
    if (order === "fa1") for (const name of ["m", "l"]) this.strips[name] = strip(name, N_q, 1, 10);
    this.held = {}; // what memory holds of O, m and l
    for (const name of ["O", "m", "l"]) this.held[name] = new Float64Array(N_q * (name === "O" ? d : 1));
    this.note = h("p", { class: "flash-note" });
    this.meter = new Meter(frames);
    const elements = Object.values(this.strips).map((strip) => strip.element);
    const never = h("span", { class: "flash-accent" }, "S and P: never here");
    this.element = panel("memory", "HBM", never, div("flash-strips", elements), this.note, this.meter.element);
  }

  take(frames) {
    this.frames = frames;
    this.meter.take(frames);
  }

  /** Draw what does not change from step to step. */
  paint(colour) {
    const { inputs, numbers, peaks, d } = this.frames;
    for (const name of ["Q", "K", "V"])
      this.strips[name].matrix.draw(numbers, inputs[name], this.strips[name].rows, d, peaks[name], colour);
    this.done = null;
  }

  draw(at, colour) {
    const { step, part, storing, k } = at;
    this.#fill(part === "end" || storing ? k : k - 1, colour);
    const now = step ? this.#inUse(step, part, storing) : {};
    for (const name of Object.keys(this.strips)) this.#outline(name, now[name]);
    setText(this.note, this.#told(part === "end" || storing ? k : k - 1, storing && step.rows));
    this.meter.draw(at);
  }

  /** How much of O is final after step `done`, in words. */
  #told(done, stored) {
    const { N_q, B_r, T_r, lastOf, learner } = this.frames;
    let final = 0;
    for (let i = 0; i < T_r; i++)
      if ((lastOf.get(i) ?? -1) <= done) final += Math.min((i + 1) * B_r, N_q) - i * B_r;
    const how = learner ? " (taken as O_acc / l)" : stored ? `, ${span("row", stored)} written now` : "";
    return `O: ${final} of ${N_q} rows final${how}`;
  }

  /** The rows that are loaded, outlined as long as the step works on them, and those that it stores. */
  #inUse({ rows, cols }, part, storing) {
    const loads = this.frames.order === "fa1" && part === "load";
    const state = storing || loads ? rows : undefined;
    const inputs = part === "store" ? {} : { Q: rows, K: cols, V: cols };
    return { ...inputs, O: state, m: state, l: state };
  }

  /** Hold what was stored after step `done`, T for the end. */
  #fill(done, colour) {
    if (this.done === done) return;
    const { writes, numbers, steps, d, N_q, order, peaks, T } = this.frames;
    const ahead = this.done !== null && done > this.done;
    const first = ahead ? this.done + 1 : -1;
    if (!ahead) {
      this.held.O.fill(NaN);
      this.held.m.fill(-Infinity);
      this.held.l.fill(0);
    }
    for (const [after, start, stop, offset] of writes) {
      if (after < first || after > done) continue;
      this.held.O.set(numbers.subarray(offset, offset + (stop - start) * d), start * d);
    }
    if (order === "fa1")
      for (const step of steps.slice(Math.max(first, 0), Math.min(done + 1, T)))
        for (const name of ["m", "l"])
          this.held[name].set(numbers.subarray(step[name], step[name] + step.n_r), step.rows[0]);
    this.done = done;
    for (const name of ["O", "m", "l"])
      if (this.strips[name])
        this.strips[name].matrix.draw(this.held[name], 0, N_q, this.strips[name].cols, peaks[name], colour);
  }

  #outline(name, rows) {
    const { here, rows: N } = this.strips[name];
    here.hidden = !rows;
    if (!rows) return;
    here.style.top = `${(100 * rows[0]) / N}%`;
    here.style.height = `${(100 * (rows[1] - rows[0])) / N}%`;
  }
}

/** Bytes read and written so far, beside what standard attention moves in all. */
class Meter {
  constructor(frames) {
    const standard = frames.sum(frames.standardMoved());
    const bar = () => {
      const parts = [h("i", { class: "flash-read" }), h("i", { class: "flash-written" })];
      return { parts, element: h("span", { class: "flash-meter", "aria-hidden": "true" }, parts) };
    };
    [this.bar, this.standard] = [bar(), bar()];
    this.text = h("span", { class: "flash-moved" });
    this.element = div(
      "flash-meters flash-note",
      h("span", {}, "so far ", this.text),
      this.bar.element,
      h("span", {}, `standard attention, in all: ${bytes(standard)}`),
      this.standard.element,
    );
  }

  take(frames) {
    this.frames = frames;
    const totals = [frames.total(), frames.standardMoved()].map(frames.sum);
    this.most = frames.most ?? Math.max(...totals, 1); // bytes that fill a bar
    this.#fill(this.standard, ...frames.standard);
  }

  draw(at) {
    const { read, written } = this.frames.moved(at);
    const stored = this.frames.learner ? "" : `, ${bytes(written)} written`; // a learner's steps do not tell
    setText(this.text, `${bytes(read)} read${stored}`);
    this.#fill(this.bar, read, written);
  }

  #fill({ parts }, ...sizes) {
    parts.forEach((part, k) => (part.style.width = `${(100 * sizes[k]) / this.most}%`));
  }
}
