/** @import { Motion } from "../shared/motion.js" */
/** @import { Result, Standing } from "./types.js" */
import { note, panel, svg } from "../shared/elements.js";
import { ringClear, ringPlaces, ringPoint, ringWay } from "./paths.js";

const CIRCLE = { wide: 300, ry: 102, node: 64, chip: 13, flying: 16, edge: 12 };

/** @typedef {ReturnType<typeof ringWay>} Way */

/** The ranks on a circle, whose keys each has, and the keys on their way. */
export class RingCircle {
  /** @type {Result} */
  result;
  /** @type {number[][]} */
  places;
  /** @type {{ box: SVGRectElement, chips: SVGGElement, x: number, y: number, element: SVGGElement }[]} */
  nodes;
  /** @type {SVGGElement} */
  flying;
  /** @type {Map<string, Way>} by the ranks that it leads from and to */
  ways;
  /** @type {number} of a rank's box */
  high;

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
    const at = (own, time) => new Set(own.filter(([, start, stop]) => start <= time && time < stop).map(([whose]) => whose));
    const most = Math.max(...result.held.map((own) => Math.max(...own.map(([, start]) => at(own, start).size))));
    const high = (this.high = 20 + (most > 4 ? 2 : 1) * (CIRCLE.chip + 2));
    const middle = CIRCLE.ry + high / 2 + CIRCLE.edge;
    this.places = ringPlaces(P, middle);
    this.svg.setAttribute("viewBox", `0 0 ${CIRCLE.wide} ${2 * middle}`);
    const { copies, fault, setting } = result;
    const waits = fault?.waits ?? [];
    const pairs = new Map(copies.map(([from, to]) => [`${from} ${to}`, [from, to]]));
    const all = [...pairs.values(), ...waits];
    this.ways = new Map(all.map(([from, to]) => [`${from} ${to}`, ringWay(from, to, this.places, high)]));
    const ways = [...pairs.values()].filter(([from, to]) => pairs.size <= 2 * P || (to - from + P) % P === 1); // else a thicket
    this.nodes = this.places.map(([x, y], r) => this.#node(r, x - CIRCLE.node / 2, y - high / 2, high));
    this.flying = svg("g", {});
    this.svg.replaceChildren(
      ...ways.map((pair) => this.#way("way", ...pair)),
      ...waits.map((pair) => this.#way("waits", ...pair)),
      this.flying, // below the boxes that it passes
      ...this.nodes.map(({ element }) => element),
    );
    this.svg.setAttribute("aria-label", `${setting.ranks} ranks, ${result.words[0]}`);
  }

  #way(name, from, to) {
    const [a, b] = [this.places[from], this.places[to]];
    const way = this.#wayOf(from, to);
    const points = Array.from({ length: 13 }, (_, k) => ringPoint(a, b, k / 12, way));
    const [[px, py], [ex, ey]] = points.slice(-2);
    const [dx, dy] = [ex - px, ey - py].map((d) => (6 * d) / Math.hypot(ex - px, ey - py));
    const head = `M${ex - dx - dy / 1.5} ${ey - dy + dx / 1.5}L${ex} ${ey}L${ex - dx + dy / 1.5} ${ey - dy - dx / 1.5}`;
    return svg("path", { class: `flash-ring-${name}`, d: `M${points.map((point) => point.join(" ")).join("L")}${head}` });
  }

  /** @returns {Way} */
  #wayOf(from, to) {
    return /** @type {Way} */ (this.ways.get(`${from} ${to}`));
  }

  #node(r, x, y, height) {
    const { fault } = this.result;
    const label = fault?.rank === r ? `rank ${r} ×` : `rank ${r}`;
    const box = svg("rect", { class: "flash-ring-node", x, y, width: CIRCLE.node, height, rx: 5, style: `fill: var(--flash-ring-${r})` });
    const name = this.#text(x + CIRCLE.node / 2, y + 13, label);
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
    const pointOf = (copy, way) => {
      const [from, to] = copies[copy];
      return ringPoint(this.places[from], this.places[to], way, this.#wayOf(from, to));
    };
    const flights = at.flights.map(({ copy, way }) => {
      const whose = copies[copy][2];
      const [x, y] = pointOf(copy, way);
      const [half, size] = [CIRCLE.flying / 2, CIRCLE.flying];
      const flight = this.#chip(whose, -half, -half, size, "chip flash-ring-flying");
      flight.setAttribute("transform", `translate(${x} ${y})`);
      const isOnAnother = [...now.values()].some((other) => Math.hypot(x - other[0], y - other[1]) < size);
      const isClear = this.places.every((place) => ringClear([x, y], place, this.high));
      if (isOnAnother || !isClear) flight.lastChild?.remove(); // numbers must not overlap other text
      now.set(copy, [x, y]);
      return flight;
    });
    this.flying.replaceChildren(...flights);
    flights.forEach((flight, k) => {
      const { copy } = at.flights[k];
      const [x0, y0] = this.before.get(copy) ?? pointOf(copy, 0);
      const [x, y] = now.get(copy);
      if (x0 !== x || y0 !== y) motion.play(flight, [x0, x].map((at_x, n) => ({ transform: `translate(${at_x}px, ${[y0, y][n]}px)` })));
    });
    this.before = now;
  }
}
