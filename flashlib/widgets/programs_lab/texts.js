import { put, setText, svg } from "../shared/elements.js";

/** Texts of a picture. Those that stay are not made again, which would take most of the time of a change. */
export class Texts {
  constructor() {
    this.group = svg("g", {});
    /** @type {SVGTextElement[]} */
    this.all = [];
  }

  /** @param {{ x: number, y: number, text: string, name: string, mark?: string }[]} texts */
  draw(texts) {
    while (this.all.length < texts.length) this.all.push(svg("text", {}));
    texts.forEach(({ x, y, text, name, mark }, k) => {
      const element = this.all[k];
      put(element, "x", String(x));
      put(element, "y", String(y));
      put(element, "class", `flash-programs-${name}`);
      if (mark) put(element, "data-mark", mark);
      else element.removeAttribute("data-mark");
      setText(element, text);
    });
    const { childElementCount: before } = this.group;
    if (texts.length > before) this.group.append(...this.all.slice(before, texts.length));
    else for (const element of this.all.slice(texts.length, before)) element.remove();
  }
}
