// How ranks and hops look. A rank has a colour, and its number beside it; a later hop is paler.

export const RANK_PALEST = 0.4; // of the colour of a rank, in the last hop

/**
 * The fill of what a rank computes in a hop.
 * @param {number} r
 * @param {number} hop
 * @param {number} P
 */
export function ringFill(r, hop, P) {
  const share = 100 * (1 - ((1 - RANK_PALEST) * hop) / Math.max(P - 1, 1));
  return `fill: color-mix(in srgb, var(--flash-ring-${r}) ${share.toFixed(1)}%, var(--flash-back))`;
}

/** A time to four digits. */
export const ringTime = (x) => String(Number(x.toPrecision(4)));

/** @param {number} share */
export const ringPercent = (share) => `${Number((100 * share).toFixed(1))}%`;

export const ringBox = (x, y, wide, high) => `M${x} ${y}h${wide}v${high}h${-wide}z`;
