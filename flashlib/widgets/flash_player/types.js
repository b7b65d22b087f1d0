// What Python sends to the players of a tiling, and how the page unpacks it. Types only, in no script.

/**
 * Sizes and setting of everything that is tiled.
 * @typedef {object} Tiling
 * @property {number} N_q
 * @property {number} N_k
 * @property {number} d
 * @property {number} T_r
 * @property {number} T_c
 * @property {number} B_r
 * @property {number} B_c
 * @property {boolean} causal
 * @property {string} dtype
 * @property {number} scale
 * @property {number[][]} masked of each row, the columns at which masked scores begin and end
 * @property {boolean} changed whether the mask changes scores
 */

/**
 * Steps of any pass, with all numbers in one buffer; offsets count numbers.
 * @typedef {object} Recorded
 * @property {string[]} packed the names of the arrays of a step
 * @property {number[][]} steps i, j, rows, columns, bytes read and written, and the offset of each array
 * @property {number} start bytes written before the first step
 * @property {number[]} all bytes read and written at the end
 * @property {Write[]} writes
 * @property {DataView} buffer
 * @property {number[]} standard bytes that standard attention reads and writes
 */

/** @typedef {[after: number, start: number, stop: number, offset: number, name?: string]} Write */

/**
 * Offsets.
 * @typedef {object} Inputs
 * @property {number} Q
 * @property {number} K
 * @property {number} V
 * @property {number} lse
 */

/** @typedef {Tiling & Recorded & { inputs: Inputs, order: "fa1" | "fa2", sram: number[] }} Forward */

/**
 * The setting that is shown, and what can be changed.
 * @typedef {object} Shown
 * @property {Record<string, number | string | boolean>} setting
 * @property {string[]} controls
 * @property {Record<string, number[]>} ranges
 */

/**
 * The verdict on a learner's own steps.
 * @typedef {object} Learner
 * @property {string} name of the learner's function
 * @property {number[]} errors
 * @property {number} tolerance
 * @property {[step: number, name: "m" | "l" | "O_acc", row: number] | null} first
 * @property {[number, number] | null} O its largest error, the first row that is wrong
 * @property {[number, number][]} missed
 * @property {string} remark
 * @property {boolean} kernel whether a kernel took them, which also stored an O of its own
 * @property {[number, number] | null} lse of a kernel, as O
 * @property {string} note of a kernel: what is wrong beside the numbers
 */

/**
 * @typedef {object} Opened
 * @property {Record<string, string[]>} lines of the source, by part of a step
 * @property {number | null} opens_at
 * @property {Learner | null} learner
 * @property {string[] | null} words of the rows of K, the last of them also of those of Q
 */

/** @typedef {Forward & Shown & Opened} Sent */

/** @typedef {Shown & { fa1: Forward, fa2: Forward }} SentBoth */

/**
 * @typedef {object} Setting
 * @property {number} B_r
 * @property {number} B_c
 * @property {boolean} causal
 * @property {number} N
 * @property {number} d
 * @property {number} seed
 */

/** @typedef {SharedTraits & Setting & { frames: Sent, order: string, panels: string }} Traits */

/** @typedef {SharedTraits & Setting & { frames: SentBoth }} CompareTraits */

/**
 * A step as the page unpacks it, with the offset of each of its arrays by name.
 * @typedef {object} Step
 * @property {number} i
 * @property {number} j
 * @property {number[]} rows the first and the last + 1
 * @property {number[]} cols
 * @property {number} n_r
 * @property {number} n_c
 * @property {number} read bytes read by then
 * @property {number} written
 * @property {boolean | undefined} stores
 */

/**
 * @typedef {object} ForwardArrays
 * @property {number} S_ij
 * @property {number} P_ij
 * @property {number} m_old
 * @property {number} m
 * @property {number} alpha
 * @property {number} l_old
 * @property {number} l_rescaled
 * @property {number} l
 * @property {number} O_acc_old
 * @property {number} O_acc_rescaled
 * @property {number} O_acc
 * @property {number} O_acc_true of a learner's step
 * @property {number[]} grown the rows whose maximum grew
 */

/** @typedef {Step & ForwardArrays} ForwardStep */

/**
 * What a frame shows.
 * @template {Step} [S=Step]
 * @typedef {object} At
 * @property {number} frame
 * @property {number} k the index of the step, T at the end
 * @property {S | undefined} step
 * @property {string} part
 * @property {boolean} storing
 * @property {(part: string) => boolean} reached
 */

/** @typedef {{ read: number, written: number }} Moved */

export {};
