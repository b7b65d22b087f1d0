// What Python sends to OverflowLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * A number, and its text in its format.
 * @typedef {[number, string]} Written
 */

/**
 * What Python computed of a row of scores.
 * @typedef {object} Result
 * @property {{ x: number, dtype: string, copies: number }} setting
 * @property {{ x: number, dtype: string, copies: number }} asked
 * @property {string} name of the format
 * @property {Written} x
 * @property {[Written, Written]} neighbours
 * @property {number[]} range of x
 * @property {number} step
 * @property {number} shift
 * @property {number} most_copies
 * @property {number} n scores
 * @property {DataView} buffer the columns of the table
 * @property {string[]} scores
 * @property {Record<string, string[]>} marks by column: what is wrong with each of its values
 * @property {Record<"positive" | "sum" | "terms", Written>} thresholds
 * @property {Record<"smallest" | "normal" | "largest", number[]>} limits
 * @property {{ naive: string, safe: string }} verdicts
 * @property {string[]} words
 */

/** @typedef {SharedTraits & { result: Result, x: number, dtype: string, copies: number }} Traits */

export {};
