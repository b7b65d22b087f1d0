// A player of steps with parts, for any pass.

/** @import { Colours } from "../shared/colours.js" */
/** @import { At, Setting, Step } from "./types.js" */
/** @import { Trace } from "./frames.js" */
/** @import { Lines } from "./lines.js" */
/** @import { Kinds, View } from "./views.js" */
import { colourScale, paintScale } from "../shared/colours.js";
import { disclosure, toggle } from "../shared/controls.js";
import { div, h, setSentence, setText } from "../shared/elements.js";
import { counted } from "../shared/language.js";
import { HOLD, Motion, storyPace } from "../shared/motion.js";
import { between } from "../shared/number_text.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { TilingControls } from "./controls.js";
import { Links } from "./links.js";
import { Views } from "./views.js";

/**
 * Plays the frames that Python sent in `frames`. A subclass has `kinds`, the kinds of its Views; `unpack`, which makes a
 * Trace of what was sent; `equations` for each part of a step, whose names are shown; `drawViews`; and `words` and
 * `ending`, the sentences on a frame and on the end. inParts: whether a step is played in its parts, and one of its rows
 * can be selected.
 * @template {SharedTraits & Setting & { frames: any }} Traits
 * @template {Step} S
 * @template {Trace<S>} F
 * @template {Record<string, View<F>>} Made
 * @extends {Widget<Traits>}
 */
export class Stepped extends Widget {
  /** @type {F} */
  frames;
  /** @type {At<S>} */
  at;
  /** @type {Colours} */
  colour;
  /** @type {number} */
  selected;
  /** @type {Record<string, [name: string, text: string]>} */
  equations;
  /** @type {HTMLFieldSetElement} */
  blocks;
  /** @type {HTMLElement} */
  top;
  /** @type {number} */
  drawTime;

  /**
   * @param {Context<Traits>} context
   * @param {string} name
   * @param {string} label
   * @param {Kinds<F, Made>} kinds
   * @param {{ inParts?: boolean }} [options]
   */
  constructor(context, name, label, kinds, { inParts = true } = {}) {
    super(context, `${name} flash-played flash-stepped`, label);
    /** @type {number | null} */
    this.picked = null; // the row that the learner picked, relative to its block
    this.inParts = this.detail = inParts;
    const of = (name) => (frame) => this.frames[name](frame);
    const lasts = (frame) => Math.max(this.shortest, this.frames.lasts(frame));
    const told = { rescales: of("rescales"), lasts, next: of("next"), flies: true };
    const story = inParts ? storyPace(told) : undefined;
    const [unit, units] = inParts ? ["frame", "frames"] : ["step", "steps"];
    this.transport = new Transport({ unit, units, moved: () => this.draw(), story });
    this.motion = new Motion();
    this.status = h("span", { class: "flash-status" });
    this.title = h("p", { class: "flash-title flash-strong" });
    this.sentence = h("p", { class: "flash-sentence" });
    this.views = new Views(kinds);
    this.body = div("flash-body");
    this.controls = new TilingControls(this);
    this.root.append(this.#header(), this.body);
    this.links = new Links(this.root, (name) => {
      const lines = /** @type {Lines | undefined} */ (/** @type {unknown} */ (this.views.made.lines));
      lines?.point(name);
    });
    this.stops.push(() => this.transport.pause());
  }

  /** How long a frame of the story lasts at least, in ms. */
  get shortest() {
    return 0;
  }

  #header() {
    const { element, speed } = this.transport;
    const whole = this.inParts && toggle("whole steps", (on) => this.setDetail(!on)).element;
    this.blocks = this.settings(this.controls.blocks);
    const others = this.controls.others.length > 0 && this.settings(this.controls.others);
    const change = h("div", { class: "flash-controls", hidden: true }, others, whole);
    const button = (others || whole) && disclosure("settings", (open) => (change.hidden = !open));
    this.top = div("flash-controls", element, this.status, speed, button, !this.inParts && this.blocks);
    return div("flash-panel flash-header", this.top, change, this.busy);
  }

  /**
   * The current line, and folded the other lines and the legend.
   * @param {Record<"lines" | "legend", HTMLElement>} places
   */
  foot({ lines, legend }) {
    legend.hidden = true;
    const folds = [
      disclosure("all lines", (open) => lines.classList.toggle("flash-open", open)),
      disclosure("legend", (open) => (legend.hidden = !open)),
    ];
    return div("flash-panel flash-foot", lines, div("flash-folds", folds), legend);
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
    const { at, frames: before } = this;
    const frames = (this.frames = this.unpack(sent));
    frames.setDetail(this.detail);
    this.controls.show(sent);
    this.views.load(frames);
    this.loaded();
    Object.assign(this.root.dataset, { tiles: frames.T, tr: frames.T_r, tc: frames.T_c });
    if (this.colour) this.paintViews();
    else this.paint();
    this.#reset(at && before.T ? frames.near(at, before.T) : this.opening(sent));
  }

