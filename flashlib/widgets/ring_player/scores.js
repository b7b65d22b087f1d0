/** @import { Result, Standing } from "./types.js" */
import { h, note, panel, setText, svg } from "../shared/elements.js";
import { ringBox, ringFill } from "./look.js";
import { scoreRuns } from "./standing.js";

const EDGE = 18; // units of the picture on the left and above, for the ranks that have the rows and the keys
const SCORES = 256; // units, the side of S

/** The scores, in the colour of the rank that computes them, paler with each hop, and filled once they are computed. */
export class RingScores {
  /** @type {Result} */
  result;
  /** @type {number[]} */
  rank;
  /** @type {{ path: SVGPathElement, r: number, source: number }[]} */
  blocks;
  /** @type {SVGRectElement} */
  mark;

  /**
   * pressed: called with the row that was clicked.
   * @param {(row: number) => void} pressed
   */
  constructor(pressed) {
    this.svg = svg("svg", { role: "img", class: "flash-ring-scores" });
    this.where = note();
    this.element = panel("ring-matrix", "The scores S", note("rows of Q, columns of K"), this.svg, h("p", {}, this.where));
    this.svg.addEventListener("pointermove", (event) => this.#tell(event));
    this.svg.addEventListener("pointerleave", () => this.#rest());
    this.svg.addEventListener("click", (event) => {
      const cell = this.#under(event);
      if (cell) pressed(cell[0]);
    });
  }

  /**
   * @param {Result} result
   * @param {number[]} rank of each token
   */
  take(result, rank) {
    this.result = result;
    this.rank = rank;
    const { N, ranks: P } = result.setting;
    const cell = SCORES / N;
    const paths = new Map();
    for (const [row, first, count, r, source] of scoreRuns(result.seen, rank)) {
      const key = r * P + source;
      const d = ringBox(EDGE + first * cell, EDGE + row * cell, count * cell, cell);
      paths.set(key, (paths.get(key) ?? "") + d);
    }
    this.blocks = [...paths].map(([key, d]) => {
      const [r, source] = [Math.floor(key / P), key % P];
      const hop = (r - source + P) % P;
      return { r, source, path: svg("path", { d, style: ringFill(r, hop, P), "data-pair": `${r} ${source}` }) };
    });
    this.mark = svg("rect", { class: "flash-ring-row", x: EDGE, width: SCORES, height: cell });
    const side = SCORES + EDGE;
    this.svg.setAttribute("viewBox", `0 0 ${side + 1} ${side + 1}`);
    const frame = svg("path", { class: "flash-ring-frame", d: ringBox(EDGE - 0.5, EDGE - 0.5, SCORES + 1, SCORES + 1) });
    this.svg.replaceChildren(...this.#edges(cell), ...this.blocks.map(({ path }) => path), frame, this.mark);
    this.svg.setAttribute("aria-label", `scores of ${N} rows and keys, by the rank that computes them and by hop`);
    this.#rest();
  }

  /** The ranks that have the rows, and the keys: a band, with the rank's number if there is room. */
  #edges(cell) {
    const edges = [];
    for (let first = 0, next; first < this.rank.length; first = next) {
      for (next = first + 1; this.rank[next] === this.rank[first]; ) next++;
      const [at, long, style] = [EDGE + first * cell, (next - first) * cell, `fill: var(--flash-ring-${this.rank[first]})`];
      for (const [x, y, wide, high] of [[0, at, 14, long], [at, 0, long, 14]]) {
        edges.push(svg("path", { class: "flash-ring-band", d: ringBox(x, y, wide, high), style }));
        const text = { class: "flash-ring-text", x: x + wide / 2, y: y + high / 2 + 4, "text-anchor": "middle" };
        if (long >= 12) edges.push(svg("text", text, String(this.rank[first])));
      }
    }
    return edges;
  }

  /** @param {Standing} at */
  draw(at) {
    const { computes } = this.result;
    for (const { path, r, source } of this.blocks) {
      const [first, last] = [computes[r].findIndex(([of]) => of === source), computes[r].findLastIndex(([of]) => of === source)];
      const begun = first >= 0 && (first < at.done[r] || at.now[r] === first);
      const state = !begun ? "todo" : last < at.done[r] ? "done" : "now"; // a learner's rank may take several turns
      const name = `flash-ring-${state}`;
      if (path.getAttribute("class") !== name) path.setAttribute("class", name);
    }
  }

  /** @param {number} row */
  choose(row) {
    this.mark.setAttribute("y", EDGE + (row * SCORES) / this.result.setting.N);
  }

  #rest() {
    setText(this.where, "point at a score; click to choose its row");
  }

  #under(event) {
    const box = this.svg.getBoundingClientRect();
    const { N } = this.result.setting;
    const unit = (SCORES + EDGE + 1) / box.width;
    const [row, key] = [event.clientY - box.top, event.clientX - box.left].map((at) => Math.floor(((at * unit - EDGE) * N) / SCORES));
    return row >= 0 && row < N && key >= 0 && key < N ? [row, key] : null;
  }

  #tell(event) {
    const cell = this.#under(event);
    if (!cell) return this.#rest();
    const [row, key] = cell;
    const { ranks: P } = this.result.setting;
    const [r, source] = [this.rank[row], this.rank[key]];
    const seen = this.result.seen[row].some(([first, end]) => first <= key && key < end);
    const what = seen ? `hop ${(r - source + P) % P}` : "masked";
    setText(this.where, `row ${row}, rank ${r} · key ${key}, rank ${source}: ${what}`);
  }
}
