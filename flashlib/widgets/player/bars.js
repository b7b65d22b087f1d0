// One row of the block as numbers and bars.

/** m_old, m, alpha, l and O_acc of one row, as numbers and bars. */
class RowBars {
  static key = ({ d }) => d;

  constructor(frames) {
    this.items = {};
    const item = (name, ...bars) => {
      const text = h("span", { class: "flash-value" });
      this.items[name] = { text, bars };
      return h("div", { class: "flash-item", "data-name": name }, symbol(name), text, div("flash-track", bars));
    };
    const bar = (name) => h("i", { class: `flash-${name}` });
    this.columns = Array.from({ length: Math.min(frames.d, 32) }, () => [bar("before"), bar("after")]);
    this.element = div(
      "flash-bars",
      (this.name = h("span", { class: "flash-item-row" })),
      item("m_old", bar("kept")),
      item("m", bar("kept")),
      item("alpha", bar("kept")),
      item("l", bar("before"), bar("kept"), bar("added")),
      div(
        "flash-item flash-columns",
        symbol("O_acc"),
        div(
          "flash-track",
          this.columns.map((pair) => h("b", {}, pair)),
        ),
      ),
    );
  }

  take(frames) {
    this.frames = frames;
  }

  draw(at, selected) {
    const { step, reached } = at;
    this.element.classList.toggle("flash-unused", !step);
    if (!step) return;
    const { peaks } = this.frames;
    const r = selected - step.rows[0];
    const row = this.frames.row(step, r);
    const now = this.frames.now(at);
    setText(this.name, `row ${selected}`);
    this.#signed("m_old", row.m_old, peaks.m);
    this.#signed("m", row[now.m], peaks.m);
    this.#put("alpha", reached("rescale") ? row.alpha : undefined);
    this.#span(this.items.alpha.bars[0], 0, reached("rescale") ? row.alpha : 0);
    this.#put("l", row[now.l]);
    const [before, kept, added] = this.items.l.bars;
    const size = (x) => x / (peaks.l || 1);
    this.#span(before, 0, size(row.l_old));
    const l = reached("rescale") && !this.frames.learner ? row.l_rescaled : row.l_old;
    this.#span(kept, 0, size(l));
    this.#span(added, size(l), reached("add") ? size(row.l - l) : 0);
    this.#drawColumns(at, r);
  }

  /** O_acc, and as an outline what it was before this step. */
  #drawColumns(at, r) {
    const { numbers, peaks, d } = this.frames;
    const now = this.frames.now(at).O_acc;
    this.columns.forEach((pair, c) => {
      pair.forEach((bar, k) => {
        const x = numbers[at.step[k ? now : "O_acc_old"] + r * d + c] / (peaks.O_acc || 1);
        const height = 50 * between(-1, Number.isFinite(x) ? x : 0, 1);
        bar.style.height = `${Math.abs(height)}%`;
        bar.style.bottom = `${50 + Math.min(0, height)}%`;
      });
    });
  }

  #put(name, x) {
    const { text } = this.items[name];
    setText(text, x === undefined ? "" : number(x));
    text.title = x === undefined ? "" : exact(x);
  }

  /** A bar from the middle to x. */
  #signed(name, x, peak) {
    this.#put(name, x);
    const t = between(-1, Number.isFinite(x) ? x / (peak || 1) : 0, 1);
    this.#span(this.items[name].bars[0], (1 + Math.min(0, t)) / 2, Math.abs(t) / 2);
  }

  #span(bar, left, width) {
    bar.style.left = `${100 * between(0, left, 1)}%`;
    bar.style.width = `${100 * between(0, Number.isFinite(width) ? width : 0, 1)}%`;
  }
}
