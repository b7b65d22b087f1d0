// One side: its arrays in HBM, the chip below, and what is on its way between them.

/** @import { Colours } from "../shared/colours.js" */
/** @import { Motion } from "../shared/motion.js" */
/** @import { Race, SideName } from "./race.js" */
/** @import { Block, Flight, Trip, UnderWay } from "./types.js" */
import { scaleMark } from "../flash_player/legend.js";
import { Matrix } from "../flash_player/matrix.js";
import { div, h, note, setSentence, setText, symbol, typeset } from "../shared/elements.js";
import { say } from "../shared/language.js";
import { PLACES } from "./race.js";
import { roomWords } from "./words.js";

const IN_HBM = {
  standard: ["Q", "K", "V", "S", "P", "O", "lse"], // in the order of the columns
  flash: ["Q", "K", "V", "O", "lse"],
};
const BESIDE_NAME = { O: "so\u00a0far", lse: "" }; // beside a name on FlashAttention's chip; the others are tiles
const LSE = "log-sum-exp: one number per row, the log of the sum of the exponentials of its scores";
const IN_MEMORY = { most: 6, high: 120, wide: 380 }; // of HBM, in px: the largest, and all cells below or beside each other
const ON_CHIP = { most: 6, high: 48, wide: 200 }; // of the chip
const BESIDE = 130; // px that are not cells: gaps, padding, and the name of lse

const cellIn = ({ most, high, wide }, rows, cols) => Math.min(most, high / rows, wide / cols);

/** A matrix with its name, in HBM or on the chip. */
class Shelf {
  /** @type {number} */
  cell;
  /** @type {{ left: number, top: number }} */
  corner;

  /**
   * @param {string} key
   * @param {string} name of the array
   * @param {string} [word] beside it
   */
  constructor(key, name, word = "") {
    this.matrix = new Matrix(key);
    this.matrix.name = word ? `${name}, ${say(word)}` : name;
    this.here = h("div", { class: "flash-here", hidden: true });
    this.size = note(word);
    const cells = div("flash-strip-cells", this.matrix.element, this.here);
    const title = name === "lse" && LSE;
    const column = IN_HBM.standard.indexOf(name) + 1; // the same in HBM and on the chip: what moves covers nothing else
    const look = { class: "flash-strip", style: `grid-column: ${column}`, title };
    this.element = h("div", look, div("flash-name", symbol(name), " ", this.size), cells);
  }

  /** @param {number} rows @param {number} cols @param {number} cell px */
  resize(rows, cols, cell) {
    this.cell = cell;
    this.matrix.resize({ rows, cols, width: cell, height: cell, numbers: false });
  }

  /**
   * Outline rows, from the first to before the stop, of what is under way; none without a flight.
   * @param {Flight} [flight]
   */
  outline(flight) {
    this.here.hidden = !flight;
    if (!flight) return;
    const { first, stop } = flight;
    Object.assign(this.here.style, { top: `${first * this.cell}px`, height: `${(stop - first) * this.cell}px` });
  }

  /** @param {DOMRect} origin of what flies */
  measure(origin) {
    const { left, top } = this.matrix.element.getBoundingClientRect();
    this.corner = { left: left - origin.left, top: top - origin.top };
  }

  /**
   * Where rows of it are.
   * @param {number} first
   * @param {Block} block
   */
  box(first, { rows, cols }) {
    const { left, top } = this.corner;
    return { left, top: top + first * this.cell, width: cols * this.cell, height: rows * this.cell };
  }
}

export class Side {
  /** @type {Race} */
  race;
  /** @type {boolean} whether it is known where everything is on the page */
  measured;
  /** @type {Trip | undefined} whose copies are on their way */
  flown;
  /** @type {{ element: HTMLElement, matrix: Matrix }[]} */
  copies;
  /** @type {Record<string, Float64Array>} what HBM holds of what is stored, NaN where that is nothing yet */
  held;

