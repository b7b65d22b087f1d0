// What a learner typed, as a value: a number, a list, a set; undefined if it is not of the kind that is asked for.

/** @import { Field } from "./types.js" */

/**
 * "-0.5", "1e-3", "1/1024", "65 504", "−∞", "inf" or "nan" as a number.
 * @param {string} text
 */
function readNumber(text) {
  const plain = text.toLowerCase().replace(/[−–]/g, "-").replace("∞", "inf").replace(/[_\s]/g, "");
  if (plain === "nan") return NaN;
  const named = /^([+-]?)inf(inity)?$/.exec(plain);
  if (named) return named[1] === "-" ? -Infinity : Infinity;
  const parts = plain.split("/");
  const numbers = parts.filter((part) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(part)).map(Number);
  if (parts.length > 2 || numbers.length < parts.length) return undefined;
  return numbers.length === 1 ? numbers[0] : numbers[0] / numbers[1];
}

/**
 * "5, 7" or "(5, 7)" as numbers.
 * @param {string} text
 * @param {Field} field
 */
function readTuple(text, { length }) {
  const items = text.trim().replace(/^[([](.*)[)\]]$/, "$1").replace(/,\s*$/, "").split(",").map(readNumber);
  return items.length === length && !items.includes(undefined) ? items : undefined;
}

/**
 * "-800, 800" or "(1, 0), (2, 0)", in braces or not, as a set: its items as texts, sorted.
 * @param {string} text
 */
function readSet(text) {
  const plain = text.trim().replace(/^\{(.*)\}$/, "$1");
  const items = plain.includes("(") ? (plain.match(/\([^()]*\)/g) ?? []) : plain.split(",").filter((item) => item.trim());
  const rest = plain.includes("(") ? plain.replace(/\([^()]*\)/g, "").replace(/[,\s]/g, "") : "";
  const numbers = items.map((item) => item.replace(/[()]/g, "").split(",").map(readNumber));
  if (rest || numbers.flat().includes(undefined)) return undefined;
  return [...new Set(numbers.map(String))].sort();
}

/** @type {Record<Field["kind"], (text: string, field: Field) => any>} */
export const READ = {
  number: readNumber,
  bool: (text) => ({ true: true, false: false })[text.toLowerCase()],
  choice: (text, { choices }) => (choices.includes(text) ? text : undefined),
  tuple: readTuple,
  set: readSet,
};

/**
 * What is asked for, where something else was typed.
 * @type {Record<Field["kind"], (field: Field) => string>}
 */
export const EXPECTED = {
  number: () => "is not a number",
  bool: () => "is neither True nor False",
  choice: ({ choices }) => `is none of ${choices.join(", ")}`,
  tuple: ({ length }) => `is not ${length} numbers with commas between them`,
  set: () => "is not a set, such as 1, 2",
};
