// FlashPlayer: plays the steps that Python recorded. All drawn numbers are read from the one buffer that it sent.

/** @import { Result } from "./frames.js" */
/** @import { At, ForwardStep, Learner, Sent, Traits } from "./types.js" */
import { div, h, headline, setSentence, setText } from "../shared/elements.js";
import { counted } from "../shared/language.js";
import { READ } from "../shared/motion.js";
import { number } from "../shared/number_text.js";
import { RowBars } from "./bars.js";
import { Chip } from "./chip.js";
import { Frames } from "./frames.js";
import { Grid } from "./grid.js";
import { guide } from "./guide.js";
import { drawErrors, errorMarks, heading, isRight, partOf, verdict } from "./learner.js";
import { Legend } from "./legend.js";
import { Lines } from "./lines.js";
import { Memory } from "./memory.js";
import { Output } from "./output.js";
import { product } from "./product.js";
import { Stepped } from "./stepped.js";
import { bringOrLight, send } from "./travel.js";
import { forwardEquations, sentence } from "./words.js";

/** @type {Record<string, [tile: string, index: "i" | "j"]>} */
const SLICES = { Q: ["Q_i", "i"], K: ["K_j", "j"], V: ["V_j", "j"] };
const LIT = { scores: ["Q_i", "K_j"], maximum: ["S_ij"], weights: ["S_ij"], add: ["P_ij", "V_j"] };

const TITLE = "FlashAttention computes the scores S one tile at a time";

/**
 * @typedef {object} Made
 * @property {Memory} memory
 * @property {Grid} grid
 * @property {Chip} chip
 * @property {RowBars} bars
 * @property {Output} output
 * @property {Lines} lines
 * @property {Legend} legend
 */

/**
 * All panels, or `less` of them for a first look: S, the state of the rows, O, and the words with the line at work.
 * @extends {Stepped<Traits, ForwardStep, Frames, Made>}
 */
