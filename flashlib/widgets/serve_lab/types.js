// What Python sends to ServeLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * @typedef {object} Setting
 * @property {string} scenario
 * @property {number} batch
 * @property {number} chunk
 * @property {number} n_pages
 */

/**
 * @typedef {object} Request
 * @property {number} arrives
 * @property {number} prompt
 * @property {number} answer
 * @property {number} same
 */

/**
 * A step of a server.
 * @typedef {object} Frame
 * @property {number} decode
 * @property {number} reading
 * @property {number} taken
 * @property {number} read
 * @property {number} tokens
 * @property {number} wait
 * @property {number} used
 * @property {number} kept
 * @property {number} free
 * @property {string} words
 */

/**
 * One way to serve the requests.
 * @typedef {object} Run
 * @property {string} name
 * @property {number} steps
 * @property {string[]} lanes of each request, a letter for each step
 * @property {[number, number, boolean][][]} parts
 * @property {string} words
 * @property {number[]} first
 * @property {number[]} last
 * @property {Frame[]} frames
 */

/**
 * What two servers did with the same requests.
 * @typedef {object} Result
 * @property {Setting} setting
 * @property {{ batch: number[], chunk: number[], n_pages: number[] }} stops
 * @property {string[]} scenarios
 * @property {number} page
 * @property {Request[]} requests
 * @property {number} steps
 * @property {number} opens the step that is shown first
 * @property {number} most
 * @property {Run[]} runs
 * @property {string[][]} totals
 * @property {string} equal
 */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

export {};