  /**
   * @param {any} _sent
   * @returns {F}
   */
  unpack(_sent) {
    throw new Error("a subclass unpacks");
  }

  /** @param {At<S>} _at */
  drawViews(_at) {}

  /**
   * The sentence on a frame that shows a step.
   * @param {At<S> & { step: S }} _at
   */
  words(_at) {
    return "";
  }

  /** The sentence on the end. */
  ending() {
    return "";
  }

  loaded() {}

  /**
   * The frame to open at.
   * @param {{ opens_at?: number | null }} sent
   */
  opening({ opens_at = null }) {
    return this.frames.opening(opens_at);
  }

  /** @param {number} position */
  #reset(position) {
    this.transport.reset(this.frames.last, position);
    this.transport.mark(this.inParts ? this.frames.marked() : []);
  }

  /** Take the colours of the theme, and paint what does not change from frame to frame. */
  paint() {
    if (!this.root.isConnected) return; // paint is called again once it is on the page
    this.colour = colourScale(this.root);
    this.paintViews();
  }

  paintViews() {
    paintScale(this.root, this.colour);
  }

  /**
   * Play every part of a step, or only its end; stay at the current step.
   * @param {boolean} detail
   */
  setDetail(detail) {
    const { k } = this.at;
    this.detail = detail;
    this.frames.setDetail(detail);
    this.#reset(this.frames.frameOf[k]);
  }

  /** @param {number} k */
  seekStep(k) {
    this.transport.seek(this.frames.frameOf[between(0, k, this.frames.T)]);
  }

  /**
   * From now on describe this row, and the corresponding one in other blocks.
   * @param {number} row
   */
  select(row) {
    const [start, stop] = this.at.step?.rows ?? [0, this.frames.N_q];
    const picked = between(0, row - start, Math.max(0, stop - start - 1));
    if (picked === this.picked) return;
    this.picked = picked;
    this.draw();
  }

  draw() {
    if (!this.colour) return;
    const started = performance.now();
    const { frames } = this;
    const at = (this.at = frames.at(this.transport.position));
    const { k, step, part } = at;
    const [start, stop] = step?.rows ?? [0, frames.N_q];
    const offset = this.picked ?? frames.telling(step);
    this.selected = start + Math.min(offset, Math.max(0, stop - start - 1));
    this.motion.begin(this.transport.motion, frames.rescales(at.frame) && this.detail ? HOLD : 0);
    this.drawViews(at);
    this.#tell(at);
    Object.assign(this.root.dataset, { frame: at.frame, step: k, part, row: this.selected });
    this.drawTime = performance.now() - started; // ms
  }

  /**
   * Write what is shown: the place, the part of the step, the sentence.
   * @param {At<S>} at
   */
  #tell(at) {
    const { k, step } = at;
    const where = step ? this.placed(k, step) : `${this.ended()}, ${counted(this.frames.T, "step", "steps")}`;
    const title = this.inParts ? this.titled(at) : "";
    const both = title ? `${where}, ${title}` : where;
    const words = step ? this.words({ ...at, step }) : this.ending();
    setText(this.status, where);
    setText(this.title, title);
    this.write(words);
    this.transport.scrub.setAttribute("aria-valuetext", both);
    this.spoken.say(`${both}. ${words} ${this.remark(at)}`);
  }

  /**
   * Write the sentence; its names can be pointed at, and reached by keyboard.
   * @param {string} words
   */
  write(words) {
    if (this.sentence.flashText !== words) {
      if (this.sentence.contains(document.activeElement)) this.root.focus(); // else JupyterLab gets the keys
      setSentence(this.sentence, words);
      /** @type {NodeListOf<HTMLElement>} */
      const names = this.sentence.querySelectorAll(".flash-symbol");
      for (const name of names) name.tabIndex = 0;
    }
    if (this.links.name) this.links.show();
  }

  ended() {
    return "finished";
  }

  /** @param {number} k @param {{ i: number, j: number }} step */
  placed(k, { i, j }) {
    return `step ${k + 1} of ${this.frames.T} · tile (${i}, ${j})`;
  }

  /** @param {At<S>} at */
  titled({ step, part }) {
    if (!step) return this.ended();
    const { parts } = this.frames;
    return `part ${parts.indexOf(part) + 1} of ${parts.length - (step.stores ? 0 : 1)} · ${this.equations[part][0]}`;
  }

  /**
   * Further remarks on a frame.
   * @param {At<S>} _at
   */
  remark(_at) {
    return "";
  }
}
