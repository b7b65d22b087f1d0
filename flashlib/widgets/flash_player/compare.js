// ComparePlayers: both loop orders on the same inputs, step by step, each with its own meters.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Colours } from "../shared/colours.js" */
/** @import { At, CompareTraits, ForwardStep, SentBoth } from "./types.js" */
import { paintScale } from "../shared/colours.js";
import { div, h, headline, note } from "../shared/elements.js";
import { number } from "../shared/number_text.js";
import { BytesChart } from "./bytes.js";
import { bytes, Frames } from "./frames.js";
import { Grid } from "./grid.js";
import { Legend } from "./legend.js";
import { Memory } from "./memory.js";
import { Stepped } from "./stepped.js";
import { Views } from "./views.js";

/** @type {Record<"fa1" | "fa2", [name: string, words: string]>} */
const SIDES = {
  fa1: ["FA1", "K and V in the outer loop: m, l and O of every row block go to HBM and back"],
  fa2: ["FA2", "Q in the outer loop: the state stays on chip, K and V are read again"],
};

/** @extends {Stepped<CompareTraits, ForwardStep, Frames, { legend: Legend }>} */
class Compare extends Stepped {
  /** @type {number[]} */
  moved;

  /** @param {Context<CompareTraits>} context */
  constructor(context) {
    const legend = ({ learner, sram }) => new Legend({ learner, sram, compared: true });
    super(context, "compare", "both loop orders, step by step", { legend: [Legend.key, legend] }, { inParts: false });
    this.sides = [new Side("fa1", SIDES.fa1, this), new Side("fa2", SIDES.fa2, this)];
    const sides = this.sides.map((side) => side.element);
    const words = div("flash-panel flash-words", this.sentence);
    this.chart = new BytesChart();
    this.top.append(this.chart.element);
    this.root.prepend(headline("Two loop orders, one result: which moves fewer bytes?").element);
    this.body.append(div("flash-sides", sides), words, this.views.places.legend);
    this.begin();
  }

  /** The first step at which FA1 returns to a row block: it reads back a state that FA2 has kept on chip. */
  opening() {
    const seen = new Set();
    const back = this.frames.steps.findIndex(({ i }) => seen.has(i) || !seen.add(i));
    return Math.max(back, 0);
  }

  /** @param {SentBoth} sent */
  unpack(sent) {
    const both = this.sides.map(({ order }) => new Frames(sent[order]));
    const moved = both.flatMap((frames) => [frames.total(), frames.standardMoved()].map(frames.sum));
    const most = Math.max(...moved, 1); // both share a scale, for bytes and for colours
    /** @type {Record<string, number>} */
    const peaks = {};
    for (const name of Object.keys(both[0].peaks))
      peaks[name] = Math.max(...both.map((frames) => frames.peaks[name]));
    both.forEach((frames, n) => {
      frames.setDetail(false);
      frames.most = most;
      frames.peaks = peaks;
      this.sides[n].load(frames);
    });
    this.chart.take({ fa1: both[0], fa2: both[1] });
    return both[0];
  }

  paintViews() {
    paintScale(this.root, this.colour);
    this.sides.forEach((side) => side.views.made.memory.paint(this.colour));
  }

  /** @param {At<ForwardStep>} at */
  drawViews({ frame }) {
    this.moved = this.sides.map((side) => side.draw(frame, this.colour, this.motion));
    this.chart.draw(frame);
  }

  /** @param {number} k */
  placed(k) {
    return `step ${k + 1} of ${this.frames.T}`; // each side has its own tile
  }

  words() {
    return this.#words(false);
  }

  ending() {
    return this.#words(true);
  }

  #words(done) {
    const [fa1, fa2] = this.moved;
    const [less, more] = fa1 < fa2 ? ["FA1", "FA2"] : ["FA2", "FA1"];
    const times = number(Math.max(fa1, fa2) / Math.max(1, Math.min(fa1, fa2)));
    const compared = fa1 === fa2 ? "the same amount" : `${more} ${times} times as much as ${less}`;
    const moved = `FA1 has moved ${bytes(fa1)} and FA2 ${bytes(fa2)}, ${compared}.`;
    return done ? `${moved} Both have the same O.` : moved;
  }
}

/** One of the two orders. */
class Side {
  /** @type {Frames} */
  frames;

  /**
   * @param {"fa1" | "fa2"} order
   * @param {[name: string, words: string]} title
   * @param {Compare} owner
   */
  constructor(order, [name, words], owner) {
    this.order = order;
    /** @type {Views<Frames, { memory: Memory, grid: Grid }>} */
    this.views = new Views({
      memory: [Memory.key, (frames) => new Memory(frames)],
      grid: [Grid.key, () => new Grid((k) => owner.transport.seek(k), 100)],
    });
    const { memory, grid } = this.views.places;
    this.element = h(
      "section",
      { class: "flash-side", "data-order": order },
      h("h3", {}, name, " ", note(words)),
      div("flash-places", memory, grid),
    );
  }

  /** @param {Frames} frames */
  load(frames) {
    this.frames = frames;
    this.views.load(frames);
  }

  /**
   * Draw a step; return the bytes moved by then.
   * @param {number} position
   * @param {Colours} colour
   * @param {Motion} motion
   */
  draw(position, colour, motion) {
    const at = this.frames.at(position);
    const { memory, grid } = this.views.made;
    memory.draw(at, colour, motion);
    grid.draw(at, colour);
    return this.frames.sum(this.frames.moved(at));
  }
}

export default {
  /** @param {Context<CompareTraits>} context */
  render(context) {
    const compare = new Compare(context);
    return () => compare.stop();
  },
};
