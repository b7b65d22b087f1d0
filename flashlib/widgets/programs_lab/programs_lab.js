// ProgramsLab: what each program of a kernel touches. Python ran the programs and sent all of them; this draws one.

/** @import { Access, Result, Traits } from "./types.js" */
import { div, h, headline, panel, setSentence } from "../shared/elements.js";
import { between } from "../shared/number_text.js";
import { Widget } from "../shared/widget.js";
import { Listing } from "./listing.js";
import { MASKED } from "./places.js";
import { Programs } from "./programs.js";
import { ProgramSettings } from "./settings.js";
import { Touched } from "./touched.js";

/** @extends {Widget<Traits>} */
class ProgramsLab extends Widget {
  /** @type {ProgramSettings} */
  controls;
  /** @type {Result} */
  result;
  /** @type {Int32Array} */
  places;
  /** @type {Map<number, Access[]>} by program */
  accesses;
  /** @type {HTMLElement} */
  stage;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "programs-lab", "the programs of a kernel, and what each of them touches");
    this.program = this.turn = 0;
    this.head = headline("Which elements does each program of a kernel touch?");
    this.said = h("p", { class: "flash-programs-said" });
    this.programs = new Programs(
      (program) => this.choose(program),
      (turn) => this.go(turn),
    );
    this.listing = new Listing();
    this.touched = ["load", "store"].map((kind) => new Touched(kind, () => this.#drawProgram()));
    this.legend = legend();
    const result = this.model.get("result");
    if (result.setting) this.#build(result);
    this.start("result", {
      ArrowLeft: () => this.choose(this.program - 1),
      ArrowRight: () => this.choose(this.program + 1),
      ArrowUp: () => this.go(this.turn - 1),
      ArrowDown: () => this.go(this.turn + 1),
      Home: () => this.choose(0),
      End: () => this.choose(this.result.programs.length - 1),
    });
  }

  /** @param {Result} result */
  #build(result) {
    this.program = result.opens;
    const { kernels, setting } = result;
    if (kernels.length) {
      this.controls = new ProgramSettings(kernels, (setting) => this.ask(setting));
      for (const name of Object.keys(setting)) this.hear(name, () => this.#show());
    }
    const settings = this.controls && div("flash-panel flash-programs-settings", this.settings(this.controls.elements));
    const drawn = [this.programs, ...this.touched];
    this.stops.push(() => drawn.forEach(({ resized }) => resized.disconnect()));
    this.stage = div(
      "flash-programs-stage",
      settings ?? [],
      this.programs.element,
      panel("programs-listing", "The kernel", this.listing.note, this.listing.element),
      this.touched.map(({ element }) => element),
    );
    this.root.append(
      this.head.element,
      this.said,
      this.stage,
      this.legend.element,
    );
  }

  /** Show what was asked last, which may not be answered yet: a slider must not jump back under the hand. */
  #show() {
    const { setting } = this.result ?? {};
    if (this.controls && setting) this.controls.show((name) => (this.off ? setting[name] : this.model.get(name)), this.result);
  }

  /** @param {Result} result */
  load(result) {
    this.result = result;
    const { buffer, byteOffset, byteLength } = result.buffer;
    this.places = new Int32Array(buffer.slice(byteOffset, byteOffset + byteLength)); // a copy: where it lies may not do
    this.accesses = new Map(result.programs.map((_, program) => [program, []]));
    for (const access of result.accesses) this.accesses.get(access.program)?.push(access);
    this.program = between(0, this.program, Math.max(result.programs.length - 1, 0));
    this.#show();
    setSentence(this.said, result.said.join(" "));
    this.said.hidden = !result.said.length;
    this.stage.dataset.matrices = String(result.tensors.some(({ shape }) => shape.length > 1));
    this.programs.take(result);
    this.listing.take(result);
    for (const touched of this.touched) touched.take(result, this.places);
    this.#name(result);
    this.draw();
  }

  /**
   * Have the legend name what some program does, and nothing else.
   * @param {Result} result
   */
  #name({ programs }) {
    const isMasked = this.places.some((state, k) => k % 4 === 1 && state === MASKED);
    const drawn = { masked: isMasked, wrong: programs.some(({ bad }) => bad) };
    for (const [mark, element] of Object.entries(this.legend.keys)) element.hidden = !(drawn[mark] ?? true);
  }

  draw() {
    if (!this.result) return;
    this.#drawProgram();
    this.#speak();
  }

  /** @param {number} program */
  choose(program) {
    const last = this.result.programs.length - 1;
    if (last < 0) return;
    this.program = between(0, program, last);
    this.#drawProgram();
    this.#speak();
  }

  /** @param {number} turn */
  go(turn) {
    this.turn = turn;
    this.#drawProgram();
    this.#speak();
  }

  #drawProgram() {
    const { programs, grid } = this.result;
    const its = this.accesses.get(this.program) ?? [];
    const turns = Math.max(1, ...its.map(({ turn }) => turn + 1));
    this.turn = between(0, this.turn, turns - 1);
    const words = programs[this.program]?.words ?? "";
    setSentence(this.head.now, `${grid.words} ${words}`.trim());
    this.programs.draw(this.program, this.turn, turns);
    this.listing.draw(this.program, this.turn);
    for (const touched of this.touched) touched.draw(its, this.turn);
    this.root.dataset.program = String(this.program);
    this.root.dataset.turn = String(this.turn);
  }

  #speak() {
    const faults = this.touched.map(({ fault }) => fault.flashText ?? "");
    this.spoken.say([this.head.now.flashText, ...faults].filter(Boolean).join(" "));
  }
}

function legend() {
  const key = (mark, text) => h("span", { class: "flash-programs-key" }, h("i", { "data-mark": mark }), text);
  const keys = {
    load: key("load", "loaded"),
    store: key("store", "stored"),
    masked: key("masked", "cut off by the mask"),
    wrong: key("wrong", "✕ out of bounds"),
    edge: key("edge", "between the blocks of two programs"),
  };
  return { keys, element: div("flash-legend", Object.values(keys)) };
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new ProgramsLab(context);
    return () => lab.stop();
  },
};
