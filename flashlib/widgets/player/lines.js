// The algorithm: the equation of each part of a step, and beside it the line of the source that does it.

const BY_ORDER = {
  fa1: {
    load: "Q_i , O_i , m and l come from HBM; K_j , V_j stay",
    store: "O_i = O_acc / l ;  O_i , m and l go to HBM",
  },
  fa2: {
    load: "K_j , V_j come from HBM; Q_i stays",
    store: "O_i = O_acc / l ;  lse_i = m + log l ;  both go to HBM",
  },
};

/** What each part of a step does, as an equation, and in a word or two. */
const EQUATIONS = {
  load: ["load"],
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
        h("td", { class: "flash-equation" }, equation(text ?? BY_ORDER[order][part])),
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
