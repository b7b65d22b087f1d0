const DIGITS = [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7]];

/**
 * Round numbers from low to high, at most `count` of them.
 * @param {number} low
 * @param {number} high
 */
export function ticksOf(low, high, count = 7) {
  const powers = Array.from({ length: 24 }, (_, k) => k - 9);
  const among = (digits) =>
    powers.flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`))).filter((x) => x >= low && x <= high);
  return DIGITS.map(among).findLast((all) => all.length <= count) ?? [];
}

/**
 * The powers of two from 1 to `most`, at most `count` of them.
 * @param {number} most
 */
export function doublings(most, count = 9) {
  const all = Array.from({ length: Math.floor(Math.log2(most)) + 1 }, (_, k) => 2 ** k);
  return all.length > count ? all.filter((_, k) => k % 2 === 0) : all;
}

/**
 * The place of a number between `low` and `high` on a logarithmic axis from one end to another.
 * @param {number} low
 * @param {number} high
 * @param {number} from
 * @param {number} to
 * @returns {(x: number) => number}
 */
export const logarithmic = (low, high, from, to) => (x) =>
  from + ((to - from) * Math.log(x / low)) / (Math.log(high / low) || 1);

/**
 * Call `draw` whenever an element's width changes, with the new width in px in `holder.room`; returns the observer.
 * @param {Element} element
 * @param {{ room?: number }} holder
 * @param {() => void} draw
 */
export function watchRoom(element, holder, draw) {
  const observer = new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || contentRect.width === holder.room) return; // a hidden one will get its width back
    holder.room = contentRect.width;
    draw();
  });
  observer.observe(element);
  return observer;
}
