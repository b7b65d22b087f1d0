// What Python sends to SplitLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * @typedef {object} Setting
 * @property {number} N_k
 * @property {number} parts
 * @property {string} order
 * @property {number} B
 * @property {number} H_k
 * @property {number} group
 * @property {number} d
 * @property {string} gpu
 */

/**
 * Times in microseconds.
 * @typedef {object} Times
 * @property {{ launches: number, keys: number, states: number, total: number }} now
 * @property {[number, number][]} curve parts, time
 * @property {number} least
 * @property {number | null} best the fastest number of parts, if it is marked
 * @property {number} default
 */

/**
 * How the programs fill the multiprocessors.
 * @typedef {object} Chip
 * @property {number} sms
 * @property {number} at_a_time
 * @property {number} places
 * @property {number} programs
 * @property {number} waves
 * @property {number} last
 */

/**
 * What Python computed of keys in parts.
 * @typedef {object} Result
 * @property {Setting} setting
 * @property {number} n parts
 * @property {number} D columns of O that are drawn
 * @property {number} bins
 * @property {[number, number][]} ranges the keys of each part
 * @property {number} tile
 * @property {string[]} gpus
 * @property {Record<"N_k" | "parts" | "B" | "H_k" | "group" | "d", number[]>} stops
 * @property {{ children: [number, number][], spans: [number, number][], levels: number[] }} nodes parts, then merges
 * @property {number} difference
 * @property {Chip} chip
 * @property {Times} times
 * @property {[number, number][]} record measured: parts, time
 * @property {boolean} other_record
 * @property {string[]} words
 * @property {string} merges
 * @property {string} equal
 * @property {string[]} model
 * @property {DataView} buffer
 */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

/**
 * A State as the page unpacks it from the buffer.
 * @typedef {object} State
 * @property {number} m
 * @property {number} l
 * @property {Float64Array} O_acc
 * @property {number[]} alphas the factors of its two children
 */

/** @typedef {[x: number, y: number]} Place */

export {};
