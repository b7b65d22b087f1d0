// What Python sends of MergeTree: see the dicts that its Python builds. Types only: no script has this file.

/** @typedef {[name: string, spans: [number, number][], children: number[], at: number[]]} Node */

/**
 * Of the root from the whole row, the largest.
 * @typedef {object} Differences
 * @property {number} m
 * @property {number} l
 * @property {number} O
 * @property {number} plain of the plain mean
 */

/**
 * @typedef {object} Setting
 * @property {number[]} cuts where the row is cut
 * @property {number[][]} moves the merges so far: the two nodes of each; [] adds the identity
 * @property {string} order "" for by hand
 */

/**
 * What Python merged.
 * @typedef {object} Result
 * @property {Setting} setting
 * @property {number} N
 * @property {number} d
 * @property {number[]} roots what is not merged yet
 * @property {number} leaves
 * @property {Node[]} nodes
 * @property {string} words
 * @property {string[]} accounts of each node
 * @property {Differences | null} differences
 * @property {[string, string, number][]} tried an order, its tree, and how far its root is off
 * @property {number} count
 * @property {number} spread
 * @property {DataView} buffer the numbers of the nodes
 */

/** @typedef {SharedTraits & Setting & { result: Result, plain_mean: boolean }} Traits */

/**
 * The numbers of a node, as the page unpacks them from the buffer.
 * @typedef {object} Numbers
 * @property {number} m
 * @property {number} l
 * @property {Float64Array} O_acc
 * @property {Float64Array} O
 * @property {Float64Array} plain the plain mean of its children's outputs
 * @property {Float64Array} alphas what its children were multiplied by; NaN at a leaf
 */

export {};
