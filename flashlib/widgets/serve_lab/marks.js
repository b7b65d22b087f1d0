// What a request does in a step, as marks on its lane. The letters are those of account.py.

import { div, h, svg } from "../shared/elements.js";

export const MARKS = {
  w: ["wait", "waits"],
  p: ["read", "reads this many tokens"],
  a: ["again", "computes them again"],
  d: ["token", "writes a token"],
  i: ["held", "has a slot, not a turn"],
  x: ["preempted", "is preempted"],
  e: ["empty", "its slot stays empty"],
  end: ["end", "its last token"],
};

export const box = (x, y, wide, high) => `M${x} ${y}h${wide}v${high}h${-wide}z`;

/** A mark as a path: in a step that begins at x and is `wide`, on a lane at y that is `high`. */
export function markPath(letter, x, y, wide, high) {
  const middle = y + high / 2;
  const arm = Math.min(4, wide / 2 - 1);
  switch (letter) {
    case "w":
    case "i":
      return `M${x} ${middle}h${wide}`;
    case "p":
    case "a":
      return box(x + 1, y + 1, wide - 2, high - 2);
    case "d":
      return box(x + 0.75, y + 3, wide - 1.5, high - 6);
    case "e":
      return box(x, y + 3, wide, high - 6);
    case "x":
      return `M${x + wide / 2 - arm} ${middle - arm}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`;
    default:
      return `M${x + wide - 1} ${y}v${high}`;
  }
}

/** The path of a token that was written at the end of a prompt: at the bottom of its box. */
export const footPath = (x, y, wide, high) => box(x + 1, y + high - 3.5, wide - 2, 3);

/** The meaning of the marks. */
export function marksLegend() {
  const one = (letter) => {
    const [name, text] = MARKS[letter];
    const paths = [markPath(letter, 1, 0, 18, 17)].map((d) => svg("path", { class: `flash-serving-${name}`, d }));
    return h("span", {}, svg("svg", { viewBox: "0 0 20 17", "aria-hidden": "true" }, paths), text);
  };
  const bar = (name, text) => {
    const path = svg("path", { class: `flash-serving-bar-${name}`, d: box(2, 3, 16, 11) });
    return h("span", {}, svg("svg", { viewBox: "0 0 20 17", "aria-hidden": "true" }, path), text);
  };
  const pages = [bar("used", "pages used"), bar("kept", "pages kept")];
  const request = h("span", {}, h("b", {}, "0: 5 + 17"), "request 0, prompt + answer");
  return div("flash-legend flash-note", request, Object.keys(MARKS).map(one), pages);
}
