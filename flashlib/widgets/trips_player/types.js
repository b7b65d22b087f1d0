// What Python sends of TripsPlayer: see the dicts that its Python builds. Types only: no script has this file.

/** @typedef {[name: string, first: number, stop: number, bytes: number]} Move */

/**
 * What is loaded, or stored, before anything else is computed.
 * @typedef {object} SentTrip
 * @property {boolean} loads
 * @property {Move[]} moves
 * @property {number[] | null} computed offsets of S_ij, P_ij and O_acc
 */

/** @typedef {{ arrays: Record<string, number>, trips: SentTrip[] }} SentRun */

/**
 * @typedef {object} Sent
 * @property {{ N: number, d: number }} setting
 * @property {Record<string, number[]>} ranges
 * @property {number} capacity bytes of the chip
 * @property {number[]} tile rows of a block, and the bytes that a tile needs
 * @property {SentRun} standard
 * @property {SentRun} flash
 * @property {DataView} buffer
 */

/** @typedef {SharedTraits & { N: number, d: number, frames: Sent }} Traits */

/**
 * Rows that are drawn somewhere: an offset in the numbers, and the array whose largest number has the strongest colour.
 * @typedef {{ offset: number, rows: number, cols: number, array: string }} Block
 */

/**
 * Rows of an array in HBM that go to or come from a place on the chip.
 * @typedef {object} Flight
 * @property {string} name
 * @property {string} place
 * @property {number} first
 * @property {number} stop
 * @property {number} bytes
 * @property {Block} block
 */

/**
 * A trip on the clock of bytes. The chip holds `before` while it is on its way, `after` once it is there.
 * @typedef {object} Trip
 * @property {boolean} loads
 * @property {Flight[]} flights
 * @property {number} bytes
 * @property {number} start
 * @property {number} end
 * @property {Map<string, Block>} before
 * @property {Map<string, Block>} after
 */

/**
 * What a side does at a position: its trip, how far it was and is on its way, from 0 to 1.
 * @typedef {{ k: number, trip: Trip, from: number, to: number }} UnderWay
 */

export {};
