/** @import { Compared, Result } from "./types.js" */
import { disclosure } from "../shared/controls.js";
import { div, h, panel, setText, svg } from "../shared/elements.js";
import { ringBox, ringFill, ringPercent, ringTime } from "./look.js";

const MINI = { wide: 240, bar: 5, gap: 2 }; // units of a small picture

/** The same ranks with each layout, side by side: small lanes, one axis, and the sums; folded on a phone. */
export class RingLayouts {
  /**
   * @param {string[]} names
   * @param {(layout: string) => void} ask
   */
  constructor(names, ask) {
    this.cards = names.map((name) => {
      const picture = svg("svg", { "aria-hidden": "true", preserveAspectRatio: "none", class: "flash-ring-mini" });
      const sums = h("span", { class: "flash-ring-sums" });
      const total = h("span", { class: "flash-strong" });
      const button = h("button", { type: "button", class: "flash-asks flash-ring-card", onclick: () => ask(name) }, h("span", { class: "flash-ring-head" }, name, total), picture, sums);
      return { name, button, picture, sums, total };
    });
    const cards = div("flash-ring-cards", this.cards.map(({ button }) => button));
    const what = h("p", { class: "flash-note" }, "A copy is hidden while its rank computes.");
    const fold = disclosure("show", (open) => this.element.classList.toggle("flash-open", open));
    this.element = panel("ring-compare", "Each layout, on one axis of time", fold, cards, what);
  }

  /** @param {Result} result */
  take({ compare, setting }) {
    const end = Math.max(...compare.map((one) => one.end));
    compare.forEach((one, k) => {
      const { button, picture, sums, total } = this.cards[k];
      button.setAttribute("aria-pressed", one.layout === setting.cut);
      button.title = one.about;
      setText(total, one.fault || ringTime(one.sums.total));
      setText(sums, ringSums(one));
      this.#plot(picture, one, end, setting.ranks);
    });
  }

  /** @param {SVGSVGElement} picture @param {Compared} one @param {number} end @param {number} P */
  #plot(picture, one, end, P) {
    const x = (time) => (MINI.wide * Math.min(time, one.end)) / (end || 1);
    const high = MINI.bar + MINI.gap;
    picture.setAttribute("viewBox", `0 0 ${MINI.wide} ${P * high}`);
    const ground = ringBox(0, 0, x(one.end), P * high);
    const bars = one.computes.flatMap((own, r) =>
      own.map(([hop, start, stop]) => svg("path", { style: ringFill(r, hop, P), d: ringBox(x(start), r * high + 1, Math.max(0, x(stop) - x(start) - 0.5), MINI.bar) })),
    );
    picture.replaceChildren(svg("path", { class: "flash-ring-ground", d: ground }), ...bars);
  }
}

/** @param {Compared} one */
function ringSums({ fault, sums: { total, idle, sent, hidden } }) {
  if (fault) return `at time ${ringTime(total)}`;
  const sums = `idle ${ringPercent(idle)}, ${sent} B`;
  return hidden === null ? sums : `${sums}, ${ringPercent(hidden)} of copies hidden`;
}
