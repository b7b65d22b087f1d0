// What Python sends of PredictionCard: see the dicts that its Python builds. Types only: no script has this file.

/**
 * A part of a prediction.
 * @typedef {object} Field
 * @property {string} part
 * @property {string} label
 * @property {"number" | "bool" | "choice" | "tuple" | "set"} kind
 * @property {string} right
 * @property {string} shown the right answer, as a verdict says it
 * @property {[string, string][]} wrong a wrong answer, and what it overlooks
 * @property {string[]} choices
 * @property {number} length of a tuple, or of each item of a set (0: numbers)
 * @property {number} tolerance
 * @property {string} unit
 * @property {Record<string, number>} units that fit, as they may be written: how many of `unit` each is
 */

/** @typedef {{ name: string, asks: string, fields: Field[], reason: string, hint: string }} Asked */

/** @typedef {SharedTraits & { card: Asked, given: Record<string, string> }} Traits */

export {};
