// What Python sends to MaskLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * @typedef {object} Setting
 * @property {string} kind
 * @property {string} also
 * @property {number | null} left
 * @property {number | null} right
 * @property {number} n
 * @property {string} lengths
 * @property {number} block
 * @property {number} share
 * @property {string} line
 * @property {number} N_q
 * @property {number} N_k
 * @property {number} B_r
 * @property {number} B_c
 * @property {number} d
 */

/**
 * A count with the mask, and without one.
 * @typedef {object} Compared
 * @property {string} name
 * @property {number} mask
 * @property {number} dense
 * @property {number} ratio
 * @property {string} text
 * @property {string} percent
 */

/**
 * What Python computed of a mask.
 * @typedef {object} Result
 * @property {DataView} runs of each row, how many; then their columns, from and to: see `unpackRuns`
 * @property {string[]} kinds a letter for each tile, a string for each row of tiles
 * @property {Record<"all" | "computed" | "hidden" | "whole" | "cut", number>} tiles
 * @property {Record<"all" | "computed" | "seen", number>} scores
 * @property {Compared[]} against
 * @property {boolean} bounds
 * @property {boolean} interval
 * @property {number} table
 * @property {boolean} changes_scores
 * @property {Setting} setting
 * @property {string[]} kinds_offered
 * @property {string[]} used the settings that this kind has
 * @property {string} code
 * @property {number[] | null} lengths
 * @property {string[]} words
 * @property {string[]} rows what each row sees, in words
 */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

export {};
