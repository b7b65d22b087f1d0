// How ranks and hops look. A rank has a colour next to its number; a later hop is paler, in the dark theme greyer.

const RANK_PALEST = 0.6; // of the colour of a rank, in the last hop

/**
 * The fill of what a rank computes in a hop.
 * @param {number} r
 * @param {number} hop
 * @param {number} P
 */
export function ringFill(r, hop, P) {
  const share = 100 * (1 - ((1 - RANK_PALEST) * hop) / Math.max(P - 1, 1));
  return `fill: color-mix(in srgb, var(--flash-ring-${r}) ${share.toFixed(1)}%, var(--flash-ring-ground))`;
}

/** A time to four digits. */
export const ringTime = (x) => String(Number(x.toPrecision(4)));

/** @param {number} share */
export const ringPercent = (share) => `${Number((100 * share).toFixed(1))}%`;

/**
 * Round times from 0 to `end`, evenly spaced, at most `most` of them.
 * @param {number} end
 * @param {number} most
 */
export function ringTicks(end, most) {
  const powers = Array.from({ length: 9 }, (_, k) => 10 ** (k - 4));
  const steps = powers.flatMap((power) => [1, 2, 5].map((digit) => digit * power));
  const apart = steps.find((step) => end / step < most) ?? end;
  return end > 0 ? Array.from({ length: Math.floor(end / apart + 1e-9) + 1 }, (_, k) => k * apart) : [0];
}

export const ringBox = (x, y, wide, high) => `M${x} ${y}h${wide}v${high}h${-wide}z`;
