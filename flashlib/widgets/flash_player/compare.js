// ComparePlayers: both loop orders on the same inputs, step by step, each with its own meters.

import { paintScale } from "../shared/colours.js";
import { div, h, note } from "../shared/elements.js";
import { number } from "../shared/numbers.js";
import { bytes, Frames } from "./frames.js";
import { Grid } from "./grid.js";
import { Legend } from "./legend.js";
import { Memory } from "./memory.js";
import { Stepped } from "./stepped.js";
import { Views } from "./views.js";

const SIDES = {
  fa1: ["FA1", "K and V outside: m, l and O of every row block go to HBM and back"],
  fa2: ["FA2", "Q outside: the state stays on chip, K and V are read again"],
};

class Compare extends Stepped {
  constructor(context) {
    const kinds = { legend: [Legend.key, (frames) => new Legend({ ...frames, compared: true })] };
    super(context, "compare", "both loop orders, step by step", kinds, { inParts: false });
    this.sides = Object.entries(SIDES).map(([order, words]) => new Side(order, words, this));
    const sides = this.sides.map((side) => side.element);
    const words = div("flash-panel flash-words", this.sentence);
    this.body.append(div("flash-sides", sides), words, this.views.places.legend);
    this.begin();
  }

  unpack(sent) {
    const both = this.sides.map(({ order }) => new Frames(sent[order]));
    const moved = both.flatMap((frames) => [frames.total(), frames.standardMoved()].map(frames.sum));
    const most = Math.max(...moved, 1); // one scale for both, of bytes and of colours
    const peaks = {};
    for (const name of Object.keys(both[0].peaks))
      peaks[name] = Math.max(...both.map((frames) => frames.peaks[name]));
    both.forEach((frames, n) => {
      frames.setDetail(false);
      this.sides[n].load(Object.assign(frames, { most, peaks }));
    });
    return both[0];
  }

  paintViews() {
    paintScale(this.root, this.colour);
    this.sides.forEach((side) => side.memory.paint(this.colour));
  }

  drawViews({ frame }) {
    this.moved = this.sides.map((side) => side.draw(frame, this.colour, this.motion));
  }

  tile() {
    return ""; // each side has its own
  }

  words() {
    return this.#words(false);
  }

  ending() {
    return this.#words(true);
  }

  #words(done) {
    const [fa1, fa2] = this.moved;
    const standard = bytes(this.sides[0].frames.sum(this.sides[0].frames.standardMoved()));
    const [less, more] = fa1 < fa2 ? ["FA1", "FA2"] : ["FA2", "FA1"];
    const times = number(Math.max(fa1, fa2) / Math.max(1, Math.min(fa1, fa2)));
    const compared = fa1 === fa2 ? "as much as each other" : `${more} ${times} times as much as ${less}`;
    const moved = `FA1 has moved ${bytes(fa1)} and FA2 ${bytes(fa2)}, ${compared}.`;
    return `${moved} ${done ? "Both have the same O. " : ""}Standard attention moves ${standard} in all.`;
  }
}

/** One of the two orders. */
class Side {
  constructor(order, [name, words], owner) {
    this.order = order;
    this.views = new Views({
      memory: [Memory.key, (frames) => new Memory(frames)],
      grid: [Grid.key, () => new Grid((k) => owner.transport.seek(k), 120)],
    });
    const { memory, grid } = this.views.places;
    this.element = h(
      "section",
      { class: "flash-side", "data-order": order },
      h("h3", {}, name, " ", note(words)),
      div("flash-places", memory, grid),
    );
  }

  load(frames) {
    this.frames = frames;
    this.views.load(frames);
    this.memory = this.views.made.memory;
  }

  /** Draw a step; return the bytes moved by then. */
  draw(position, colour, motion) {
    const at = this.frames.at(position);
    this.memory.draw(at, colour, motion);
    this.views.made.grid.draw(at, colour);
    return this.frames.sum(this.frames.moved(at));
  }
}

export default {
  render(context) {
    const compare = new Compare(context);
    return () => compare.stop();
  },
};
