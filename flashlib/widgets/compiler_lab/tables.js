// A compiled kernel: the resources that it takes of the GPU, and its instructions.

/** @import { Result } from "./types.js" */
import { div, h, note, panel } from "../shared/elements.js";

/** What a program takes of each resource. */
export class Takes {
  constructor() {
    this.list = h("dl", {});
    this.element = panel("compiler-takes", "Registers and memory", note("of what the GPU has"), this.list);
  }

  /** @param {Result} result */
  draw({ takes }) {
    const bar = (share) => {
      const width = (part) => `width:${(100 * part) / Math.max(share, 1)}%`;
      const over = h("i", { class: "flash-compiler-over", style: width(share - 1) });
      const limit = h("b", { style: `left:${100 / share}%` });
      const held = h("i", { style: width(Math.min(share, 1)) });
      return h("dd", { class: "flash-compiler-track", "aria-hidden": "true" }, held, share > 1 && [over, limit]);
    };
    const row = ({ name, text, share, note: words, bad }) =>
      h(
        "div",
        {},
        h("dt", {}, name),
        h("dd", {}, bad && h("span", { class: "flash-compiler-bad" }, "▲ "), text),
        share !== null && bar(share),
        words && h("dd", { class: "flash-note" }, words),
      );
    this.list.replaceChildren(...takes.map(row));
  }
}

/** Which instructions occur, and how often; `choose` is called with the name of one, to mark its lines. */
export class Instructions {
  /** @param {(name: string) => void} choose */
  constructor(choose) {
    this.choose = choose;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    this.head = h("thead", {});
    this.body = h("tbody", {});
    const table = h("table", {}, this.head, this.body);
    const words = note("as written; a loop counts once; click one to mark its lines");
    this.element = panel("compiler-instructions", "Instructions of one thread", words, table);
  }

  /** @param {Result} result */
  draw({ columns, instructions, listings }) {
    const listed = new Set(Object.values(listings).flatMap(({ counted }) => Object.keys(counted)));
    const over = (text) => h("th", { scope: "colgroup", colspan: columns.length }, text);
    const names = [...columns, ...columns].map((name) => h("th", { scope: "col" }, name));
    this.head.replaceChildren(
      h("tr", {}, h("td", {}), over("loop over tiles"), over("whole kernel")),
      h("tr", {}, h("td", {}), names),
    );
    const cell = (count) =>
      h("td", { class: count ? null : "flash-compiler-none" }, count?.toLocaleString("en") ?? "–");
    const row = ({ name, meaning, counts }) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, div("flash-compiler-name", listed.has(name) ? this.#button(name) : h("span", {}, name), note(meaning))),
        counts.map(cell),
      );
    this.buttons = [];
    this.body.replaceChildren(...instructions.map(row));
  }

  #button(name) {
    const look = { type: "button", class: "flash-compiler-pick", "aria-pressed": "false", "data-name": name };
    const button = h("button", { ...look, onclick: () => this.choose(name) }, name);
    this.buttons.push(button);
    return button;
  }

  /**
   * Show which instruction is marked, if any.
   * @param {string | null} name
   */
  press(name) {
    for (const button of this.buttons) button.ariaPressed = String(button.dataset.name === name);
  }
}
