// Words in the chosen language, inserted here by Python: see flashlib/language.

/** @type {Record<string, string>} */
const WORDS = {};

/**
 * A text without values in the chosen language; anything else unchanged.
 * @template T
 * @param {T} text
 * @returns {T}
 */
export const say = (text) => (typeof text === "string" && Object.hasOwn(WORDS, text) ? /** @type {any} */ (WORDS[text]) : text);

/**
 * "a", "a and b" or "a, b and c".
 * @param {string[]} names
 */
export function andList(names) {
  const [others, last] = [names.slice(0, -1), names.at(-1) ?? ""];
  return others.length ? `${others.map(say).join(", ")} and ${last}` : say(last);
}

/**
 * "1 row" or "2 rows".
 * @param {number} n
 * @param {string} one
 * @param {string} several
 */
export const counted = (n, one, several) => `${n} ${n === 1 ? one : several}`;
