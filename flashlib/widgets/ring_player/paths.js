// The places of ranks on a circle, and the curved paths between them.

const RING = { middle: 150, rx: 108, ry: 102 }; // units of the picture
const CROWDED = 5; // ranks: with more, the paths between neighbours bend further out
const CLEAR = [36, 4]; // units from the middle of a rank's box, and above and below it, at which a number is clear of it

/**
 * Places of P ranks, clockwise from the top.
 * @param {number} P
 * @param {number} y
 */
export function ringPlaces(P, y) {
  const angle = (r) => (2 * Math.PI * r) / P - Math.PI / 2;
  return Array.from({ length: P }, (_, r) => [
    RING.middle + RING.rx * Math.cos(angle(r)),
    y + RING.ry * Math.sin(angle(r)),
  ]);
}

/**
 * The control point of the path from one place to another: to its left, so that the paths there and back do not meet.
 * @param {number[]} a
 * @param {number[]} b
 * @param {number} bulge its distance, as a share of the path's length
 */
const ringBend = ([ax, ay], [bx, by], bulge) => [
  (ax + bx) / 2 + bulge * (by - ay),
  (ay + by) / 2 - bulge * (bx - ax),
];

/**
 * Whether a copy's number at a point is clear of the box of a rank.
 * @param {number[]} point
 * @param {number[]} place
 * @param {number} high of the box
 */
export const ringClear = ([x, y], [px, py], high) =>
  Math.abs(x - px) >= CLEAR[0] || Math.abs(y - py) >= high / 2 + CLEAR[1];

/**
 * The bend of the path between two ranks, and the part of it that is drawn, between their boxes of height `high`.
 * @param {number} from
 * @param {number} to
 * @param {number[][]} places
 * @param {number} high
 */
export function ringWay(from, to, places, high) {
  const P = places.length;
  const next = (to - from + P) % P === 1;
  const beside = next || (from - to + P) % P === 1;
  const bulge = beside && P > CROWDED ? 0.8 : next ? 0.2 : 0.1;
  const ends = [places[from], places[to]];
  const start = Array.from({ length: 50 }, (_, k) => k / 100).find((share) =>
    [share, 1 - share].every((t) => {
      const point = ringPoint(ends[0], ends[1], t, { bulge, start: 0, stop: 1 });
      return ends.every((place) => ringClear(point, place, high));
    }),
  );
  return { bulge, start: start ?? 0.5, stop: 1 - (start ?? 0.5) };
}

/**
 * The point on the path from a to b after a share of it.
 * @param {number[]} a
 * @param {number[]} b
 * @param {number} share
 * @param {{ bulge: number, start: number, stop: number }} way
 */
export function ringPoint(a, b, share, { bulge, start, stop }) {
  const t = start + (stop - start) * share;
  const c = ringBend(a, b, bulge);
  return a.map((x, k) => (1 - t) ** 2 * x + 2 * t * (1 - t) * c[k] + t ** 2 * b[k]);
}
