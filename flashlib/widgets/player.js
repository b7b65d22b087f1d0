// FlashPlayer: plays the steps that Python recorded. All numbers drawn are read from the one buffer it sent.

class Player extends Widget {
  constructor(context) {
    super(context, "player", "FlashAttention, step by step");
    this.offset = 0; // of the selected row in its block
    this.transport = new Transport({ unit: "step", moved: () => this.draw() });
    this.sliders = [
      slider("B_r", "B_r, rows of a block of Q", (B_r) => this.ask({ B_r })),
      slider("B_c", "B_c, rows of a block of K and V", (B_c) => this.ask({ B_c })),
    ];
    const orders = [
      ["fa1", "FA1", "FlashAttention: K and V outside"],
      ["fa2", "FA2", "FlashAttention-2: Q outside"],
    ];
    this.order = choice("order", "loop order", orders, (order) => this.ask({ order }));
    this.causal = toggle("causal", (causal) => this.ask({ causal }));
    this.status = h("span", { class: "flash-status" });
    this.sentence = h("p", { class: "flash-sentence" });
    this.body = div("flash-body");
    const { buttons, scrub, speed } = this.transport;
    const settings = [...this.sliders, this.order, this.causal].map((control) => control.element);
    const header = div(
      "flash-panel flash-header",
      div("flash-controls", buttons, scrub, this.status, speed),
      this.settings(settings),
    );
    this.root.append(header, this.body);
    this.stops.push(() => this.transport.pause());
    this.start("frames", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.frames.T),
      ArrowUp: () => this.select(this.selected - 1),
      ArrowDown: () => this.select(this.selected + 1),
    });
  }

  load(sent) {
    const frames = (this.frames = new Frames(sent));
    this.sliders[0].show(frames.B_r, frames.range_B_r);
    this.sliders[1].show(frames.B_c, frames.range_B_c);
    this.order.show(frames.order);
    this.causal.show(frames.causal);
    this.memory = new Memory(frames);
    this.grid = new Grid(frames, (k) => this.transport.seek(k));
    this.chip = new Chip(frames, (row) => this.select(row));
    const places = div("flash-places", this.memory.element, this.grid.element, this.chip.element);
    this.body.replaceChildren(places, div("flash-panel flash-words", this.sentence), legend(frames));
    this.body.classList.toggle("flash-fine", this.grid.fine);
    Object.assign(this.root.dataset, { tiles: frames.T, tr: frames.T_r, tc: frames.T_c });
    this.paint();
    this.transport.reset(frames.T);
  }

  /** Take the colours of the theme, and paint what does not change from step to step. */
  paint() {
    if (!this.root.isConnected) return; // called again when it is on the page
    this.colour = colourScale(this.root);
    for (const b of this.root.querySelectorAll(".flash-scale b"))
      b.style.backgroundColor = this.colour.css(Number(b.dataset.t), 1);
    this.memory.paint(this.colour);
  }

  select(row) {
    const [start, stop] = this.frames.steps[this.transport.position]?.rows ?? [0, this.frames.N_q];
    this.offset = between(0, row - start, Math.max(0, stop - start - 1));
    this.draw();
  }

  draw() {
    if (!this.colour) return;
    const started = performance.now();
    const { frames, colour } = this;
    const { position } = this.transport;
    const step = frames.steps[position];
    const [start, stop] = step?.rows ?? [0, frames.N_q];
    this.selected = start + Math.min(this.offset, Math.max(0, stop - start - 1));
    this.memory.draw(position, step, colour);
    this.grid.draw(position, step, colour);
    this.chip.draw(step, this.selected, colour);
    const where = step
      ? `step ${position + 1} of ${frames.T} · tile (${step.i}, ${step.j})`
      : `finished, ${frames.T} steps`;
    setText(this.status, where);
    setText(this.sentence, step ? sentence(this.selected, frames.row(step, this.selected - start)) : this.#end());
    this.transport.scrub.setAttribute("aria-valuetext", where);
    this.root.dataset.step = position;
    this.root.dataset.row = this.selected;
    this.spoken.say(`${where}. ${this.sentence.textContent}`);
    this.drawTime = performance.now() - started; // ms
  }

  #end() {
    const { T, T_r, T_c, N_q, numbers, inputs } = this.frames;
    const skipped = T < T_r * T_c ? ` of ${T_r * T_c}` : "";
    const row = N_q ? ` Row ${this.selected}: lse = ${number(numbers[inputs.lse + this.selected])}.` : "";
    const where = "O and lse are in HBM.";
    return `Finished: ${T}${skipped} tiles of S were computed and dropped, none was stored. ${where}${row}`;
  }
}

export default {
  render(context) {
    const player = new Player(context);
    return () => player.stop();
  },
};
