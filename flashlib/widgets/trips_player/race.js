// The trips of both sides on one clock, which counts bytes: each side moves a byte in the same time.

/** @import { Block, Flight, Sent, SentRun, SentTrip, Trip, UnderWay } from "./types.js" */
import { float64 } from "../shared/number_text.js";

const TILE = ["S_ij", "P_ij", "O_acc"]; // what FlashAttention computes of a load, in the order of Python
const KEPT = ["Q_i", "O_acc"]; // on the chip, from one tile of a block of rows to the next

/** Of each side, where an array goes on the chip. */
export const PLACES = {
  standard: { Q: "Q", K: "K", V: "V", S: "S", P: "P", O: "O", lse: "lse" },
  flash: { Q: "Q_i", K: "K_j", V: "V_j", S: "S_ij", P: "P_ij", O: "O_acc", lse: "lse_i" },
};

/** @typedef {keyof typeof PLACES} SideName */

/** All trips of a side. */
class Run {
  /**
   * @param {SideName} name
   * @param {SentRun} run
   * @param {{ N: number, d: number }} setting
   */
  constructor(name, { arrays, trips }, { N, d }) {
    this.name = name;
    this.arrays = arrays;
    this.columns = { Q: d, K: d, V: d, O: d, S: N, P: N, lse: 1 };
    /** @type {Trip[]} */
    this.trips = [];
    trips.forEach((trip, k) => this.trips.push(this.#trip(trip, trips[k + 1], this.trips[k - 1])));
    this.total = this.trips.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * @param {SentTrip} sent
   * @param {SentTrip | undefined} next
   * @param {Trip | undefined} previous
   * @returns {Trip}
   */
  #trip(sent, next, previous) {
    const { loads } = sent;
    const flights = this.#flights(sent);
    const bytes = flights.reduce((sum, flight) => sum + flight.bytes, 0);
    const start = previous?.end ?? 0;
    const brought = flights.map(({ place, block }) => /** @type {[string, Block]} */ ([place, block]));
    const moved = flights.map(({ place }) => place);
    const stays = (place) => (!loads || KEPT.includes(place)) && !moved.includes(place);
    const before = new Map([...(previous?.after ?? [])].filter(([place]) => stays(place)));
    const after = new Map(loads ? [...before, ...brought, ...this.#computed(sent, next)] : []);
    return { loads, flights, bytes, start, end: start + bytes, before, after };
  }

  /**
   * @param {SentTrip} trip
   * @returns {Flight[]}
   */
  #flights({ moves }) {
    return moves.map(([name, first, stop, bytes]) => {
      const cols = this.columns[name];
      const block = { offset: this.arrays[name] + first * cols, rows: stop - first, cols, array: name };
      return { name, place: PLACES[this.name][name], first, stop, bytes, block };
    });
  }

  /**
   * What the chip computes once a load is there: a tile, or what the next trip stores.
   * @param {SentTrip} trip
   * @param {SentTrip | undefined} next
   * @returns {[place: string, block: Block][]}
   */
  #computed({ moves, computed }, next) {
    if (!computed) return next ? this.#flights(next).map(({ place, block }) => [place, block]) : [];
    const [, first, stop] = moves[moves.length - 1]; // of V
    const cols = { S_ij: stop - first, P_ij: stop - first, O_acc: this.columns.O };
    const rows = this.#rows(moves);
    return TILE.map((place, n) => [place, { offset: computed[n], rows, cols: cols[place], array: place }]);
  }

  /** How many rows of Q the chip holds. */
  #rows(moves) {
    const own = moves.find(([name]) => name === "Q");
    return own ? own[2] - own[1] : /** @type {Block} */ (this.trips[this.trips.length - 1].after.get("Q_i")).rows;
  }
}

/** Positions are the times between two moments at which a trip of either side ends; the last one is the end. */
export class Race {
  /** @param {Sent} sent */
  constructor(sent) {
    const { setting, capacity, tile } = sent;
    this.setting = setting;
    this.capacity = capacity;
    this.B = tile[0]; // rows of a block
    this.tile = tile[1]; // bytes
    this.numbers = float64(sent.buffer);
    this.sides = {
      standard: new Run("standard", sent.standard, setting),
      flash: new Run("flash", sent.flash, setting),
    };
    const ends = Object.values(this.sides).flatMap(({ trips }) => trips.map(({ end }) => end));
    this.moments = [...new Set(ends)].sort((a, b) => a - b);
    this.last = this.moments.length;
    this.most = Math.max(...Object.values(this.sides).map(({ total }) => total));
    this.peaks = this.#peaks();
  }

  /** The largest size of the numbers of each array, and of each kind of tile. */
  #peaks() {
    /** @type {Record<string, number>} */
    const peaks = {};
    for (const { trips } of Object.values(this.sides))
      for (const { after } of trips)
        for (const { array, offset, rows, cols } of after.values())
          for (const x of this.numbers.subarray(offset, offset + rows * cols))
            peaks[array] = Math.max(peaks[array] ?? 0, Math.abs(x));
    return peaks;
  }

  /**
   * The bytes that the clock counts from the beginning to the end of a position.
   * @param {number} position
   */
  span(position) {
    const at = (k) => (k < 0 ? 0 : this.moments[Math.min(k, this.last - 1)]);
    return [at(position - 1), at(position)];
  }

  /**
   * What a side moves at a position; undefined once it is done.
   * @param {SideName} name
   * @param {number} position
   * @returns {UnderWay | undefined}
   */
  underWay(name, position) {
    if (position >= this.last) return undefined;
    const [from, to] = this.span(position);
    const { trips } = this.sides[name];
    const k = trips.findIndex(({ end }) => end >= to);
    if (k < 0) return undefined;
    const { start, bytes } = trips[k];
    return { k, trip: trips[k], from: (from - start) / bytes, to: (to - start) / bytes };
  }

  /**
   * The bytes that a side has moved at the end of a position.
   * @param {SideName} name
   * @param {number} position
   */
  moved(name, position) {
    return Math.min(this.span(position)[1], this.sides[name].total);
  }

  /**
   * The trips of a side that have arrived at the end of a position.
   * @param {SideName} name
   * @param {number} position
   */
  arrived(name, position) {
    const [, to] = this.span(position);
    return this.sides[name].trips.filter(({ end }) => end <= to);
  }

  /** The positions at which standard attention's trips begin. */
  starts() {
    return this.sides.standard.trips.map(({ start }) => this.moments.findIndex((moment) => moment > start));
  }
}
