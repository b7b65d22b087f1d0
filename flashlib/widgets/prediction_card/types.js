// What Python sends to PredictionCard's page, in the dicts that its Python code builds. Types only, in no script.

/** @typedef {number | boolean | string | (number | string)[]} Value a tuple is a list; a set, a list of its choices */

/**
 * A part of a prediction.
 * @typedef {object} Field
 * @property {string} part
 * @property {string} label
 * @property {"number" | "bool" | "choice" | "tuple" | "set"} kind
 * @property {Value} right
 * @property {string} shown the right answer, as it appears in a verdict
 * @property {[Value, string][]} wrong a wrong answer, and what it overlooks
 * @property {string[]} choices of a choice, or the possible items of a set
 * @property {number} length how many numbers a tuple has; else 1
 * @property {number} tolerance
 * @property {string} unit
 */

/** @typedef {{ text: string, value: Value }} Answer as it was entered, and as it is graded */

/** @typedef {{ name: string, asks: string, fields: Field[], reason: string, hint: string }} Asked */

/** @typedef {SharedTraits & { card: Asked, given: Record<string, string> }} Traits */

export {};
