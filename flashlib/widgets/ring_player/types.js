// What Python sends to RingPlayer's page, in the dicts that its Python code builds. Types only, in no script.

/**
 * @typedef {object} Setting
 * @property {number} ranks
 * @property {number} N
 * @property {string} cut the layout
 * @property {string} mask
 * @property {string} way
 * @property {number} tile
 * @property {number} token
 */

/** @typedef {[source: number, hop: number, start: number, stop: number, tiles: number]} Compute */
/** @typedef {[from: number, to: number, whose: number, start: number, stop: number, bytes: number]} Copy */

/**
 * @typedef {object} Sums
 * @property {number} total when the last rank ended
 * @property {number} idle a share
 * @property {number} sent bytes
 * @property {number} most_sent bytes, by one rank
 * @property {number} copies
 * @property {number | null} hidden the share of the time of copies
 */

/**
 * The same with a different layout.
 * @typedef {object} Compared
 * @property {string} layout
 * @property {string} about
 * @property {number} end
 * @property {Sums} sums
 * @property {[hop: number, start: number, stop: number][][]} computes
 * @property {string} fault
 */

/**
 * What went wrong; rank: -1 for all ranks.
 * @typedef {object} Fault
 * @property {string} kind
 * @property {string[]} said
 * @property {number} rank
 * @property {[number, number][]} waits who waits for whom
 */

/**
 * What ranks did; a list for each rank.
 * @typedef {object} Result
 * @property {Setting} setting
 * @property {Record<"ranks" | "N" | "tile" | "token", number[]>} stops
 * @property {string[]} ways
 * @property {number} D columns of O
 * @property {number[][]} tokens
 * @property {[first: number, end: number][][]} seen the keys that each row sees
 * @property {Compute[][]} computes
 * @property {Copy[]} copies
 * @property {[whose: number, start: number, stop: number][][]} held
 * @property {[rank: number, other: number, kind: string, at: number][]} asked
 * @property {[start: number, stop: number, hop: number][][]} idle
 * @property {number} end
 * @property {number[]} times that are played
 * @property {number} opens
 * @property {[number, string][]} moments when something happens, and what
 * @property {string[]} goes_on what goes on from each moment until the next
 * @property {Sums} sums
 * @property {Fault | null} fault
 * @property {number | null} difference from one process, if it is a number
 * @property {boolean} wrong
 * @property {string[]} words
 * @property {Compared[]} compare
 * @property {DataView} buffer
 */

/** @typedef {SharedTraits & Setting & { result: Result }} Traits */

/**
 * Where everything is at a time. done: for each rank, how often it has computed; now: for each, which of its computes is
 * under way, or -1; flights: copies under way and their progress; held: whose blocks each rank has.
 * @typedef {object} Standing
 * @property {number[]} done
 * @property {number[]} now
 * @property {{ copy: number, way: number }[]} flights
 * @property {number[][]} held
 */

/**
 * The State of a row after its rank has computed, as the page unpacks it from the buffer.
 * @typedef {object} State
 * @property {number} m
 * @property {number} l
 * @property {Float64Array} O_acc
 */

export {};
