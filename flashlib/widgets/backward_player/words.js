// What a frame of the backward pass does, as an equation, and to one row in words.

/** @import { At } from "../flash_player/types.js" */
/** @import { BackwardFrames } from "./frames.js" */
/** @import { BackwardStep } from "./types.js" */
import { inBrackets, number } from "../shared/number_text.js";
import { errorInWords, TELLS } from "./frames.js";

/**
 * What is computed, and how, for newcomers.
 * @param {{ wrt: string }} sent
 */
export const backwardPurpose = ({ wrt }) =>
  wrt === "kv"
    ? "Here dK and dV. A tile of P is computed again and dropped: nothing of size N × N is stored."
    : "Here dQ. A tile of P is computed again and dropped: nothing of size N × N is stored.";

/** @param {string} equation */
const inCode = (equation) => `${equation}  (in the code Q_i has the scale in it)`;

/**
 * What each part of a step does, in a word or two, and as an equation.
 * @param {{ wrt: string }} sent
 * @returns {Record<string, [name: string, text: string]>}
 */
export const backwardEquations = ({ wrt }) => ({
  load: [
    "load",
    wrt === "kv"
      ? "Q_i, dO_i, lse_i, delta_i come; K_j, V_j stay"
      : "K_j, V_j come; Q_i, dO_i, lse_i, delta_i stay",
  ],
  scores: ["scores", inCode("S_ij = Q_i K_j^T · scale")],
  weights: ["P, recomputed", "P_ij = exp(S_ij − lse_i)"],
  dP: ["gradient of P", "dP_ij = dO_i V_j^T"],
  dS: ["gradient of S", "dS_ij = P_ij ∘ (dP_ij − delta_i)"],
  add: ["add", wrt === "kv" ? inCode("dV_j += P_ij^T dO_i;  dK_j += dS_ij^T Q_i · scale") : "dQ_i += dS_ij K_j"],
  store: ["store", wrt === "kv" ? "dK_j and dV_j go to HBM" : "dQ_i · scale goes to HBM"],
});

/** By part of a step. c: the key with the row's largest weight in this tile. */
const TOLD = {
  load: ({ i, j, wrt, first }) => {
    const kept = "lse and delta: one number each for a row";
    if (wrt === "kv") {
      if (!first) return `Block ${i} of Q and dO comes from HBM, with ${kept}.`;
      const start = `Block ${j} of K and V comes from HBM and stays; dK_${j} and dV_${j} begin at 0.`;
      return `${start} Then block ${i} of Q and dO comes, with ${kept}.`;
    }
    if (!first) return `Block ${j} of K and V comes from HBM.`;
    const start = `Block ${i} of Q and dO comes from HBM and stays, with ${kept}; dQ_${i} begins at 0.`;
    return `${start} Then block ${j} of K and V comes.`;
  },
  scores: ({ row, key, S }) =>
    `${row}: the products with the keys, as in the forward pass; ${number(S)} for ${key}.`,
  weights: ({ row, key, S, P, lse }) => {
    const weight = `P = exp(${number(S)} − ${inBrackets(lse)}) = ${number(P)}`;
    const why = "lse is of the whole row: there is no maximum to wait for and nothing to rescale.";
    return `${row}: ${weight} for ${key}, as in the forward pass. ${why}`;
  },
  dP: ({ row, key, dP }) =>
    `${row}: its dO times the row of V is ${number(dP)} for ${key}: how fast the loss grows with this weight.`,
  dS: ({ row, key, P, dP, dS, delta }) => {
    const product = `${number(P)} · (${number(dP)} − ${inBrackets(delta)}) = ${number(dS)}`;
    const side = dP > delta ? "above" : dP < delta ? "below" : "at";
    return `${row}, ${key}: P · (dP − delta) = ${product}. Its dP is ${side} delta, the row's mean of dP weighted by P.`;
  },
  add: ({ wrt, i, j, before, after, dtype }) => {
    const error = (x) => errorInWords(x, dtype);
    const terms =
      wrt === "kv"
        ? `What tile (${i}, ${j}) adds: P_ij^T dO_i to dV_${j}, and dS_ij^T Q_i · scale to dK_${j}.`
        : `What tile (${i}, ${j}) adds: dS_ij K_j to dQ_${i}.`;
    return `${terms} Largest error of this block: ${error(before)} before, now ${error(after)}.`;
  },
  store: ({ i, j, wrt }) =>
    wrt === "kv"
      ? `Column block ${j} has met all its row blocks: dK_${j} and dV_${j} go to HBM, once. S, P, dP and dS are dropped.`
      : `Row block ${i} has met all its column blocks: dQ_${i} · scale goes to HBM, once. S, P, dP and dS are dropped.`,
};

/**
 * @param {BackwardFrames} frames
 * @param {At<BackwardStep> & { step: BackwardStep }} at
 * @param {number} selected
 */
export function backwardSentence(frames, at, selected) {
  const { k, step, part } = at;
  const { numbers, errors, wrt, dtype } = frames;
  const { lse, delta, ...cells } = frames.row(step, selected - step.rows[0]);
  const row = `Row ${selected}`;
  if (TELLS.has(part)) {
    if (lse === -Infinity)
      return `${row} sees no key: its lse is −∞, and 0 is taken in its place, so that P = exp(−∞) = 0. It adds nothing.`;
    if (cells.S.every((s) => s === -Infinity))
      return `${row} sees no key of this tile: its P is exp(−∞) = 0 here, and so is its dS. It adds nothing.`;
  }
  const c = cells.P.reduce((best, p, c) => (p > cells.P[best] ? c : best), 0);
  const own = Object.fromEntries(Object.entries(cells).map(([name, X]) => [name, X[c]]));
  const [before, after] = ["before", "after"].map((name) => numbers[errors[name] + k]);
  const key = `key ${step.cols[0] + c}`;
  return TOLD[part]({ ...step, ...own, wrt, dtype, row, key, lse, delta, before, after });
}
