// What Python sends to OnlineSoftmaxLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * What Python computed of a row: the words of each step, and all numbers in one buffer.
 * @typedef {object} Sent
 * @property {number} N
 * @property {{ typed: string }} setting
 * @property {string} typed
 * @property {string} text
 * @property {string[]} rows the names of the rows of the buffer
 * @property {number} weight the sum of the weights
 * @property {number} weight_wrong the same without the rescaling of l
 * @property {DataView} buffer
 */

/**
 * @typedef {SharedTraits & { frames: Sent, rescale: boolean, typed: string, examples: Record<string, string> }} Traits
 */

/**
 * The scan as the page unpacks it: the rows of the buffer by name, one number per score, and `terms`, N per score.
 * @typedef {{ N: number, terms: Float64Array } & Record<RowName, Float64Array>} Scan
 */

/**
 * @typedef {"x" | "m_old" | "m" | "alpha" | "l_old" | "kept" | "p" | "l" | "l_wrong" | "error" | "error_wrong"
 *   | "weight" | "weight_wrong"} RowName
 */

/** @typedef {"rescale" | "add" | "end"} Phase */

export {};
