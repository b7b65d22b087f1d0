// FlashPlayer: plays the steps that Python recorded. All numbers drawn are read from the one buffer it sent.

import { div, h, note, setSentence } from "../shared/elements.js";
import { number } from "../shared/numbers.js";
import { RowBars } from "./bars.js";
import { Chip } from "./chip.js";
import { Frames } from "./frames.js";
import { Grid } from "./grid.js";
import { guide } from "./guide.js";
import { drawErrors, verdict } from "./learner.js";
import { Legend } from "./legend.js";
import { Lines } from "./lines.js";
import { Memory } from "./memory.js";
import { Stepped } from "./stepped.js";
import { bringOrLight, send } from "./travel.js";
import { forwardEquations, sentence } from "./words.js";

const SLICES = { Q: ["Q_i", "i"], K: ["K_j", "j"], V: ["V_j", "j"] };
const LIT = { scores: ["Q_i", "K_j"], maximum: ["S_ij"], weights: ["S_ij"], add: ["P_ij", "V_j"] };

class Player extends Stepped {
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
    const stage = div("flash-stage", div("flash-wide", memory, chip), div("flash-narrow", scores, bars), this.air);
    this.body.append(words, stage, this.foot(this.views.places));
    this.below.className = "flash-errors";
    this.begin();
    guide(this);
  }

  unpack(sent) {
    this.equations = forwardEquations(sent);
    return new Frames(sent);
  }

  loaded() {
    this.below.hidden = this.judged.hidden = !this.frames.learner;
    if (this.frames.learner) drawErrors(this.below, this.scale, this.frames);
    this.root.classList.toggle("flash-learner", Boolean(this.frames.learner));
  }

  /** Where a learner's steps part from the truth; else the first time that what was summed is rescaled. */
  opening(sent) {
    const { learner, frameOf } = this.frames;
    if (Number.isInteger(sent.opens_at)) return super.opening(sent);
    if (learner?.first) return frameOf[learner.first[0] + 1] - 1;
    return this.frames.marked()[0] ?? 0;
  }

  drawViews(at) {
    const { colour, motion, selected } = this;
    this.memory.draw(at, colour, motion);
    this.grid.draw(at, colour);
    this.chip.draw(at, selected, colour, motion);
    this.bars.draw(at, selected, motion);
    this.lines.draw(at);
    if (at.step && motion.time) this.#move(at);
  }

  /** Slices travel at a load and at a store; between them, what is read is lit. */
  #move(at) {
    const { step, part, storing } = at;
    bringOrLight(this, at, SLICES, LIT);
    if (this.frames.order === "fa1" && (part === "load" || !this.detail)) this.#carry(step, "read");
    if (storing) this.#carry(step, "written");
  }

  /** The state of the rows travels: in the FA1 order to SRAM and back, else O alone, and back. */
  #carry(step, kind) {
    const { frames, memory, chip, motion, air, colour } = this;
    const stores = kind === "written";
    for (const [name, X] of Object.entries(memory.held)) {
      const [column, cols] = name === "O" ? ["O_acc", frames.d] : [name, 1];
      const ends = [memory.slice(name), chip.column(column)];
      if (ends[0].hidden) continue; // a learner's state, of which only the steps' ends are known
      const from = stores ? [X, step.rows[0] * cols] : [frames.numbers, step[`${column}_old`]];
      const matrix = [...from, step.n_r, cols, frames.peaks[name]];
      send(motion, air, kind, ...(stores ? ends.reverse() : ends), matrix, colour);
    }
  }

  words(at) {
    return sentence(this.frames, at, this.selected);
  }

  remark(at) {
    const { frames } = this;
    setSentence(this.verdict, frames.learner ? verdict(frames, at) : "");
    return this.verdict.flashText;
  }

  ended() {
    return this.frames.learner?.remark ? "stopped" : "finished";
  }

  ending() {
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
