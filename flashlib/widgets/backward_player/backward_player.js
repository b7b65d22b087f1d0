// BackwardPlayer: plays a pass of the backward that Python recorded. All drawn numbers are read from its buffer.

/** @import { At } from "../flash_player/types.js" */
/** @import { BackwardStep, Sent, Traits } from "./types.js" */
import { div, h, headline, setSentence } from "../shared/elements.js";
import { andList, counted } from "../shared/language.js";
import { GradientChip } from "./chip.js";
import { ErrorCurve } from "./errors.js";
import { BackwardFrames, errorInWords } from "./frames.js";
import { GradientLegend } from "./legend.js";
import { GradientMemory } from "./memory.js";
import { backwardEquations, backwardPurpose, backwardSentence } from "./words.js";
import { Grid } from "../flash_player/grid.js";
import { Lines } from "../flash_player/lines.js";
import { Stepped } from "../flash_player/stepped.js";
import { bringOrLight, send } from "../flash_player/travel.js";

/** @type {Record<string, [tile: string, index: "i" | "j"]>} */
const GRADIENT_SLICES = {
  Q: ["Q_i", "i"],
  dO: ["dO_i", "i"],
  lse: ["lse_i", "i"],
  delta: ["delta_i", "i"],
  K: ["K_j", "j"],
  V: ["V_j", "j"],
};
const GRADIENT_LIT = {
  scores: ["Q_i", "K_j"],
  weights: ["S_ij", "lse_i"],
  dP: ["dO_i", "V_j"],
  dS: ["P_ij", "dP_ij", "delta_i"],
};

/**
 * @typedef {object} Made
 * @property {GradientMemory} memory
 * @property {Grid} grid
 * @property {ErrorCurve} error
 * @property {GradientChip} chip
 * @property {Lines} lines
 * @property {GradientLegend} legend
 */

/** @extends {Stepped<Traits, BackwardStep, BackwardFrames, Made>} */
class Backward extends Stepped {
  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "backward", "the backward pass, step by step", {
      memory: [GradientMemory.key, (frames) => new GradientMemory(frames)],
      grid: [Grid.key, () => new Grid((k) => this.seekStep(k), 100)],
      error: [ErrorCurve.key, (frames) => new ErrorCurve(frames)],
      chip: [GradientChip.key, (frames) => new GradientChip(frames, (row) => this.select(row))],
      lines: [
        (frames) => [frames.lines, frames.wrt],
        (frames) => new Lines(frames.lines, backwardEquations(frames)),
      ],
      legend: [GradientLegend.key, (frames) => new GradientLegend(frames)],
    });
    this.head = headline("Backward pass: gradients of attention");
    this.root.prepend(this.head.element);
    this.air = h("div", { class: "flash-air", "aria-hidden": "true" });
    const { memory, grid, error, chip } = this.views.places;
    const words = div("flash-panel flash-words", this.title, this.sentence);
    const scores = div("flash-scores", this.blocks, grid);
    const stage = div("flash-stage", memory, scores, error, chip, this.air);
    this.body.append(words, stage, this.foot(this.views.places));
    this.begin();
  }

  /** @param {Sent} sent */
  unpack(sent) {
    this.equations = backwardEquations(sent);
    setSentence(this.head.now, backwardPurpose(sent));
    return new BackwardFrames(sent);
  }

  paintViews() {
    super.paintViews();
    this.views.made.memory.paint(this.colour);
  }

  /** @param {At<BackwardStep>} at */
  drawViews(at) {
    const { memory, grid, error, chip, lines } = this.views.made;
    memory.draw(at, this.colour, this.motion);
    grid.draw(at, this.colour);
    error.draw(at);
    chip.draw(at, this.selected, this.colour);
    lines.draw(at);
    if (at.step && this.motion.time) this.#move(at, at.step);
  }

  /**
   * Slices travel at a load, the gradients at a store; in between, the tiles that are read are highlighted.
   * @param {At<BackwardStep>} at
   * @param {BackwardStep} step
   */
  #move(at, step) {
    const { frames, motion, air, colour } = this;
    const { memory, chip } = this.views.made;
    const { pass, gradients, d } = frames;
    bringOrLight(this, at, GRADIENT_SLICES, { ...GRADIENT_LIT, add: pass.reads });
    if (!at.storing) return;
    const [first, stop] = step[pass.rows];
    for (const name of gradients) {
      const [from, to] = [chip.tile(`${name}_sum`), memory.slice(name)];
      const [rows, peak] = [stop - first, frames.peaks[name]];
      send(motion, air, "written", from, to, [memory.held[name], first * d, rows, d, peak], colour);
    }
  }

  /**
   * What the current part does. Its place among the parts is left out, since steps are counted next to it.
   * @param {At<BackwardStep>} at
   */
  titled({ step, part }) {
    return step ? `Now: ${this.equations[part][0]}` : this.ended();
  }

  /** @param {At<BackwardStep> & { step: BackwardStep }} at */
  words(at) {
    return backwardSentence(this.frames, at, this.selected);
  }

  ending() {
    const { T, T_r, T_c, gradients, dtype } = this.frames;
    const tiles = T < T_r * T_c ? `${T} of ${T_r * T_c} tiles` : counted(T, "tile", "tiles");
    const names = andList([...gradients].sort());
    const { whole } = this.frames.error(this.at);
    const error = `largest error ${errorInWords(whole, dtype)}`;
    return T === 1
      ? `${tiles} was recomputed and dropped, none was stored. In HBM: ${names}, ${error}.`
      : `${tiles} were recomputed and dropped, none was stored. In HBM: ${names}, ${error}.`;
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const player = new Backward(context);
    return () => player.stop();
  },
};
