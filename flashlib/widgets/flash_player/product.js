// A score under the pointer: its row of Q, its row of K, and their product written out.

/** @import { Frames } from "./frames.js" */
/** @import { ForwardStep } from "./types.js" */
import { inBrackets, number, short } from "../shared/number_text.js";

const TERMS = 6; // terms of a product that are written; of a longer one, the first

/**
 * The product behind a score; r and c are relative to its tile.
 * @param {Frames} frames
 * @param {ForwardStep} step
 * @param {number} r
 * @param {number} c
 */
export function product({ numbers, inputs, d, scale, changed, keyWords, rowWords }, step, r, c) {
  const [row, key] = [step.rows[0] + r, step.cols[0] + c];
  const q = numbers.subarray(inputs.Q + row * d, inputs.Q + (row + 1) * d);
  const k = numbers.subarray(inputs.K + key * d, inputs.K + (key + 1) * d);
  const factor = (x) => (x < 0 ? `(${short(x)})` : short(x));
  const terms = [...q].map((x, n) => `${factor(x)} · ${factor(k[n])}`);
  const few = terms.length > TERMS ? [...terms.slice(0, TERMS - 1), `… (${d} products)`] : terms;
  const value = scale * q.reduce((sum, x, n) => sum + x * k[n], 0);
  const score = numbers[step.S_ij + r * step.n_c + c];
  const written = `(${few.join(" + ")}) · ${inBrackets(scale)} = ${number(value)}`;
  const product = keyWords && rowWords
    ? `Row ${row} of Q (${rowWords[row]}) times row ${key} of K (${keyWords[key]}): ${written}.`
    : `Row ${row} of Q times row ${key} of K: ${written}.`;
  if (score === -Infinity) return `${product} The mask cuts it: −∞.`;
  return changed ? `${product} The mask changes it to ${number(score)}.` : product;
}
