// What Python sends to PagesLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * @typedef {object} Setting
 * @property {string} scenario
 * @property {number} page
 * @property {number} n_pages
 */

/**
 * Counts of pages and of rows.
 * @typedef {object} Counts
 * @property {number} used
 * @property {number} kept
 * @property {number} free
 * @property {number} rows
 * @property {number} filled
 * @property {number} waste
 * @property {number} tokens
 * @property {number} reserved
 * @property {number} reserved_waste
 */

/**
 * A step of the scenario.
 * @typedef {object} Frame
 * @property {string} call
 * @property {string} words
 * @property {string} kind
 * @property {string} state a letter for each page
 * @property {number[]} filled
 * @property {string} owners of each page, separated by commas: a list would be longer to send
 * @property {Record<string, number[]>} tables
 * @property {Record<string, number>} lengths
 * @property {number[][]} written
 * @property {number[]} copied
 * @property {number[]} taken
 * @property {number[]} wrong
 * @property {string[]} waits
 * @property {Counts} counts
 */

/**
 * What an allocator did.
 * @typedef {object} Result
 * @property {Setting} setting
 * @property {{ page: number[], n_pages: number[] }} stops
 * @property {Record<string, string>} off for each scenario: why it cannot be played, or ""
 * @property {string} allocator
 * @property {string[]} names
 * @property {number} longest
 * @property {Frame[]} frames
 * @property {number} opens the step that is shown first
 */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

export {};
