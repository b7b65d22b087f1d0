// What is said of the trip at work on each side.

/** @import { Race } from "./race.js" */
/** @import { UnderWay } from "./types.js" */
import { bytes, span } from "../flash_player/frames.js";
import { threeDigits } from "../shared/number_text.js";

/**
 * What the setting shows, in a sentence or two.
 * @param {Race} race
 */
export function compared({ sides: { standard, flash } }) {
  const times = threeDigits(standard.total / flash.total);
  return `Both move bytes at the same speed. FlashAttention is done after ${bytes(flash.total)}, standard attention after ${bytes(standard.total)}: ${times} times as many.`;
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
  const moved = bytes(way.trip.bytes);
  const needs = needed(race, way);
  const fits = needs <= capacity;
  if (way.k === 0) return `Trip 1 of 6: Q and K go to the chip, ${moved}. Their scaled product is S.`;
  if (way.k === 1 && fits)
    return `Trip 2 of 6: S goes out to HBM, ${moved}. It would fit, but the next pass begins with an empty chip.`;
  if (way.k === 1)
    return `Trip 2 of 6: S goes out to HBM, ${moved}. It cannot stay: the pass needs ${bytes(needs)}, the chip holds ${bytes(capacity)}.`;
  if (way.k === 2) return `Trip 3 of 6: the same S comes back, ${moved}. The softmax of its rows is P.`;
  if (way.k === 3) return `Trip 4 of 6: P goes out to HBM, and lse with it, ${moved}.`;
  if (way.k === 4) return `Trip 5 of 6: the same P comes back, and V with it, ${moved}. P times V is O.`;
  return `Trip 6 of 6: O goes out to HBM, ${moved}.`;
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
  const [number, count, moved] = [k + 1, trips.length, bytes(trip.bytes)];
  if (!trip.loads)
    return `Trip ${number} of ${count} takes ${rows("O")} of O and lse out to HBM, ${moved}. This block is finished.`;
  if (rows("Q"))
    return `Trip ${number} of ${count} brings ${rows("Q")} of Q and ${rows("K")} of K and V to the chip, ${moved}. Their tile of S and P is used there and dropped.`;
  return `Trip ${number} of ${count} brings ${rows("K")} of K and V to the chip, ${moved}. Their tile of S and P is used there and dropped.`;
}
