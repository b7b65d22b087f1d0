// Where ranks stand, and the ways between them.

const RING = { middle: 150, rx: 108, ry: 102 }; // units of the picture
const CROWDED = 5; // ranks: with more, what travels keeps further out, between them

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
 * The control point of the way from one place to another: to the left of who goes, so that two ways do not meet.
 * @param {number[]} a
 * @param {number[]} b
 * @param {number} bulge how far, as a share of the way
 */
const ringBend = ([ax, ay], [bx, by], bulge) => [
  (ax + bx) / 2 + bulge * (by - ay),
  (ay + by) / 2 - bulge * (bx - ax),
];

/**
 * How a way between two of P ranks is bent, and which part of it is drawn.
 * @param {number} from
 * @param {number} to
 * @param {number} P
 */
export function ringWay(from, to, P) {
  const next = (to - from + P) % P === 1;
  if (next && P > CROWDED) return { bulge: 0.44, start: 0.3, stop: 0.7 };
  return { bulge: next ? 0.2 : 0.1, start: 0.16, stop: 0.84 };
}

/**
 * Where on its way from a to b something is, once it has gone a share of it.
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
