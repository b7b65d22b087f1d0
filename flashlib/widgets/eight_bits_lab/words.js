// Sentences on shares, on one score and on one sum.

/** @import { Numbers, Place, Result } from "./types.js" */
import { number } from "../shared/number_text.js";

/**
 * A share as a text, with at most three digits: 13.4%, 0.0719%.
 * @param {number} share
 */
export function percent(share) {
  const text = String(Number((100 * share).toPrecision(3)));
  return `${text.replaceAll("-", "−")}%`;
}

/**
 * How much larger or smaller a number is than the exact one, in words.
 * @param {number} now
 * @param {number} exact
 */
function off(now, exact) {
  if (now === exact) return "exact";
  if (now === 0) return "lost";
  if (now * exact <= 0) return "of the opposite sign";
  const share = percent(Math.abs(now / exact - 1));
  return now / exact > 1 ? `${share} too large` : `${share} too small`;
}

/**
 * What happens to one score and its weight, line by line.
 * @param {Place} place
 * @param {Result} result
 * @param {Numbers} numbers
 */
export function accountOf({ row, key }, { shown, setting }, numbers) {
  const k = row * shown + key;
  const [s, s_now, P, P_q] = [numbers.S[k], numbers.S_now[k], numbers.P[k], numbers.P_q[k]];
  const by = s_now - s;
  const times = setting.p_times;
  const [weight, weight_now] = [numbers.weights[k], numbers.weights_now[k]];
  const rest = weight_now / weight / Math.exp(by) / (P_q / P); // m affects P and l by the same factor
  const result = `Its weight P / l is ${number(weight)}; now it is ${number(weight_now)}, ${off(weight_now, weight)}.`;
  const alone = `P = exp(${number(s_now)} − m) = ${number(P / times)}`;
  const scaled = times > 1 ? `${alone}, times ${times}: ${number(P)}` : alone;
  return [
    `The score is ${number(s)}; from Q and K in ${setting.qk} it is ${number(s_now)}, off by ${number(by)}.`,
    `What a score is off by becomes a factor of its weight: exp(${number(by)}) = ${number(Math.exp(by))}.`,
    `${scaled}. In ${setting.pv} that is ${number(P_q)}, ${off(P_q, P)}.`,
    Number.isFinite(rest) ? `${result} Of this, l contributes a factor of ${number(rest)}.` : result,
  ];
}

/**
 * The result of a sum, compared with the same terms added exactly.
 * @param {Place} place
 * @param {Result} result
 * @param {Numbers} numbers
 */
export function endingOf({ row, column }, { rows, cols, points, step, setting }, numbers) {
  const { running, unrounded, unit, lost } = numbers;
  const k = row * cols + column;
  const [sum, exact] = [running, unrounded].map((values) => values[(points - 1) * rows * cols + k]);
  const same = `${setting.N} terms add up to ${number(sum)}; the same terms, added exactly, give ${number(exact)}`;
  const ends = sum === exact ? `${same}.` : `${same}: the sum is ${off(sum, exact)}.`;
  const between = setting.sums === "two levels" && setting.pv !== "fp16";
  if (Number.isNaN(unit[k])) return `${ends} ${between ? "Between tiles nothing" : "Nothing"} is cut off.`;
  const few = lost[k] > 1 ? `${lost[k]} are` : lost[k] === 1 ? "1 is" : "none is";
  const worth = number(Math.abs(unit[k]));
  return `${ends} By then its last bit is worth ${worth}; of the last ${step} terms ${few} smaller.`;
}
