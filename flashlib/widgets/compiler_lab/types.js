// What Python sends to CompilerLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * The requested settings; null means the choice of the launch.
 * @typedef {object} Asked
 * @property {string} kernel
 * @property {number} d
 * @property {string} dtype
 * @property {number | string} capability
 * @property {boolean} causal
 * @property {number | null} [B_r]
 * @property {number | null} [B_c]
 * @property {number | null} [num_warps]
 * @property {number | null} [num_stages]
 * @property {boolean | null} [descriptors]
 */

/**
 * What a program takes of a resource.
 * @typedef {object} Takes
 * @property {string} name
 * @property {string} text
 * @property {number | null} share
 * @property {string} note
 * @property {boolean} bad
 */

/**
 * How often an instruction occurs in each listing.
 * @typedef {object} Instructions
 * @property {string} name
 * @property {string} meaning
 * @property {(number | null)[]} counts null if there is no loop
 */

/**
 * A listing and the part of it that is the loop.
 * @typedef {object} Listed
 * @property {string} loop
 * @property {Record<string, number[]>} counted the lines of each instruction in the loop
 * @property {number[]} lines of the loop, and in all
 */

/**
 * A compiled kernel; {} if the first compilation failed.
 * @typedef {object} Result
 * @property {string} title
 * @property {{ text: string, bad: boolean }[]} verdicts
 * @property {Takes[]} takes
 * @property {string[]} columns listings that instructions are counted in
 * @property {Instructions[]} instructions
 * @property {Record<string, Listed>} listings
 * @property {Asked} asked
 * @property {number} number
 */

/**
 * What the compiler is doing.
 * @typedef {object} Work
 * @property {string} state
 * @property {Asked} asked
 * @property {string} words
 * @property {string} why
 * @property {number} started
 * @property {number} took
 */

/**
 * The values of each control.
 * @typedef {object} Offered
 * @property {[name: string, title: string, lacks: string[]][]} kernel
 * @property {[id: number | string, title: string, maker: string][]} capability
 * @property {number[]} d
 * @property {(number | null)[]} B_r
 * @property {(number | null)[]} B_c
 * @property {(number | null)[]} num_warps
 * @property {(number | null)[]} num_stages
 */

/**
 * @typedef {object} Setting
 * @property {string} kernel
 * @property {number} d
 * @property {string} dtype
 * @property {number | string} capability
 * @property {boolean} causal
 * @property {number | null} B_r
 * @property {number | null} B_c
 * @property {number | null} num_warps
 * @property {number | null} num_stages
 * @property {boolean | null} descriptors
 */

/** @typedef {SharedTraits & Setting & { offered: Offered, result: Result, work: Work }} Traits */

export {};