class Player extends Stepped {
  /** @type {[r: number, c: number] | null | undefined} */
  pointed;
  /** @type {Result | undefined} of the setting before */
  earlier;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "player", "FlashAttention, step by step", {
      memory: [Memory.key, (frames) => new Memory(frames)],
      grid: [() => this.less, () => new Grid((k) => this.seekStep(k), undefined, { large: this.less })],
      chip: [() => this.less, (frames) => new Chip(frames, (row) => this.select(row), { less: this.less })],
      bars: [RowBars.key, (frames) => new RowBars(frames)],
      output: [Output.key, (frames) => new Output(frames)],
      lines: [
        (frames) => [frames.lines, frames.order, Boolean(frames.learner)],
        (frames) => new Lines(frames.lines, forwardEquations(frames), { learner: Boolean(frames.learner) }),
      ],
      legend: [Legend.key, (frames) => new Legend(frames)],
    });
    this.verdict = h("p", { class: "flash-verdict" });
    this.air = h("div", { class: "flash-air", "aria-hidden": "true" });
    const { memory, grid, chip, bars, output } = this.views.places;
    this.told = div("flash-panel flash-words", this.title, this.sentence, this.verdict);
    const scores = div("flash-scores", this.blocks, grid);
    const stage = div("flash-stage", memory, chip, scores, bars, output, this.air);
    this.bottom = this.foot(this.views.places);
    this.body.append(this.told, stage, this.bottom);
    this.errors = errorMarks();
    this.transport.bar.append(this.errors.picture);
    this.headline = headline(TITLE);
    this.root.prepend(this.headline.element);
    const other = () => (this.less ? "all" : "less");
    const press = () => (this.model.set("panels", other()), this.model.save_changes());
    this.button = h("button", { type: "button", class: "flash-button flash-text", onclick: press });
    this.top.append(this.button, this.errors.words);
    this.arrange();
    /** @param {MouseEvent} event */
    const pointed = (event) => {
      const { chip, grid } = this.views.made;
      this.point(chip?.scoreUnder(event) ?? grid?.scoreUnder(event) ?? null);
    };
    this.root.addEventListener("pointermove", pointed);
    this.root.addEventListener("click", pointed); // from a finger
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.begin();
    const again = guide(this);
    this.hear("panels", () => {
      if (!this.frames) return; // a sentence stands in its place
      this.arrange();
      this.views.load(this.frames);
      this.paint();
      this.draw();
      again();
    });
  }

  get less() {
    return this.model.get("panels") === "less";
  }

  /** With few panels the words tell the story. */
  get shortest() {
    return this.less ? READ : super.shortest;
  }

  /** Put the places where they are with all panels, or with less, where what went wrong comes first. */
  arrange() {
    const { less, root, body, told, bottom, button } = this;
    const { learner } = this.frames ?? {};
    const parted = less && Boolean(learner?.first);
    const { lines } = this.views.places;
    const shown = less && this.frames ? overview(this.frames) : "";
    setSentence(this.headline.now, learner ? beside(learner) : shown);
    root.classList.toggle("flash-less", less);
    setText(button, less ? "show all" : "show less");
    if (less) {
      told.append(lines);
      lines.classList.remove("flash-open");
    } else {
      bottom.prepend(lines);
    }
    root.classList.toggle("flash-parted", parted);
    if (parted) this.headline.element.after(told);
    else if (told.parentElement !== body) body.prepend(told);
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
    this.earlier = this.frames?.result();
    return new Frames(sent);
  }

  loaded() {
    const { learner, T } = this.frames;
    setSentence(this.headline.what, learner ? heading(learner, this.frames) : TITLE);
    const { picture, words } = this.errors;
    picture.toggleAttribute("hidden", !learner);
    words.hidden = this.verdict.hidden = !learner;
    if (learner) drawErrors(this.errors, learner, T);
    this.root.classList.toggle("flash-learner", Boolean(learner));
    this.arrange();
  }

  paintViews() {
    super.paintViews();
    this.views.made.memory.paint(this.colour);
  }

  /** @param {At<ForwardStep>} at */
  drawViews(at) {
    const { colour, motion, selected } = this;
    const { memory, grid, chip, bars, output, lines } = this.views.made;
    if (this.pointed) chip.outline((this.pointed = null));
    if (this.less) output.draw(at, colour);
    else {
      memory.draw(at, colour, motion);
      bars.draw(at, selected, motion);
    }
    grid.draw(at, colour);
    chip.draw(at, selected, colour, motion);
    const [k, wrong] = this.frames.learner?.first ?? [];
    lines.draw(at, wrong && at.k === k && at.part === partOf(wrong) ? wrong : undefined);
    if (at.step && motion.time) this.#move(at, at.step);
  }

  /**
   * Slices travel at a load and at a store; in between, the tiles that are read are highlighted. With less, only O
   * travels.
   * @param {At<ForwardStep>} at
   * @param {ForwardStep} step
   */
  #move(at, step) {
    const { part, storing } = at;
    if (!this.less) bringOrLight(this, at, SLICES, LIT);
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
    const { chip } = this.views.made;
    const memory = this.less ? this.views.made.output : this.views.made.memory;
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

  /** With less, a first look, what a part does is said, and not which of the parts it is. */
  titled(at) {
    return this.less && at.step && !this.frames.learner ? this.equations[at.part][0] : super.titled(at);
  }

  ended() {
    return this.frames.learner?.remark ? "stopped" : "finished";
  }

  ending() {
    const { T, T_r, T_c, N_q, learner } = this.frames;
    let tiles = `${counted(T, "tile", "tiles")} of S`;
    if (T < T_r * T_c) tiles = `${T} of ${T_r * T_c} tiles of S`;
    let ended = `${tiles} were computed and dropped, none was stored. O and lse are in HBM.`;
    if (T === 1) ended = `${tiles} was computed and dropped, none was stored. O and lse are in HBM.`;
    if (learner) ended = T === 1 ? `${tiles} was computed.` : `${tiles} were computed.`;
    return [ended, N_q && this.#endOfRow(), !learner && this.#compared()].filter(Boolean).join(" ");
  }

  /** What became of the selected row. */
  #endOfRow() {
    const { frames, selected } = this;
    const { numbers, inputs, learner, rowWords } = frames;
    const name = frames.rowName(selected);
    const lse = number(numbers[inputs.lse + selected]);
    const most = rowWords && !learner ? frames.largestWeight(selected) : undefined;
    if (!most) return `${name}: lse = ${lse}.`;
    return `${name}: lse = ${lse}; its largest weight is ${number(most[1])}, of ${frames.keyName(most[0])}.`;
  }

  /** How far O is from what the setting before gave. */
  #compared() {
    const difference = this.earlier && this.frames.differenceOfO(this.earlier);
    if (difference === undefined) return "";
    return difference === 0
      ? "With the setting before, O was the same, bit for bit."
      : `With the setting before, O differed by at most ${number(difference)}.`;
  }
}

/**
 * What is shown, and what the mask does to it.
 * @param {Frames} frames
 */
function overview({ N_q, N_k, B_r, B_c, T, T_r, T_c, masked, causal, rowWords }) {
  const tile = `${Math.min(B_r, N_q)} × ${Math.min(B_c, N_k)}`;
  const kept = `Of all ${N_q} × ${N_k} scores only the outlined tile of ${tile} is there at a time. Each row keeps m, l and O_acc.`;
  if (!masked.some((ends) => ends.length)) return kept;
  const skips = T < T_r * T_c;
  if (rowWords && causal)
    return skips
      ? `${kept} A word sees only itself and the words before it; tiles without any such pair are skipped.`
      : `${kept} A word sees only itself and the words before it.`;
  return skips
    ? `${kept} Hatched scores are masked and do not count; tiles of masked scores alone are skipped.`
    : `${kept} Hatched scores are masked and do not count.`;
}

/**
 * What is to be said of a learner's run beside how far it is right.
 * @param {Learner} learner
 */
function beside(learner) {
  const { remark, note, kernel } = learner;
  if (kernel && isRight(learner)) return "Its check tries many more numbers.";
  return [remark, note].filter(Boolean).map((said) => `${said}.`).join(" ");
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const player = new Player(context);
    return () => player.stop();
  },
};
