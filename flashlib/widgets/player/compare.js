// ComparePlayers: both loop orders on the same inputs, step by step, each with its own meters.

const SIDES = {
  fa1: ["FA1", "K and V outside: m, l and O of every row block go to HBM and back"],
  fa2: ["FA2", "Q outside: the state stays on chip, K and V are read again"],
};

class Compare extends Widget {
  constructor(context) {
    super(context, "compare flash-played", "both loop orders, step by step");
    this.transport = new Transport({ unit: "step", moved: () => this.draw() });
    this.status = h("span", { class: "flash-status" });
    this.sentence = h("p", { class: "flash-sentence" });
    this.legend = h("div", {});
    this.controls = new TilingControls(this);
    const { buttons, scrub, speed } = this.transport;
    const header = div(
      "flash-panel flash-header",
      div("flash-controls", buttons, scrub, this.status, speed),
      this.settings(this.controls.elements),
    );
    this.sides = Object.entries(SIDES).map(([order, words]) => new Side(order, words, this));
    const sides = this.sides.map((side) => side.element);
    this.root.append(
      header,
      div("flash-sides", sides),
      div("flash-panel flash-words", this.sentence),
      this.legend,
    );
    this.stops.push(() => this.transport.pause());
    this.start("frames", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.T),
    });
  }

  load(sent) {
    this.sent = sent;
    const both = this.sides.map(({ order }) => new Frames(sent[order]));
    const most = Math.max(
      ...both.flatMap((frames) => [frames.total(), frames.standardMoved()].map(frames.sum)),
      1,
    );
    this.T = both[0].T;
    both.forEach((frames, n) => {
      frames.most = most; // one scale for both
      frames.setDetail(false);
      this.sides[n].load(frames);
    });
    this.controls.show(sent);
    this.legend.replaceChildren(new Legend({ ...both[0], compared: true }).element);
    this.root.dataset.tiles = this.T;
    if (this.colour) this.#paintParts();
    else this.paint();
    this.transport.reset(this.T);
  }

  paint() {
    if (!this.root.isConnected) return; // called again when it is on the page
    this.colour = colourScale(this.root);
    this.#paintParts();
  }

  #paintParts() {
    paintScale(this.root, this.colour);
    this.sides.forEach((side) => side.memory.paint(this.colour));
  }

  draw() {
    if (!this.colour) return;
    const { position } = this.transport;
    const moved = this.sides.map((side) => side.draw(position, this.colour));
    const done = position === this.T;
    const where = done ? `finished, ${this.T} steps` : `step ${position + 1} of ${this.T}`;
    setText(this.status, where);
    setText(this.sentence, this.#words(moved, done));
    this.transport.scrub.setAttribute("aria-valuetext", where);
    this.root.dataset.step = position;
    this.spoken.say(`${where}. ${this.sentence.textContent}`);
  }

  #words([fa1, fa2], done) {
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
    this.parts = new Parts({
      memory: [Memory.key, (frames) => new Memory(frames)],
      grid: [Grid.key, (frames) => new Grid(frames, (k) => owner.transport.seek(k), 180)],
    });
    const { memory, grid } = this.parts.places;
    this.element = h(
      "section",
      { class: "flash-side", "data-order": order },
      h("h3", {}, name, " ", note(words)),
      div("flash-places", memory, grid),
    );
  }

  load(frames) {
    this.frames = frames;
    this.parts.load(frames);
    this.memory = this.parts.made.memory;
  }

  /** Draw a step; return the bytes moved by then. */
  draw(position, colour) {
    const at = this.frames.at(position);
    this.memory.draw(at, colour);
    this.parts.made.grid.draw(at, colour);
    return this.frames.sum(this.frames.moved(at));
  }
}

export default {
  render(context) {
    const compare = new Compare(context);
    return () => compare.stop();
  },
};
