// What is said of the trip at work on each side.

/** @import { Race } from "./race.js" */
/** @import { UnderWay } from "./types.js" */
import { bytes, span } from "../flash_player/frames.js";
import { threeDigits } from "../shared/number_text.js";

/**
 * What the setting shows, in a sentence.
 * @param {Race} race
 */
export function compared({ sides: { standard, flash } }) {
  const times = threeDigits(standard.total / flash.total);
  return `Standard attention moves ${times} times as many bytes as FlashAttention, because S and P go out to slow memory and come back.`;
}

/**
 * The bytes of a trip, and how many of them have moved if it is on its way.
 * @param {UnderWay} way
 */
const movedOf = ({ trip, to }) =>
  to < 1 ? `${bytes(Math.round(to * trip.bytes))} of ${bytes(trip.bytes)} so far` : bytes(trip.bytes);

/**
 * What a side needs of the chip.
 * @param {number} needs bytes; 0 if it is done
 * @param {number} capacity
 */
export function roomWords(needs, capacity) {
  if (!needs) return `holds ${bytes(capacity)}`;
  if (needs <= capacity) return `needs ${bytes(needs)} of its ${bytes(capacity)}`;
  return `${bytes(needs)} do not fit into ${bytes(capacity)}: it works in parts`;
}

/**
 * The bytes that the pass of standard attention at work has on the chip: what it loads and what it computes of it.
 * @param {Race} race
 * @param {UnderWay} way
 */
export function needed({ sides: { standard } }, { k }) {
  const [load, store] = [k - (k % 2), k - (k % 2) + 1];
  return standard.trips[load].bytes + standard.trips[store].bytes;
}

/**
 * @param {Race} race
 * @param {UnderWay | undefined} way
 */
export function standardWords(race, way) {
  const { sides, capacity } = race;
  const { trips, total } = sides.standard;
  if (!way) {
    const carries = ({ name }) => name === "S" || name === "P";
    const scores = trips.flatMap(({ flights }) => flights.filter(carries));
    const share = Math.round((100 * scores.reduce((sum, flight) => sum + flight.bytes, 0)) / total);
    return `Finished. ${scores.length} of the ${trips.length} trips carried S or P: ${share} % of all bytes.`;
  }
  const moved = movedOf(way);
  const needs = needed(race, way);
  const fits = needs <= capacity;
  if (way.k === 0) return `Trip 1 of its 6: Q and K go to the chip, ${moved}. Their scaled product is S.`;
  if (way.k === 1 && fits)
    return `Trip 2 of its 6: S goes out to HBM, ${moved}. It would fit, but the next pass begins with an empty chip.`;
  if (way.k === 1)
    return `Trip 2 of its 6: S goes out to HBM, ${moved}. It cannot stay: the pass needs ${bytes(needs)}, the chip holds ${bytes(capacity)}.`;
  if (way.k === 2) return `Trip 3 of its 6: the same S comes back, ${moved}. The softmax of its rows is P.`;
  if (way.k === 3) return `Trip 4 of its 6: P goes out to HBM, and with it lse, one number per row, ${moved}.`;
  if (way.k === 4) return `Trip 5 of its 6: the same P comes back, and V with it, ${moved}. P times V is O.`;
  return `Trip 6 of its 6: O goes out to HBM, ${moved}.`;
}

/**
 * @param {Race} race
 * @param {UnderWay | undefined} way
 */
export function flashWords({ sides: { flash } }, way) {
  const { trips } = flash;
  if (!way) return `Finished after ${trips.length} trips. S and P were never in HBM.`;
  const { k, trip } = way;
  const rows = (name) => {
    const flight = trip.flights.find((one) => one.name === name);
    return flight && span("row", [flight.first, flight.stop]);
  };
  const [number, count, moved] = [k + 1, trips.length, movedOf(way)];
  if (!trip.loads)
    return `Trip ${number} of its ${count} takes ${rows("O")} of O and of lse, one number per row, out to HBM, ${moved}. This block is finished.`;
  if (rows("Q"))
    return `Trip ${number} of its ${count} brings ${rows("Q")} of Q and ${rows("K")} of K and V to the chip, ${moved}. Their tile of S and P is used there and dropped.`;
  return `Trip ${number} of its ${count} brings ${rows("K")} of K and V to the chip, ${moved}. Their tile of S and P is used there and dropped.`;
}
