// What Python sends to MergeTree's page, in the dicts that its Python code builds. Types only, in no script.

/** @typedef {[name: string, spans: [number, number][], children: number[], at: number[]]} Node */

/**
 * The largest differences of the root from the whole row.
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
 * @property {string} order "" if merged by hand
 */

/**
 * What Python merged.
 * @typedef {object} Result
 * @property {Setting} setting
 * @property {number} N
 * @property {number} d
 * @property {number[]} roots the nodes not merged yet
 * @property {number} leaves
 * @property {Node[]} nodes
 * @property {string} words
 * @property {string[]} accounts of each node
 * @property {Differences | null} differences
 * @property {[string, string, number][]} tried an order, its tree, and the error of its root
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
 * @property {Float64Array} alphas the factors of its children; NaN at a leaf
 */

export {};
