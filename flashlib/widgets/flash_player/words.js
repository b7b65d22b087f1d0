// What a frame does, as an equation, and to one row in words.

/** @import { Frames } from "./frames.js" */
/** @import { At, ForwardStep } from "./types.js" */
import { inBrackets, number } from "../shared/number_text.js";

const SCALED = "S_ij = Q_i K_j^T · scale";

/**
 * What each part of a step does, in a word or two, and as an equation.
 * @param {{ order: string, changed: boolean }} sent
 * @returns {Record<string, [name: string, text: string]>}
 */
export const forwardEquations = ({ order, changed }) => ({
  load: [
    "load",
    order === "fa1" ? "Q_i, O_i, m and l come from HBM; K_j, V_j stay" : "K_j, V_j come from HBM; Q_i stays",
  ],
  scores: ["scores", changed ? `${SCALED}, changed by the mask` : SCALED],
  maximum: ["new maximum", "m = max(m_old, rowmax S_ij)"],
  rescale: ["rescale", "alpha = exp(m_old − m);  alpha · l_old and alpha · O_acc,old"],
  weights: ["weights", "P_ij = exp(S_ij − m)"],
  add: ["add", "l = alpha · l_old + rowsum P_ij;  O_acc = alpha · O_acc,old + P_ij V_j"],
  store: [
    "store",
    order === "fa1"
      ? "O_i = O_acc / l;  O_i, m and l go to HBM"
      : "O_i = O_acc / l;  lse_i = m + log l;  both go to HBM",
  ],
});

/** By part of a step. `first`: whether the step loads the block that stays for the inner loop. */
const SENTENCES = {
  load: ({ i, j, first, name, m_old, l_old, order }) => {
    const state =
      m_old === -Infinity ? "has seen no key yet" : `has m = ${number(m_old)} and l = ${number(l_old)}`;
    const row = `${name} ${state}.`;
    if (order === "fa1")
      return first
        ? `First, block ${j} of K and V comes from HBM and stays. Then block ${i} of Q and O comes, with m and l. ${row}`
        : `Block ${i} of Q and O comes, with m and l. ${row}`;
    return first
      ? `Block ${i} of Q comes from HBM and stays, and block ${j} of K and V comes from HBM too. ${row}`
      : `Block ${j} of K and V comes from HBM. ${row}`;
  },
  scores: ({ name, scores, best, key, changed }) => {
    const largest = `the largest score in this tile is ${number(scores[best])}, of ${key}`;
    const what = "S_ij: scaled products of queries and keys";
    return changed ? `${what}, changed by the mask. ${name}: ${largest}.` : `${what}. ${name}: ${largest}.`;
  },
  maximum: ({ name, m_old, m }) => {
    if (m_old === -Infinity) return `${name}: the first scores it sees; their maximum is m = ${number(m)}.`;
    if (m > m_old) return `${name}: the maximum m grew from ${number(m_old)} to ${number(m)}.`;
    return `${name}: the maximum m did not grow, it stays ${number(m)}.`;
  },
  rescale: ({ name, m_old, m, alpha, l_old, l_rescaled, l_true }) => {
    if (m_old === -Infinity)
      return `${name} has summed nothing yet, so there is nothing to rescale: alpha = exp(−∞) = 0.`;
    if (m === m_old) return `${name}: the maximum m did not grow; alpha = ${number(alpha)}, nothing is rescaled.`;
    const grew = `m grew from ${number(m_old)} to ${number(m)}`;
    const factor = `alpha = exp(${number(m_old)} − ${inBrackets(m)}) = ${number(alpha)}`;
    const l = `l from ${number(l_old)} to ${number(l_rescaled)}`;
    return l_true === undefined
      ? `${name}: ${grew}, so l and O_acc are multiplied by ${factor}: ${l}.`
      : `${name}: ${grew}, so l and O_acc should be multiplied by ${factor}: ${l}.`;
  },
  weights: ({ name, weights }) =>
    `${name} of P_ij: exp(score − m), at most 1 each, together ${number(weights.reduce((sum, p) => sum + p, 0))}.`,
  add: ({ name, alpha, m_old, l_old, l, l_true, weights }) => {
    if (l_true !== undefined) return `${name}: l was ${number(l_old)} and is ${number(l)} now.`;
    if (m_old === -Infinity)
      return `${name} has nothing to rescale yet (alpha = 0): l = ${number(l)} is the sum of its row of P_ij, and O_acc is its row of P_ij V_j.`;
    const sum = `${number(alpha)} · ${number(l_old)} + ${number(weights.reduce((sum, p) => sum + p, 0))}`;
    return `${name}: l = ${sum} = ${number(l)}; O_acc gains the row of P_ij V_j.`;
  },
  store: ({ i, order }) =>
    order === "fa1"
      ? `O_${i} = O_acc / l goes back to HBM, and m and l with it. S and P of this tile are dropped.`
      : `Row block ${i} has seen all its keys: O_acc / l goes to HBM as O_${i}, with lse. S and P are dropped.`,
};

/**
 * @param {Frames} frames
 * @param {At<ForwardStep> & { step: ForwardStep }} at
 * @param {number} selected
 */
export function sentence(frames, { k, step, part }, selected) {
  const { order, steps, changed } = frames;
  const stays = order === "fa1" ? "j" : "i";
  const row = frames.row(step, selected - step.rows[0]);
  const name = frames.rowName(selected);
  if (part !== "load" && part !== "store") {
    if (row.m === -Infinity)
      return `${name} has seen no key: all its scores are masked; m stays −∞, l and O_acc stay 0.`;
    if (row.scores.every((s) => s === -Infinity))
      return `${name} sees no key of this tile: m, l and O_acc stay as they are.`;
  }
  const first = steps[k - 1]?.[stays] !== step[stays];
  const best = row.scores.reduce((best, s, c) => (s > row.scores[best] ? c : best), 0);
  const key = frames.keyName(step.cols[0] + best);
  return SENTENCES[part]({ ...row, name, order, changed, first, i: step.i, j: step.j, best, key });
}
