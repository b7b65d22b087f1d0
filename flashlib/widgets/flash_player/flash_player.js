// FlashPlayer: plays the steps that Python recorded. All drawn numbers are read from the one buffer that it sent.

/** @import { At, ForwardStep, Sent, Traits } from "./types.js" */
import { div, h, note, setSentence } from "../shared/elements.js";
import { counted } from "../shared/language.js";
import { number } from "../shared/number_text.js";
import { RowBars } from "./bars.js";
import { Chip } from "./chip.js";
import { Frames } from "./frames.js";
import { Grid } from "./grid.js";
import { guide } from "./guide.js";
import { drawErrors, isRight, verdict } from "./learner.js";
import { Legend } from "./legend.js";
import { Lines } from "./lines.js";
import { Memory } from "./memory.js";
import { product } from "./product.js";
import { Stepped } from "./stepped.js";
import { bringOrLight, send } from "./travel.js";
import { forwardEquations, sentence } from "./words.js";

/** @type {Record<string, [tile: string, index: "i" | "j"]>} */
const SLICES = { Q: ["Q_i", "i"], K: ["K_j", "j"], V: ["V_j", "j"] };
const LIT = { scores: ["Q_i", "K_j"], maximum: ["S_ij"], weights: ["S_ij"], add: ["P_ij", "V_j"] };

/** @typedef {{ memory: Memory, grid: Grid, chip: Chip, bars: RowBars, lines: Lines, legend: Legend }} Made */

/** @extends {Stepped<Traits, ForwardStep, Frames, Made>} */
class Player extends Stepped {
  /** @type {[r: number, c: number] | null | undefined} */
  pointed;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "player", "FlashAttention, step by step", {
      memory: [Memory.key, (frames) => new Memory(frames)],
      grid: [Grid.key, () => new Grid((k) => this.seekStep(k))],
      chip: [Chip.key, (frames) => new Chip(frames, (row) => this.select(row))],
      bars: [RowBars.key, (frames) => new RowBars(frames)],
      lines: [
        (frames) => [frames.lines, frames.order],
        (frames) => new Lines(frames.lines, forwardEquations(frames)),
      ],
      legend: [Legend.key, (frames) => new Legend(frames)],
    });
    this.verdict = h("p", { class: "flash-verdict" });
    this.scale = note();
    this.judged = div("flash-judged", this.verdict, this.scale);
    this.air = h("div", { class: "flash-air", "aria-hidden": "true" });
    const { memory, grid, chip, bars } = this.views.places;
    const words = div("flash-panel flash-words", this.title, this.sentence, this.judged);
    const scores = div("flash-scores", this.blocks, grid);
    const stage = div("flash-stage", memory, chip, scores, bars, this.air);
    this.body.append(words, stage, this.foot(this.views.places));
    this.below.className = "flash-errors";
    /** @param {MouseEvent} event */
    const pointed = (event) => this.point(this.views.made.chip?.scoreUnder(event) ?? null);
    this.root.addEventListener("pointermove", pointed);
    this.root.addEventListener("click", pointed); // from a finger
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.begin();
    guide(this);
  }

  /**
   * Point at a score of the tile, or null: its product is written in place of the sentence.
   * @param {[r: number, c: number] | null} score
   */
  point(score) {
    if (String(score) === String(this.pointed ?? null)) return;
    this.pointed = score;
    this.views.made.chip.outline(score);
    const { step } = this.at;
    if (score && step) this.write(product(this.frames, step, ...score));
    else this.write(step ? this.words({ ...this.at, step }) : this.ending());
  }

  /** @param {Sent} sent */
  unpack(sent) {
    this.equations = forwardEquations(sent);
    return new Frames(sent);
  }

  loaded() {
    this.below.hidden = this.judged.hidden = !this.frames.learner;
    if (this.frames.learner) drawErrors(this.below, this.scale, this.frames.learner, this.frames.T);
    this.root.classList.toggle("flash-learner", Boolean(this.frames.learner));
  }

  paintViews() {
    super.paintViews();
    this.views.made.memory.paint(this.colour);
  }

  /** @param {At<ForwardStep>} at */
  drawViews(at) {
    const { colour, motion, selected } = this;
    const { memory, grid, chip, bars, lines } = this.views.made;
    if (this.pointed) chip.outline((this.pointed = null));
    memory.draw(at, colour, motion);
    grid.draw(at, colour);
    chip.draw(at, selected, colour, motion);
    bars.draw(at, selected, motion);
    lines.draw(at);
    if (at.step && motion.time) this.#move(at, at.step);
  }

  /**
   * Slices travel at a load and at a store; in between, the tiles that are read are highlighted.
   * @param {At<ForwardStep>} at
   * @param {ForwardStep} step
   */
  #move(at, step) {
    const { part, storing } = at;
    bringOrLight(this, at, SLICES, LIT);
    if (this.frames.order === "fa1" && (part === "load" || !this.detail)) this.#carry(step, "read");
    if (storing) this.#carry(step, "written");
  }

  /**
   * The state of the rows travels: in the FA1 order to SRAM and back, else only O, to HBM.
   * @param {ForwardStep} step
   * @param {"read" | "written"} kind
   */
  #carry(step, kind) {
    const { frames, motion, air, colour } = this;
    const { memory, chip } = this.views.made;
    const stores = kind === "written";
    for (const [name, X] of Object.entries(memory.held)) {
      const [column, cols] = name === "O" ? ["O_acc", frames.d] : [name, 1];
      const [slice, shown] = [memory.slice(name), chip.column(column)];
      if (slice.hidden) continue; // a learner's state, known only at the ends of steps
      const [data, offset] = stores ? [X, step.rows[0] * cols] : [frames.numbers, step[`${column}_old`]];
      const [from, to] = stores ? [shown, slice] : [slice, shown];
      send(motion, air, kind, from, to, [data, offset, step.n_r, cols, frames.peaks[name]], colour);
    }
  }

  /** @param {At<ForwardStep> & { step: ForwardStep }} at */
  words(at) {
    return sentence(this.frames, at, this.selected);
  }

  /** @param {At<ForwardStep>} at */
  remark(at) {
    const { frames } = this;
    const said = frames.learner ? verdict(frames.learner, frames, at) : "";
    setSentence(this.verdict, said);
    this.verdict.classList.toggle("flash-right", Boolean(frames.learner && isRight(frames.learner)));
    return said;
  }

  ended() {
    return this.frames.learner?.remark ? "stopped" : "finished";
  }

  ending() {
    const { T, T_r, T_c, N_q, numbers, inputs, learner } = this.frames;
    let tiles = `${counted(T, "tile", "tiles")} of S`;
    if (T < T_r * T_c) tiles = `${T} of ${T_r * T_c} tiles of S`;
    let ended = `${tiles} were computed and dropped, none was stored. O and lse are in HBM.`;
    if (T === 1) ended = `${tiles} was computed and dropped, none was stored. O and lse are in HBM.`;
    if (learner) ended = T === 1 ? `${tiles} was computed.` : `${tiles} were computed.`;
    return N_q ? `${ended} Row ${this.selected}: lse = ${number(numbers[inputs.lse + this.selected])}.` : ended;
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const player = new Player(context);
    return () => player.stop();
  },
};
