// What Python sends to EightBitsLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * @typedef {object} Setting
 * @property {number} N
 * @property {number} outliers
 * @property {number} sharpness
 * @property {string} mean
 * @property {string} qk
 * @property {string} pv
 * @property {string} o
 * @property {string} scales
 * @property {boolean} power_of_two
 * @property {number} p_times
 * @property {boolean} l_rounded
 * @property {boolean} rotate
 * @property {boolean} k_minus_mean
 * @property {boolean} v_minus_mean
 * @property {string} sums
 */

/**
 * What one cause alone does to O.
 * @typedef {object} Cause
 * @property {string} name
 * @property {number} error rms, over the rms of O
 * @property {number} part of the sum of squares of all
 * @property {string} how
 */

/**
 * What rounding does to the numbers of a tensor.
 * @typedef {object} Rounding
 * @property {string} name
 * @property {string} format
 * @property {number} below the share of numbers below the axis
 * @property {number[]} bars the share of numbers in each part of an octave
 * @property {number} largest
 * @property {number} zeros the share of numbers that become 0
 * @property {number} error rms, over the rms of the numbers
 * @property {string} words
 */

/**
 * What Python computed.
 * @typedef {object} Result
 * @property {Setting} setting
 * @property {number} rows queries
 * @property {number} cols columns of O
 * @property {number} shown keys
 * @property {number} points of a running sum
 * @property {number} step terms that are added at once
 * @property {{ row: number, key: number, column: number }} opens where the error is largest
 * @property {Record<"N" | "outliers" | "sharpness", number[]>} stops
 * @property {Record<string, Partial<Setting>>} presets
 * @property {number} total the error of O
 * @property {Cause[]} causes
 * @property {Rounding[]} rounding
 * @property {Record<"qk" | "pv", number[]>} grids the positive numbers of the formats; none if there are too many
 * @property {number} octaves
 * @property {{ before: number, now: number, scales: number }} bytes
 * @property {[string, number][]} record measured: words, TFLOP/s
 * @property {string} way the words for the current choices
 * @property {string[]} words
 * @property {string} read
 * @property {DataView} buffer
 */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

/**
 * The numbers of a result as the page unpacks them from the buffer: for the scores that are shown, (rows, shown); for O,
 * (rows, cols); for the running sums, (points, rows, cols).
 * @typedef {object} Numbers
 * @property {Float64Array} S exactly
 * @property {Float64Array} S_now
 * @property {Float64Array} P times p_times, before it is rounded
 * @property {Float64Array} P_q
 * @property {Float64Array} weights exactly
 * @property {Float64Array} weights_now
 * @property {Float64Array} O exactly
 * @property {Float64Array} O_now
 * @property {Float64Array} unit
 * @property {Float64Array} lost
 * @property {Float64Array} keys
 * @property {Float64Array} running
 * @property {Float64Array} unrounded
 */

/** @typedef {{ row: number, key: number, column: number }} Place */

export {};
