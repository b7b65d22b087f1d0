// The algorithm: the equation of each part of a step, and beside it the line of the source that does it.

/** An equation from its text: names with their indices set lower, ^T set higher. */
function equation(text) {
  const names = /^(?:d?[QKVSPO]|[mld]|lse|alpha|delta|O_acc)(?:_|$)/;
  const word = (token) => {
    const [base, transposed] = token.split("^");
    if (!names.test(base)) return token;
    return [symbol(base), transposed && h("sup", {}, transposed)];
  };
  return text.split(" ").map((token, k) => [k > 0 && " ", word(token)]);
}

/** The equations of a step, and beside each the line of the source that does it; the one at work is lit. */
class Lines {
  /** lines: of each part, those of the source; equations: of each part of a step, what it does in a word or two, and as an equation. */
  constructor(lines, equations) {
    this.rows = Object.entries(equations).map(([part, [name, text]]) => {
      const code = lines[part].map((line) => h("code", {}, line));
      const row = h(
        "tr",
        { "data-part": part },
        h("th", { scope: "row" }, name),
        h("td", { class: "flash-equation" }, equation(text)),
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
