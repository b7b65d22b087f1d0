// What Python sends of ProgramsLab: see the dicts that its Python builds. Types only: no script has this file.

/**
 * @typedef {object} Setting
 * @property {string} kernel
 * @property {number} N
 * @property {number} BLOCK
 * @property {number} stride_r
 * @property {number} stride_c
 * @property {boolean} mask
 * @property {boolean} transposed
 */

/**
 * The programs of a grid: how many there are along each axis, the first of those that are shown, and how many are.
 * @typedef {object} Grid
 * @property {number[]} whole
 * @property {number[]} first
 * @property {number[]} shown
 * @property {string} words
 * @property {string} choosing how many programs there are to choose from
 */

/**
 * @typedef {object} Program
 * @property {number[]} number along each axis
 * @property {string} name "program 2"
 * @property {boolean} bad whether it loads or stores what is not its own
 * @property {string} words
 */

/**
 * What a pointer points at, in elements. rows, columns: of the matrix that its last two axes are.
 * @typedef {object} Tensor
 * @property {string} name
 * @property {number[]} shape
 * @property {number} rows
 * @property {number} columns
 * @property {number[]} strides
 * @property {[number, number]} span the lowest offset of an element, and the one after the highest
 * @property {[number, number][]} holds the runs of offsets in it that are elements
 * @property {[number, number]} reach the same with what is touched beside it
 * @property {[number, number, number, number]} around rows and columns, with those that are touched beside them
 * @property {string} stored how often the programs store each element
 */

/**
 * A load or a store.
 * @typedef {object} Access
 * @property {number} program
 * @property {number} line
 * @property {number} turn
 * @property {string} kind
 * @property {number} tensor
 * @property {number} base the offset of the first element of the matrix that is drawn
 * @property {number} start of its places in the buffer
 * @property {number[]} shape
 * @property {string} fault
 */

/**
 * What Python found of the programs of a kernel.
 * @typedef {object} Result
 * @property {Setting | {}} setting
 * @property {[string, string, string][]} kernels that can be chosen: name, label, title
 * @property {string[]} used the settings that this kernel has
 * @property {Partial<Record<string, number[]>>} stops
 * @property {{ key: number, number: number, text: string, kind: string }[]} lines
 * @property {string} launch
 * @property {Grid} grid
 * @property {Program[]} programs
 * @property {number} opens the program that is shown first
 * @property {Tensor[]} tensors
 * @property {Access[]} accesses
 * @property {[number, number, number, string][]} values program, line, turn, and what the line gave
 * @property {string[]} said of what ran, and what did not
 * @property {DataView} buffer
 */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

export {};