  /**
   * @param {SideName} name
   * @param {string} title
   * @param {string} claim
   */
  constructor(name, title, claim) {
    this.name = name;
    this.width = Infinity; // until it is on the page
    const elements = (of) => Object.values(of).map(({ element }) => element);
    const word = (one) => (name === "flash" ? (BESIDE_NAME[one] ?? "tile") : "");
    const places = Object.entries(PLACES[name]);
    /** @type {Record<string, Shelf>} */
    this.hbm = Object.fromEntries(IN_HBM[name].map((one) => [one, new Shelf(one, one)]));
    /** @type {Record<string, Shelf>} */
    this.chip = Object.fromEntries(places.map(([one, place]) => [place, new Shelf(place, one, word(one))]));
    this.sentence = h("p", { class: "flash-trips-words" });
    this.way = h("p", { class: "flash-trips-way", "aria-hidden": "true" });
    this.fill = h("i", {});
    this.needs = h("span", {});
    const meter = h("span", { class: "flash-meter", "aria-hidden": "true" }, this.fill);
    this.room = div("flash-room", meter, this.needs);
    this.air = h("div", { class: "flash-trips-air", "aria-hidden": "true" });
    const never = name === "flash" && h("p", { class: "flash-trips-never" }, typeset("S and P: never here"));
    const hbm = h("p", {}, h("b", {}, "HBM"), " ", note("memory: large, far and slow"), name === "standard" && scaleMark());
    const memory = div("flash-trips-hbm", hbm, elements(this.hbm), never);
    const about = h("p", {}, h("b", {}, "the chip"), " ", note("small and fast"));
    const chip = div("flash-trips-chip", elements(this.chip), about, this.room);
    this.stage = div("flash-trips-stage", memory, this.way, chip, this.air);
    this.element = h(
      "section",
      { class: "flash-panel flash-trips-side", "data-side": name },
      h("header", {}, h("h3", {}, title), note(claim)),
      this.sentence,
      this.stage,
    );
  }

  /** @param {Race} race */
  take(race) {
    this.race = race;
    const { N } = race.setting;
    const { columns } = race.sides[this.name];
    for (const [name, shelf] of Object.entries(this.hbm))
      setText(shelf.size, name === "S" || name === "P" ? `${N} × ${N}` : "");
    this.held = Object.fromEntries(["S", "P", "O", "lse"].map((name) => [name, new Float64Array(N * columns[name])]));
    this.fit();
  }

  /**
   * Fit all into the width of the page: the arrays in HBM must stay side by side.
   * @param {number} room of the stage, in px
   */
  fit(room = this.width) {
    this.width = room;
    this.measured = false;
    this.flown = undefined;
    if (!this.race) return;
    const { race } = this;
    const { N, d } = race.setting;
    const { columns } = race.sides[this.name];
    const inRoom = (of) => ({ ...of, wide: Math.min(of.wide, room - BESIDE) });
    const cell = cellIn(inRoom(IN_MEMORY), N, 4 * d + 2 * N + 1); // on both sides: an area is as many bytes
    for (const [name, shelf] of Object.entries(this.hbm)) shelf.resize(N, columns[name], cell);
    const rows = this.name === "standard" ? N : race.B;
    const cols = { ...columns, S: rows, P: rows };
    const place = cellIn(inRoom(ON_CHIP), rows, 4 * d + 2 * rows + 1);
    for (const [name, on] of Object.entries(PLACES[this.name])) this.chip[on].resize(rows, cols[name], place);
  }

  /**
   * @param {number} position
   * @param {UnderWay | undefined} way
   * @param {string} words
   * @param {Colours} colour
   * @param {Motion} motion
   */
  draw(position, way, words, colour, motion) {
    setSentence(this.sentence, words);
    this.#drawHbm(position, way, colour);
    const isThere = !way || way.to === 1;
    const holds = way ? way.trip[isThere ? "after" : "before"] : new Map();
    this.#drawChip(holds, colour);
    this.#drawWay(way);
    this.#fly(way, colour, motion);
    if (isThere && way?.trip.loads)
      for (const place of holds.keys())
        if (!way.trip.before.has(place)) hide(this.chip[place].matrix.element, { opacity: 0 }, motion);
  }

