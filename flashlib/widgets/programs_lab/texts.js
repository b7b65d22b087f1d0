import { put, setText, svg } from "../shared/elements.js";

const NOTHING = { x: 0, y: 0, text: "", name: "offset", mark: "" };

/** Texts of a picture. Their elements stay, as to make new ones would take most of the time of a change. */
export class Texts {
  constructor() {
    this.group = svg("g", {});
    /** @type {SVGTextElement[]} */
    this.all = [];
  }

  /** @param {{ x: number, y: number, text: string, name: string, mark?: string }[]} texts */
  draw(texts) {
    while (this.all.length < texts.length) this.all.push(this.group.appendChild(svg("text", {})));
    this.all.forEach((element, k) => {
      const { x, y, text, name, mark = "" } = texts[k] ?? NOTHING;
      put(element, "x", String(x));
      put(element, "y", String(y));
      put(element, "class", `flash-programs-${name}`);
      put(element, "data-mark", mark);
      setText(element, text);
    });
  }
}
