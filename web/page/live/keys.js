// Keys for code below an editor: on a phone's keyboard most are two presses away, and some are missing.

/** @param {HTMLTextAreaElement} field @param {number} to */
const go = (field, to) => field.setSelectionRange(to, to);

/** Move the caret to a line above or below, if there is one. @param {HTMLTextAreaElement} field @param {-1 | 1} by */
function goLine(field, by) {
  const lines = field.value.split("\n");
  const before = field.value.slice(0, field.selectionEnd).split("\n");
  const to = before.length - 1 + by;
  if (!(to in lines)) return;
  const start = lines.slice(0, to).join("\n").length + (to ? 1 : 0);
  go(field, start + Math.min(String(before.at(-1)).length, lines[to].length));
}

/** @type {[string, string, (field: HTMLTextAreaElement) => void][]} what is on a key, its name, and what it does */
const MOVES = [
  ["←", "left", (field) => go(field, Math.max(0, field.selectionStart - 1))],
  ["→", "right", (field) => go(field, field.selectionEnd + 1)],
  ["↑", "line above", (field) => goLine(field, -1)],
  ["↓", "line below", (field) => goLine(field, 1)],
  [
    "↶",
    "undo",
    (field) => {
      document.execCommand("undo"); // it selects what it brings back, and the next key would replace that
      go(field, field.selectionEnd);
    },
  ],
];

/** Scroll to the line with the caret, between the header and the keys. @param {HTMLTextAreaElement} field */
export function showCaret(field) {
  const line = field.value.slice(0, field.selectionEnd).split("\n").length - 1;
  field.previousElementSibling?.children[line].scrollIntoView({ block: "nearest" });
}

/**
 * @param {HTMLTextAreaElement} field
 * @param {(text: string) => void} insert at the caret
 * @param {(back: boolean) => void} shift indents
 * @param {(() => void) | undefined} run unless there is a button for it
 */
export function keysFor(field, insert, shift, run) {
  const row = Object.assign(document.createElement("div"), { className: "keys", hidden: true, role: "group", ariaLabel: "keys for code" });
  // It stays when the field loses the focus: below, a button that is being pressed must not move.
  field.addEventListener("focus", () => (row.hidden = false), { once: true });
  /** @param {string} text @param {string} name @param {(field: HTMLTextAreaElement) => void} press */
  const add = (text, name, press) => {
    const key = Object.assign(document.createElement("button"), { type: "button", textContent: text, ariaLabel: name, tabIndex: -1 });
    key.addEventListener("click", () => {
      field.focus();
      press(field);
      if (document.activeElement === field) showCaret(field); // not when it runs: what it says is elsewhere
    });
    row.append(key);
  };
  for (const sign of "()[]:=,._*+-") add(sign, sign, () => insert(sign));
  add("⇤", "unindent", () => shift(true));
  add("⇥", "indent", () => shift(false));
  for (const move of MOVES) add(...move);
  if (run)
    add("▶", "run", () => {
      field.blur(); // the phone's keyboard would cover what comes
      run();
    });
  // The field keeps the focus, so that the phone's keyboard stays.
  for (const kind of ["pointerdown", "mousedown"]) row.addEventListener(kind, (event) => event.preventDefault());
  return row;
}

/** Tell the style sheet how high the phone's keyboard is, which covers the end of the window, and show the caret above. */
export function watchKeyboard() {
  const { visualViewport: seen } = window;
  const tell = () => {
    const height = seen ? Math.max(0, Math.round(innerHeight - seen.height - seen.offsetTop)) : 0;
    document.documentElement.style.setProperty("--keyboard", `${height}px`);
  };
  for (const kind of ["resize", "scroll"]) seen?.addEventListener(kind, tell);
  seen?.addEventListener("resize", () => {
    const { activeElement } = document;
    if (activeElement instanceof HTMLTextAreaElement) showCaret(activeElement);
  });
}