  /** What is in HBM: what was given, and all that has arrived. */
  #drawHbm(position, way, colour) {
    const { race, hbm, held } = this;
    const { arrays, columns } = race.sides[this.name];
    for (const X of Object.values(held)) X.fill(NaN);
    for (const { loads, flights } of race.arrived(this.name, position))
      if (!loads)
        for (const { name, first, block } of flights) {
          const { offset, rows, cols } = block;
          held[name].set(race.numbers.subarray(offset, offset + rows * cols), first * cols);
        }
    for (const [name, { matrix }] of Object.entries(hbm)) {
      const [X, offset] = held[name] ? [held[name], 0] : [race.numbers, arrays[name]];
      matrix.draw(X, offset, race.setting.N, columns[name], race.peaks[name], colour);
    }
    for (const [name, shelf] of Object.entries(hbm))
      shelf.outline(way?.trip.flights.find((flight) => flight.name === name));
  }

  /** @param {Map<string, Block>} holds @param {Colours} colour */
  #drawChip(holds, colour) {
    const { numbers, peaks } = this.race;
    for (const [place, { matrix }] of Object.entries(this.chip)) {
      const block = holds.get(place);
      if (block) matrix.draw(numbers, block.offset, block.rows, block.cols, peaks[block.array], colour);
      else matrix.clear();
    }
  }

  /** @param {number} needs bytes of the chip */
  drawRoom(needs) {
    const { capacity } = this.race;
    this.fill.style.width = `${Math.min(100, (100 * needs) / capacity)}%`;
    setText(this.needs, roomWords(needs, capacity));
  }

  /** @param {UnderWay | undefined} way */
  #drawWay(way) {
    this.way.dataset.kind = way ? (way.trip.loads ? "read" : "written") : "";
    setText(this.way, !way ? "" : way.trip.loads ? "↓ to the chip" : "↑ to HBM");
  }

  /** Find out where all is; false where there is nothing to be seen. */
  #measure() {
    const origin = this.air.getBoundingClientRect();
    if (this.measured || !origin.width) return this.measured;
    for (const shelf of [...Object.values(this.hbm), ...Object.values(this.chip)]) shelf.measure(origin);
    return (this.measured = true);
  }

  /**
   * Draw what is on its way where it is by now; it comes from where it was before.
   * @param {UnderWay | undefined} way
   * @param {Colours} colour
   * @param {Motion} motion
   */
  #fly(way, colour, motion) {
    const isThere = !way || way.to === 1;
    if ((isThere && !motion.time) || !way || !(this.measured || this.#measure())) {
      this.flown = undefined;
      return this.air.replaceChildren();
    }
    const { trip, from, to } = way;
    if (this.flown !== trip) {
      this.copies = trip.flights.map((flight) => this.#copy(flight, trip));
      this.air.replaceChildren(...this.copies.map(({ element }) => element));
      this.flown = trip;
    }
    trip.flights.forEach((flight, n) => {
      const { element, matrix } = this.copies[n];
      const { offset, rows, cols, array } = flight.block;
      matrix.draw(this.race.numbers, offset, rows, cols, this.race.peaks[array], colour);
      const [start, end] = this.#ends(flight, trip);
      const [before, now] = [from, to].map((t) => onTheWay(start, end, t));
      Object.assign(element.style, now.place);
      Object.assign(matrix.element.style, now.size);
      motion.play(element, [before.place, now.place], () => isThere && element.remove());
      motion.play(matrix.element, [before.size, now.size]);
      if (isThere && !trip.loads) hide(this.hbm[flight.name].here, { backgroundColor: "var(--flash-back)" }, motion);
    });
    if (isThere) this.flown = undefined;
  }

  /** Where a flight begins and ends. */
  #ends({ name, place, first, block }, { loads }) {
    const [above, below] = [this.hbm[name].box(first, block), this.chip[place].box(0, block)];
    return loads ? [above, below] : [below, above];
  }

  /**
   * @param {Flight} flight
   * @param {Trip} trip
   */
  #copy(flight, trip) {
    const { rows, cols } = flight.block;
    const [, end] = this.#ends(flight, trip);
    const size = { rows, cols, width: end.width / cols, height: end.height / rows, numbers: false };
    const matrix = new Matrix(flight.name, size);
    const look = { "data-name": flight.name, "data-kind": trip.loads ? "read" : "written" };
    const style = `left:${end.left}px;top:${end.top}px`;
    const element = h("div", { ...look, style }, matrix.element, h("b", {}, symbol(flight.name)));
    return { element, matrix };
  }
}

/** The transforms that put what is in the box `end` where it is on its way from the box `start`, t from 0 to 1. */
function onTheWay(start, end, t) {
  const left = (1 - t) * (start.left - end.left);
  const top = (1 - t) * (start.top - end.top);
  const size = 1 + (1 - t) * (start.height / end.height - 1);
  return { place: { transform: `translate(${left}px, ${top}px)` }, size: { transform: `scale(${size})` } };
}

/**
 * Cover a place as long as what goes there is on its way.
 * @param {HTMLElement} element
 * @param {Keyframe} look
 * @param {Motion} motion
 */
const hide = (element, look, motion) => motion.play(element, [look, look]);
