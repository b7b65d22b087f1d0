// What Python sends to BackwardPlayer's page, in the dicts that its Python code builds. Types only, in no script.

/** @import { Recorded, Setting, Shown, Step, Tiling } from "../flash_player/types.js" */

/** @typedef {"dQ" | "dK" | "dV"} Gradient */

/**
 * Offsets.
 * @typedef {object} Inputs
 * @property {number} Q
 * @property {number} K
 * @property {number} V
 * @property {number} dO
 * @property {number} lse
 * @property {number} delta
 */

/**
 * Offsets: of the errors of the block before and after each step, and of all rows before each step and at the end.
 * @typedef {object} Errors
 * @property {number} before
 * @property {number} after
 * @property {number} whole
 */

/**
 * @typedef {object} Backward
 * @property {Gradient[]} gradients
 * @property {Inputs} inputs
 * @property {Errors} errors
 * @property {"kv" | "q"} wrt what is summed
 * @property {number[]} both bytes that both passes read and write
 * @property {Record<string, string[]>} lines
 * @property {number | null} opens_at
 */

/** @typedef {Tiling & Recorded & Shown & Backward} Sent */

/** @typedef {SharedTraits & Setting & { frames: Sent, wrt: string }} Traits */

/**
 * @typedef {object} BackwardArrays
 * @property {number} S_ij
 * @property {number} P_ij
 * @property {number} dP_ij
 * @property {number} dS_ij
 * @property {boolean} first whether it is the first of its block
 */

/** @typedef {Step & BackwardArrays & Record<`${Gradient}_${"added" | "old" | "sum"}`, number>} BackwardStep */

/**
 * One of the two passes: the blocks that stay and sum, the tensors that stay and that pass by, a step's matrices.
 * @typedef {object} Pass
 * @property {"row" | "column"} block
 * @property {"i" | "j"} index
 * @property {"rows" | "cols"} rows
 * @property {string[]} stays
 * @property {string[]} passes
 * @property {string} loaded
 * @property {Record<string, string>} added
 * @property {string[]} reads
 */

export {};
