/** @import { Motion } from "../shared/motion.js" */
/** @import { Result, Standing } from "./types.js" */
import { note, panel, svg } from "../shared/elements.js";

const CIRCLE = { wide: 300, rx: 114, ry: 92, node: 60, chip: 13, flying: 17, bulge: 0.2, from: 0.14, to: 0.86 };

/**
 * Places of P ranks, clockwise from the top.
 * @param {number} P
 * @param {number} y
 */
export function ringPlaces(P, y) {
  const angle = (r) => (2 * Math.PI * r) / P - Math.PI / 2;
  return Array.from({ length: P }, (_, r) => [
    CIRCLE.wide / 2 + CIRCLE.rx * Math.cos(angle(r)),
    y + CIRCLE.ry * Math.sin(angle(r)),
  ]);
}

/**
 * The control point of the way from one place to another: to the left of who goes, so that two ways do not meet.
 * @param {number[]} a
 * @param {number[]} b
 */
export const ringBend = ([ax, ay], [bx, by]) => [
  (ax + bx) / 2 + CIRCLE.bulge * (by - ay),
  (ay + by) / 2 - CIRCLE.bulge * (bx - ax),
];

/**
 * Where on its way from a to b something is, once it has gone a share of it.
 * @param {number[]} a
 * @param {number[]} b
 * @param {number} share
 */
export function ringPoint(a, b, share) {
  const t = CIRCLE.from + (CIRCLE.to - CIRCLE.from) * share;
  const c = ringBend(a, b);
  return a.map((x, k) => (1 - t) ** 2 * x + 2 * t * (1 - t) * c[k] + t ** 2 * b[k]);
}

/** The ranks on a circle, whose keys each has, and those on their way. */
export class RingCircle {
  /** @type {Result} */
  result;
  /** @type {number[][]} */
  places;
  /** @type {{ box: SVGRectElement, chips: SVGGElement, x: number, y: number, element: SVGGElement }[]} */
  nodes;
  /** @type {SVGGElement} */
  flying;

  constructor() {
    this.svg = svg("svg", { role: "img", class: "flash-ring-circle" });
    /** @type {Map<number, number[]>} where copies were drawn last */
    this.before = new Map();
    this.element = panel("ring-ranks", "The ranks", note("squares: whose K and V"), this.svg);
  }

  /** @param {Result} result */
  take(result) {
    this.result = result;
    this.before.clear();
    const P = result.setting.ranks;
    const most = Math.max(...result.held.map((own) => new Set(own.map(([whose]) => whose)).size));
    const high = 20 + (most > 4 ? 2 : 1) * (CIRCLE.chip + 2);
    const middle = CIRCLE.ry + high / 2 + 4;
    this.places = ringPlaces(P, middle);
    this.svg.setAttribute("viewBox", `0 0 ${CIRCLE.wide} ${2 * middle}`);
    const { copies, fault, setting } = result;
    const pairs = new Map(copies.map(([from, to]) => [`${from} ${to}`, [from, to]]));
    this.nodes = this.places.map(([x, y], r) => this.#node(r, x - CIRCLE.node / 2, y - high / 2, high));
    this.flying = svg("g", {});
    this.svg.replaceChildren(
      ...[...pairs.values()].map((pair) => this.#way("way", ...pair)),
      ...(fault?.waits ?? []).map((pair) => this.#way("waits", ...pair)),
      ...this.nodes.map(({ element }) => element),
      this.flying,
    );
    this.svg.setAttribute("aria-label", `${setting.ranks} ranks, ${result.words[0]}`);
  }

  #way(name, from, to) {
    const [a, b] = [this.places[from], this.places[to]];
    const [[x, y], [cx, cy], [ex, ey]] = [ringPoint(a, b, 0), ringBend(a, b), ringPoint(a, b, 1)];
    const [dx, dy] = [ex - cx, ey - cy].map((d) => (6 * d) / Math.hypot(ex - cx, ey - cy));
    const head = `M${ex - dx - dy / 1.5} ${ey - dy + dx / 1.5}L${ex} ${ey}L${ex - dx + dy / 1.5} ${ey - dy - dx / 1.5}`;
    return svg("path", { class: `flash-ring-${name}`, d: `M${x} ${y}Q${cx} ${cy} ${ex} ${ey}${head}` });
  }

  #node(r, x, y, height) {
    const { fault } = this.result;
    const wrong = fault?.rank === r ? " ×" : "";
    const box = svg("rect", { class: "flash-ring-node", x, y, width: CIRCLE.node, height, rx: 5, style: `fill: var(--flash-ring-${r})` });
    const name = this.#text(x + CIRCLE.node / 2, y + 13, `rank ${r}${wrong}`);
    const chips = svg("g", {});
    return { box, chips, x, y, element: svg("g", {}, box, name, chips) };
  }

  #text(x, y, words) {
    return svg("text", { class: "flash-ring-text", x, y, "text-anchor": "middle" }, words);
  }

  #chip(whose, x, y, size, name = "chip") {
    const box = svg("rect", { class: `flash-ring-${name}`, x, y, width: size, height: size, rx: 2, style: whose < 0 ? "" : `fill: var(--flash-ring-${whose})` });
    return svg("g", { "data-whose": whose }, box, this.#text(x + size / 2, y + size / 2 + 4, whose < 0 ? "?" : String(whose)));
  }

  /**
   * @param {Standing} at
   * @param {Motion} motion
   */
  draw(at, motion) {
    const { computes, copies } = this.result;
    this.nodes.forEach(({ box, chips, x, y }, r) => {
      const source = at.now[r] < 0 ? NaN : computes[r][at.now[r]][0];
      box.classList.toggle("flash-ring-busy", at.now[r] >= 0);
      const held = [...new Set(at.held[r])];
      const row = Math.min(held.length, 4);
      const left = x + (CIRCLE.node - row * (CIRCLE.chip + 1) + 1) / 2;
      chips.replaceChildren(
        ...held.map((whose, k) =>
          this.#chip(
            whose,
            left + (k % 4) * (CIRCLE.chip + 1),
            y + 18 + Math.floor(k / 4) * (CIRCLE.chip + 1),
            CIRCLE.chip,
            whose === source ? "chip flash-ring-used" : "chip",
          ),
        ),
      );
    });
    const now = new Map();
    const flights = at.flights.map(({ copy, way }) => {
      const [from, to, whose] = copies[copy];
      const [x, y] = ringPoint(this.places[from], this.places[to], way);
      const [half, size] = [CIRCLE.flying / 2, CIRCLE.flying];
      const flight = this.#chip(whose, -half, -half, size, "chip flash-ring-flying");
      flight.setAttribute("transform", `translate(${x} ${y})`);
      now.set(copy, [x, y]);
      return flight;
    });
    this.flying.replaceChildren(...flights);
    flights.forEach((flight, k) => {
      const { copy } = at.flights[k];
      const [x0, y0] = this.before.get(copy) ?? ringPoint(this.places[copies[copy][0]], this.places[copies[copy][1]], 0);
      const [x, y] = now.get(copy);
      if (x0 !== x || y0 !== y) motion.play(flight, [x0, x].map((at_x, n) => ({ transform: `translate(${at_x}px, ${[y0, y][n]}px)` })));
    });
    this.before = now;
  }
}
