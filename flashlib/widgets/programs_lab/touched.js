/** @import { Access, Result, Tensor } from "./types.js" */
/** @import { Place } from "./places.js" */
import { choice } from "../shared/controls.js";
import { div, h, note, panel, put, setSentence, setText } from "../shared/elements.js";
import { andList, counted } from "../shared/language.js";
import { watchRoom } from "../split_lab/axes.js";
import { blockOf } from "./block.js";
import { Matrix } from "./matrix.js";
import { Memory } from "./memory.js";
import { ELEMENT, MASKED, ownersOf, placesOf } from "./places.js";

const TITLES = { load: "It loads from", store: "It stores to" };
const DONE = { load: "loaded", store: "stored" };
const NONE = { load: "No program loads anything.", store: "No program stores anything." };

/** What a program loads or stores: in the matrix, in memory, and as numbers. */
export class Touched {
  /** @type {Result} */
  result;
  /** @type {Int32Array} */
  places;
  /** @type {number} */
  room;
  /** @type {Access | undefined} */
  access;
  /** @type {Tensor | undefined} */
  tensor;
  /** @type {Place[]} */
  lanes = [];
  /** @type {string} */
  label;

  /**
   * @param {string} kind "load" or "store"
   * @param {() => void} changed
   */
  constructor(kind, changed) {
    this.kind = kind;
    this.changed = changed;
    this.chosen = ""; // tensor and line
    /** @type {Map<string, number>} by row and column: the program that touches the element, as `ownersOf` has it */
    this.owners = new Map();
    /** @type {Map<string, { tensor: number, line: number, text: string }>} by the same */
    this.options = new Map();
    this.pointers = h("span", { class: "flash-programs-pointers" });
    this.count = note();
    this.matrix = new Matrix(kind);
    this.memory = new Memory(kind);
    this.block = div("flash-programs-block");
    this.fault = h("p", { class: "flash-programs-fault" });
    this.stored = h("p", { class: "flash-note flash-programs-stored" });
    this.nothing = h("p", { class: "flash-note" });
    this.drawn = div("", div("flash-programs-drawn", this.matrix.svg, this.block), this.memory.element);
    const body = div("flash-programs-body", this.drawn);
    const about = [this.pointers, this.count];
    this.element = panel(`programs-${kind}s`, TITLES[kind], about, body, this.nothing, this.fault, this.stored);
    this.resized = watchRoom(body, this, () => this.#redraw());
  }

  /**
   * @param {Result} result
   * @param {Int32Array} places
   */
  take(result, places) {
    this.result = result;
    this.places = places;
    const options = new Map();
    for (const { kind, tensor, line } of result.accesses) {
      if (kind === this.kind) options.set(`${tensor},${line}`, { tensor, line, text: result.tensors[tensor].name });
    }
    const names = [...options.values()].map(({ text }) => text);
    const numbers = new Map(result.lines.map(({ key, number }) => [key, number]));
    for (const option of options.values()) {
      if (names.filter((name) => name === option.text).length > 1) option.text = `${option.text}, line ${numbers.get(option.line)}`;
    }
    const keys = (all) => JSON.stringify([...all]);
    if (keys(options) !== keys(this.options)) {
      this.options = options;
      if (!options.has(this.chosen)) this.chosen = [...options.keys()][0] ?? "";
      this.#offer();
    }
    this.#own();
  }

  /** Note which program touches each element with the pointer that is chosen. */
  #own() {
    const option = this.options.get(this.chosen);
    const its = this.result.accesses.filter(({ kind, tensor, line }) => kind === this.kind && tensor === option?.tensor && line === option.line);
    this.owners = ownersOf(its, this.places);
  }

  /** Offer the pointers, if there are several. */
  #offer() {
    const all = [...this.options].map(([key, { text }]) => [key, text]);
    const choose = (key) => {
      this.chosen = key;
      this.#own();
      this.changed();
    };
    const pointers = choice(`${this.kind}s`, `${DONE[this.kind]} with this pointer`, all, choose);
    pointers.show(this.chosen);
    this.pointers.replaceChildren(all.length > 1 ? pointers.element : h("code", {}, all[0]?.[1] ?? ""));
  }

  /**
   * Draw what a program does with the pointer that is chosen, in a turn of its loop.
   * @param {Access[]} its
   * @param {number} turn
   */
  draw(its, turn) {
    const option = this.options.get(this.chosen);
    const all = its.filter(({ kind, tensor, line }) => kind === this.kind && tensor === option?.tensor && line === option.line);
    this.access = all.length > 1 ? all.find((access) => access.turn === turn) : all[0];
    this.tensor = option && this.result.tensors[option.tensor];
    this.lanes = this.access ? placesOf(this.access, this.places) : [];
    this.#say(option, all.length);
    this.#redraw();
  }

  #say(option, times) {
    const { kind, access, lanes } = this;
    const missing = times ? `This program runs the line ${counted(times, "time", "times")}.` : "This program does not run this line.";
    setText(this.nothing, option ? missing : NONE[kind]);
    this.nothing.hidden = Boolean(access);
    this.drawn.hidden = !this.tensor;
    const of = (state) => lanes.filter((place) => place.state === state).length;
    const bad = lanes.filter(({ state }) => state > ELEMENT).length;
    const counts = [`${of(ELEMENT)} ${DONE[kind]}`];
    if (of(MASKED)) counts.push(`${of(MASKED)} masked`);
    if (bad) counts.push(`✕ ${bad} out of bounds`);
    setText(this.count, access ? counts.join(", ") : "");
    setSentence(this.fault, access?.fault ? `✕ ${access.fault}` : "");
    this.fault.hidden = !access?.fault;
    setSentence(this.stored, kind === "store" ? (this.tensor?.stored ?? "") : "");
    this.stored.hidden = !this.stored.flashText;
    this.label = `${this.tensor?.name ?? ""}: ${andList(counts)}`;
  }

  #redraw() {
    if (!this.room || !this.tensor) return;
    const { tensor, access, lanes } = this;
    this.matrix.draw(tensor, access, lanes, this.owners, this.room);
    put(this.matrix.svg, "aria-label", this.label);
    this.memory.draw(tensor, lanes, this.room);
    this.block.replaceChildren(...blockOf(access, lanes, this.kind, this.matrix.isLegible));
  }
}
