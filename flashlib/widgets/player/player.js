// FlashPlayer: plays the steps that Python recorded. All numbers drawn are read from the one buffer it sent.

class Player extends Widget {
  constructor(context) {
    super(context, "player flash-played", "FlashAttention, step by step");
    this.offset = 0; // of the selected row in its block
    this.detail = true;
    this.transport = new Transport({ unit: "frame", moved: () => this.draw() });
    this.status = h("span", { class: "flash-status" });
    this.title = h("p", { class: "flash-title flash-accent" });
    this.sentence = h("p", { class: "flash-sentence" });
    this.verdict = h("p", { class: "flash-verdict" });
    this.parts = new Parts({
      memory: [Memory.key, (frames) => new Memory(frames)],
      grid: [Grid.key, (frames) => new Grid(frames, (k) => this.seekStep(k))],
      chip: [Chip.key, (frames) => new Chip(frames, (row) => this.select(row))],
      bars: [RowBars.key, (frames) => new RowBars(frames)],
      lines: [Lines.key, (frames) => new Lines(frames)],
      legend: [Legend.key, (frames) => new Legend(frames)],
    });
    const { memory, grid, chip, bars, lines, legend } = this.parts.places;
    const words = div("flash-panel flash-words", this.title, this.sentence, this.verdict, bars);
    this.body = div("flash-body", div("flash-places", memory, grid, chip), words, lines, legend);
    this.errors = h("div", { class: "flash-errors" });
    const whole = toggle("whole steps", (on) => this.setDetail(!on));
    this.controls = new TilingControls(this);
    const { buttons, scrub, speed } = this.transport;
    const bar = div("flash-scrubs", scrub, this.errors);
    const header = div(
      "flash-panel flash-header",
      div("flash-controls", buttons, bar, this.status, whole.element, speed),
      this.settings(this.controls.elements),
    );
    this.root.append(header, this.body);
    this.stops.push(() => this.transport.pause());
    this.start("frames", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      PageUp: () => this.seekStep(this.at.k - 1),
      PageDown: () => this.seekStep(this.at.k + 1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.frames.last),
      ArrowUp: () => this.select(this.selected - 1),
      ArrowDown: () => this.select(this.selected + 1),
    });
  }

  load(sent) {
    const frames = (this.frames = new Frames(sent));
    frames.setDetail(this.detail);
    this.controls.show(sent);
    this.parts.load(frames);
    Object.assign(this, this.parts.made);
    drawErrors(this.errors, frames);
    this.root.classList.toggle("flash-learner", Boolean(frames.learner));
    Object.assign(this.root.dataset, { tiles: frames.T, tr: frames.T_r, tc: frames.T_c });
    if (this.colour) this.#paintParts();
    else this.paint();
    this.transport.reset(frames.last);
    if (sent.opens_at !== null) this.transport.seek(frames.frameOf[sent.opens_at + 1] - 1); // what the step gave
  }

  /** Take the colours of the theme, and paint what does not change from frame to frame. */
  paint() {
    if (!this.root.isConnected) return; // called again when it is on the page
    this.colour = colourScale(this.root);
    this.#paintParts();
  }

  #paintParts() {
    paintScale(this.root, this.colour);
    this.memory.paint(this.colour);
  }

  /** Play every part of a step, or its end only; stay at the step that is shown. */
  setDetail(detail) {
    const { k } = this.at;
    this.detail = detail;
    this.frames.setDetail(detail);
    this.transport.reset(this.frames.last);
    this.seekStep(k);
  }

  seekStep(k) {
    this.transport.seek(this.frames.frameOf[between(0, k, this.frames.T)]);
  }

  select(row) {
    const [start, stop] = this.at.step?.rows ?? [0, this.frames.N_q];
    const offset = between(0, row - start, Math.max(0, stop - start - 1));
    if (offset === this.offset) return;
    this.offset = offset;
    this.draw();
  }

  draw() {
    if (!this.colour) return;
    const started = performance.now();
    const { frames, colour } = this;
    const at = (this.at = frames.at(this.transport.position));
    const { k, step, part } = at;
    const [start, stop] = step?.rows ?? [0, frames.N_q];
    this.selected = start + Math.min(this.offset, Math.max(0, stop - start - 1));
    this.memory.draw(at, colour);
    this.grid.draw(at, colour);
    this.chip.draw(at, this.selected, colour);
    this.bars.draw(at, this.selected);
    this.lines.draw(at);
    const ended = frames.learner?.remark ? "stopped" : "finished";
    const where = step
      ? `step ${k + 1} of ${frames.T} · tile (${step.i}, ${step.j})`
      : `${ended}, ${counted(frames.T, "step")}`;
    const parts = step?.stores ? PARTS.length : PARTS.length - 1;
    const title = step ? `${PARTS.indexOf(part) + 1} of ${parts} · ${EQUATIONS[part][0]}` : ended;
    setText(this.status, where);
    setText(this.title, title);
    setText(this.sentence, step ? sentence(frames, at, this.selected) : this.#end());
    setText(this.verdict, frames.learner ? verdict(frames, at) : "");
    this.transport.scrub.setAttribute("aria-valuetext", `${where}, ${title}`);
    Object.assign(this.root.dataset, { frame: at.frame, step: k, part, row: this.selected });
    this.spoken.say(`${where}, ${title}. ${this.sentence.textContent} ${this.verdict.textContent}`);
    this.drawTime = performance.now() - started; // ms
  }

  #end() {
    const { T, T_r, T_c, N_q, numbers, inputs, learner } = this.frames;
    const skipped = T < T_r * T_c ? ` of ${T_r * T_c}` : "";
    const tiles = `${T}${skipped} ${T_r * T_c === 1 ? "tile" : "tiles"} of S`;
    const row = N_q ? ` Row ${this.selected}: lse = ${number(numbers[inputs.lse + this.selected])}.` : "";
    if (learner) return `${tiles} were computed.${row}`;
    const dropped = `${T === 1 ? "was" : "were"} computed and dropped, none was stored`;
    return `${tiles} ${dropped}. O and lse are in HBM.${row}`;
  }
}

export default {
  render(context) {
    const player = new Player(context);
    return () => player.stop();
  },
};
