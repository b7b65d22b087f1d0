// A player of steps in their parts, whatever the steps are of.

/**
 * Plays the frames of what Python sent in `frames`. A subclass has `kinds`, what its Parts are made of; `unpack`,
 * which makes a Trace of what was sent; `equations` of each part of a step, whose names are told; `drawParts`; and
 * `words` and `ending`, the sentence on a frame and on the end. inParts: whether a step is played in its parts, and
 * a row of it can be selected.
 */
class Stepped extends Widget {
  constructor(context, name, label, kinds, { inParts = true } = {}) {
    super(context, `${name} flash-played flash-stepped`, label);
    this.offset = 0; // of the selected row in its block
    this.inParts = this.detail = inParts;
    this.transport = new Transport({ unit: inParts ? "frame" : "step", moved: () => this.draw() });
    this.status = h("span", { class: "flash-status" });
    this.title = h("p", { class: "flash-title flash-strong" });
    this.sentence = h("p", { class: "flash-sentence" });
    this.parts = new Parts(kinds);
    this.body = div("flash-body");
    this.below = h("div", {}); // the scrub bar
    const whole = inParts && toggle("whole steps", (on) => this.setDetail(!on)).element;
    this.controls = new TilingControls(this);
    const { buttons, scrub, speed } = this.transport;
    const bar = div("flash-scrubs", scrub, this.below);
    const header = div(
      "flash-panel flash-header",
      div("flash-controls", buttons, bar, this.status, whole, speed),
      this.settings(this.controls.elements),
    );
    this.root.append(header, this.body);
    this.stops.push(() => this.transport.pause());
  }

  begin() {
    this.start("frames", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.frames.last),
      ...(this.inParts && {
        PageUp: () => this.seekStep(this.at.k - 1),
        PageDown: () => this.seekStep(this.at.k + 1),
        ArrowUp: () => this.select(this.selected - 1),
        ArrowDown: () => this.select(this.selected + 1),
      }),
    });
  }

  load(sent) {
    const frames = (this.frames = this.unpack(sent));
    frames.setDetail(this.detail);
    this.controls.show(sent);
    this.parts.load(frames);
    Object.assign(this, this.parts.made);
    this.loaded();
    Object.assign(this.root.dataset, { tiles: frames.T, tr: frames.T_r, tc: frames.T_c });
    if (this.colour) this.paintParts();
    else this.paint();
    this.transport.reset(frames.last);
    if (Number.isInteger(sent.opens_at)) this.transport.seek(frames.frameOf[sent.opens_at + 1] - 1); // what the step gave
  }

  loaded() {}

  /** Take the colours of the theme, and paint what does not change from frame to frame. */
  paint() {
    if (!this.root.isConnected) return; // called again when it is on the page
    this.colour = colourScale(this.root);
    this.paintParts();
  }

  paintParts() {
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
    const { frames } = this;
    const at = (this.at = frames.at(this.transport.position));
    const { k, step, part } = at;
    const [start, stop] = step?.rows ?? [0, frames.N_q];
    this.selected = start + Math.min(this.offset, Math.max(0, stop - start - 1));
    this.drawParts(at);
    const where = step ? `step ${k + 1} of ${frames.T}${this.tile(step)}` : `${this.ended()}, ${counted(frames.T, "step")}`;
    const title = this.inParts ? this.titled(at) : "";
    const both = title ? `${where}, ${title}` : where;
    setText(this.status, where);
    setText(this.title, title);
    setText(this.sentence, step ? this.words(at) : this.ending());
    this.transport.scrub.setAttribute("aria-valuetext", both);
    Object.assign(this.root.dataset, { frame: at.frame, step: k, part, row: this.selected });
    this.spoken.say(`${both}. ${this.sentence.textContent} ${this.remark(at)}`);
    this.drawTime = performance.now() - started; // ms
  }

  ended() {
    return "finished";
  }

  tile({ i, j }) {
    return ` · tile (${i}, ${j})`;
  }

  titled({ step, part }) {
    if (!step) return this.ended();
    const { parts } = this.frames;
    return `${parts.indexOf(part) + 1} of ${parts.length - (step.stores ? 0 : 1)} · ${this.equations[part][0]}`;
  }

  /** What else there is to say of a frame. */
  remark() {
    return "";
  }
}
