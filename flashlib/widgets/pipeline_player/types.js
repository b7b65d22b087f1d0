// What Python sends to PipelinePlayer's page, in the dicts that its Python code builds. Types only, in no script.

/** @typedef {[kind: string, name: string, start: number, end: number, role: number]} Span */

/**
 * What a unit, a role, a slot or a barrier does over time.
 * @typedef {object} Row
 * @property {string} name
 * @property {"units" | "roles" | "slots" | "barriers"} group
 * @property {Span[]} spans
 * @property {[number, number][]} ticks of a barrier: when a phase ends, and its number
 * @property {number} [use] of a unit: the share of the time that it is busy
 */

/**
 * @typedef {object} Program
 * @property {string} name
 * @property {string} words
 * @property {string[]} fault what went wrong, in sentences
 * @property {Row[]} rows
 * @property {string[]} roles
 * @property {Record<string, string>} meanings of barriers, in words
 * @property {[number, string][]} moments a sentence, and the time from which it holds
 * @property {number} end
 */

/**
 * What a pipeline did.
 * @typedef {object} Result
 * @property {"clocks" | "actions"} axis
 * @property {number} end
 * @property {number[]} events
 * @property {number} opens the event that is shown first
 * @property {Program[]} programs
 */

/** @typedef {SharedTraits & { result: Result }} Traits */

export {};
