// What Python sends to TilingLab's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * Bytes as text, in the unit of the order that is shown.
 * @typedef {object} Text
 * @property {string} read
 * @property {string} written
 * @property {string} total
 * @property {string} unit
 */

/**
 * Bytes moved by an algorithm.
 * @typedef {object} Moved
 * @property {number} read
 * @property {number} written
 * @property {number} total
 * @property {number} ratio to what standard attention moves
 * @property {Text} text
 */

/**
 * What a program holds in SRAM.
 * @typedef {object} Sram
 * @property {Record<string, number>} pieces bytes of each tile
 * @property {number} held
 * @property {number} room
 * @property {boolean} fits
 * @property {{ held: string, excess: string }} text in KB
 * @property {string} gpus
 */

/**
 * Bytes moved for every pair of block sizes, rows by B_r and columns by B_c.
 * @typedef {object} TileMap
 * @property {number[]} blocks
 * @property {number[][]} ratios
 * @property {boolean[][]} fits
 * @property {{ B_r: number, B_c: number, total: number } | null} best
 * @property {string} words
 */

/**
 * The grid of tiles: for each row block, how many tiles are whole, and how many have anything to compute.
 * @typedef {object} Tiles
 * @property {number} T_r
 * @property {number} T_c
 * @property {number} tiles
 * @property {number} computed
 * @property {number} tall
 * @property {number} wide
 * @property {number[]} whole
 * @property {number[]} some
 * @property {number[]} rows
 * @property {number[]} cols
 */

/**
 * @typedef {object} Setting
 * @property {number} N
 * @property {number} d
 * @property {number} B_r
 * @property {number} B_c
 * @property {number} capacity
 * @property {string} dtype
 * @property {boolean} causal
 * @property {string} order
 */

/**
 * @typedef {object} Computed
 * @property {Setting} setting
 * @property {Record<"N" | "d" | "B_r" | "B_c" | "capacity", number[]>} stops the values of each slider
 * @property {string} panels "less" for the tiles alone, or "all"
 * @property {Tiles} grid
 * @property {Record<"standard" | "FA1" | "FA2", Moved>} traffic
 * @property {number} flops
 * @property {Sram} sram
 * @property {TileMap} map
 * @property {string[]} words
 */

/** @typedef {Setting & Computed} Result */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

export {};
