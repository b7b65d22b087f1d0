// The colours of Python code as it is typed: the classes that Pygments gives to the code of a page.

const KEYWORDS = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if
  import in is lambda nonlocal not or pass raise return try while with yield`.split(/\s+/),
);
/** @type {[string, RegExp][]} in this order: what is in a comment or in a string is nothing else */
const KINDS = [
  ["c1", /#.*/],
  ["s1", /[bfru]{0,2}(?:"""[^]*?(?:"""|(?![^]))|'''[^]*?(?:'''|(?![^]))|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/],
  ["mi", /0[box]\w+|(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?/],
  ["nd", /^ *@\w+/],
  ["", /[a-z_]\w*/],
];
const TOKENS = new RegExp(KINDS.map(([, { source }]) => `(${source})`).join("|"), "gim");

/**
 * The pieces of a Python text, each with its class, "" if it has none.
 * @param {string} text
 */
export function pythonPieces(text) {
  /** @type {[string, string][]} */
  const found = [];
  let [end, before] = [0, ""];
  for (const { 0: token, index, ...groups } of text.matchAll(TOKENS)) {
    const [kind] = KINDS[KINDS.findIndex((_, k) => groups[k + 1] !== undefined)];
    const ofName = before === "def" || before === "class" ? "nf" : KEYWORDS.has(token) ? "k" : "";
    found.push(["", text.slice(end, index)], [kind || ofName, token]);
    [end, before] = [index + token.length, token];
  }
  found.push(["", text.slice(end)]);
  return found.filter(([, piece]) => piece);
}

/** The lines of a Python text as elements, in colours. @param {string} text */
export function colouredLines(text) {
  const lines = [document.createElement("div")];
  for (const [kind, piece] of pythonPieces(`${text}\n`))
    piece.split("\n").forEach((part, k) => {
      if (k) {
        lines[lines.length - 1].append("\n");
        lines.push(document.createElement("div"));
      }
      const coloured = Object.assign(document.createElement("span"), { className: kind, textContent: part });
      if (part) lines[lines.length - 1].append(kind ? coloured : part);
    });
  return lines.slice(0, -1);
}
