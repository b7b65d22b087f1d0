// A frame in words: the sentence, the numbers of one row as bars, and the line of the algorithm that is at work.

const STORE = {
  fa1: "O_i = O_acc / l ;  O_i , m and l go to HBM",
  fa2: "O_i = O_acc / l ;  lse_i = m + log l ;  both go to HBM",
};

/** What each part of a step does, as an equation, and in a word or two. */
const EQUATIONS = {
  load: ["load", "Q_i , K_j , V_j come from HBM"],
  scores: ["scores", "S_ij = Q_i K_j^T · scale"],
  maximum: ["new maximum", "m = max( m_old , rowmax S_ij )"],
  rescale: ["rescale", "alpha = exp( m_old − m ) ;  alpha · l_old and alpha · O_acc,old"],
  weights: ["weights", "P_ij = exp( S_ij − m )"],
  add: ["add", "l = alpha · l_old + rowsum P_ij ;  O_acc = alpha · O_acc,old + P_ij V_j"],
  store: ["store"],
};

/** An equation from its text: names with their indices set lower, ^T set higher. */
function equation(text) {
  const names = /^(?:[QKVSPO]|[mld]|lse|alpha|O_acc)(?:_|$)/;
  const word = (token) => {
    const [base, transposed] = token.split("^");
    if (!names.test(base)) return token;
    return [symbol(base), transposed && h("sup", {}, transposed)];
  };
  return text.split(" ").map((token, k) => [k > 0 && " ", word(token)]);
}

/** The equations of a step, and beside each the line of the source that does it; the one at work is lit. */
class Lines {
  static key = ({ order, lines }) => [order, lines];

  constructor({ order, lines }) {
    this.rows = Object.entries(EQUATIONS).map(([part, [name, text]]) => {
      const code = lines[part].map((line) => h("code", {}, line));
      const row = h(
        "tr",
        { "data-part": part },
        h("th", { scope: "row" }, name),
        h("td", { class: "flash-equation" }, equation(text ?? STORE[order])),
        h("td", { class: "flash-code" }, code),
      );
      return { part, row };
    });
    const rows = this.rows.map(({ row }) => row);
    this.element = div(
      "flash-panel flash-lines",
      h("table", { "aria-label": "the algorithm: equation and NumPy line" }, h("tbody", {}, rows)),
    );
  }

  take() {}

  draw({ part }) {
    for (const { part: own, row } of this.rows) {
      if (own === part) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    }
  }
}

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
    this.#span(kept, 0, size(reached("rescale") ? row.l_rescaled : row.l_old));
    this.#span(added, size(row.l_rescaled), reached("add") ? size(row.l - row.l_rescaled) : 0);
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

const inBrackets = (x) => (x < 0 ? `(${number(x)})` : number(x));

/** What a frame does to one row, in words. */
const SENTENCES = {
  load: ({ i, j, name, m_old, l_old, order }) => {
    const state =
      m_old === -Infinity ? "has seen no key yet" : `has m = ${number(m_old)} and l = ${number(l_old)}`;
    const rows = order === "fa1" ? `Block ${i} of Q and O, m and l` : j === 0 ? `Block ${i} of Q` : "";
    const cols = `${rows ? "block" : "Block"} ${j} of K and V`;
    if (order === "fa1") return `${rows} come from HBM; ${cols} ${i ? "stays" : "too"}. ${name} ${state}.`;
    return `${rows ? `${rows} and ${cols} come` : `${cols} comes`} from HBM. ${name} ${state} so far.`;
  },
  scores: ({ name, scores, cols }) => {
    const best = scores.reduce((best, s, c) => (s > scores[best] ? c : best), 0);
    return `Scaled products of queries and keys. ${name}: the largest score in this tile is ${number(scores[best])}, of key ${cols[0] + best}.`;
  },
  maximum: ({ name, m_old, m }) => {
    if (m_old === -Infinity) return `${name}: the first scores it sees; their maximum is ${number(m)}.`;
    if (m > m_old) return `${name}: the maximum grew from ${number(m_old)} to ${number(m)}.`;
    return `${name}: the maximum did not grow, it stays ${number(m)}.`;
  },
  rescale: ({ name, m_old, m, alpha, l_old, l_rescaled, l_true }) => {
    const is = l_true === undefined ? "is" : "should be"; // whether a learner's code does so is another matter
    if (m_old === -Infinity)
      return `${name} has summed nothing yet, so there is nothing to rescale: alpha = exp(−∞) = 0.`;
    if (m === m_old) return `${name}: the maximum did not grow; alpha = ${number(alpha)}, nothing is rescaled.`;
    return (
      `${name}: the maximum grew from ${number(m_old)} to ${number(m)}, so everything summed so far ${is} multiplied by ` +
      `alpha = exp(${number(m_old)} − ${inBrackets(m)}) = ${number(alpha)}: l from ${number(l_old)} to ${number(l_rescaled)}, and O_acc too.`
    );
  },
  weights: ({ name, weights }) =>
    `${name}: exp(score − m), at most 1 each, together ${number(weights.reduce((sum, p) => sum + p, 0))}.`,
  add: ({ name, alpha, l_old, l, l_true, weights }) => {
    if (l_true !== undefined) return `${name}: l was ${number(l_old)} and is ${number(l)} now.`;
    const sum = `${number(alpha)} · ${number(l_old)} + ${number(weights.reduce((sum, p) => sum + p, 0))}`;
    return `${name}: l = ${sum} = ${number(l)}; O_acc gains the row of P_ij V_j.`;
  },
  store: ({ i, order }) =>
    order === "fa1"
      ? `O_${i} = O_acc / l goes back to HBM, and m and l with it. S and P of this tile are dropped.`
      : `Row block ${i} has seen all its keys: O_acc / l goes to HBM as O_${i}, with lse. S and P are dropped.`,
};

function sentence(frames, { step, part }, selected) {
  const { order } = frames;
  const row = frames.row(step, selected - step.rows[0]);
  const name = `Row ${selected}`;
  if (part !== "load" && part !== "store") {
    if (row.m === -Infinity)
      return `${name} sees no key yet: all its scores are masked; m stays −∞, l and O_acc stay 0.`;
    if (row.scores.every((s) => s === -Infinity))
      return `${name} sees no key of this tile: m, l and O_acc stay as they are.`;
  }
  return SENTENCES[part]({ ...row, name, order, i: step.i, j: step.j, cols: step.cols });
}
