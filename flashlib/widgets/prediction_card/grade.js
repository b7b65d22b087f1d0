// Whether a guess is right, and what there is to say of it: as flashlib/checks/engine/grade.py does for a call.

/** @import { Asked, Field } from "./types.js" */
import { Unclear, read } from "./read.js";

const EXACT = 1e-9; // relative: a unit that was converted
const NEAR = 0.1;
const FACTORS = [8, 100, ...[1000, 1024].flatMap((base) => [1, 2, 3, 4].map((k) => base ** k))]; // between units

/**
 * @param {any} given
 * @param {any} right
 * @param {number} tolerance
 */
function isEqual(given, right, tolerance) {
  const isSame = (x, k) => isEqual(x, right[k], tolerance);
  if (Array.isArray(right)) return given.length === right.length && given.every(isSame);
  if (typeof right !== "number") return given === right;
  if (Number.isNaN(right)) return Number.isNaN(given);
  if (!Number.isFinite(right)) return given === right;
  return Math.abs(given - right) <= Math.max(tolerance, EXACT) * Math.abs(right);
}

/**
 * A text, cut if it is long.
 * @param {string} text
 */
const short = (text) => ([...text].length <= 40 ? text : `${[...text].slice(0, 39).join("")}…`);

/**
 * What to say of a number that is near the right one, or right in another unit, or "".
 * @param {number} given
 * @param {number} right
 * @param {Field} field
 */
function nearly(given, right, { tolerance, unit }) {
  if (![given, right].every((x) => Number.isFinite(x) && x !== 0)) return "";
  if (tolerance && Math.abs(given / right - 1) <= NEAR)
    return `near: less than 10 % too ${given > right ? "large" : "small"}`;
  const factors = unit ? [...FACTORS, ...FACTORS.map((factor) => 1 / factor)] : [];
  if (factors.some((factor) => isEqual(given, right * factor, tolerance)))
    return `right but for the unit: the answer is in ${unit}`;
  return "";
}

/**
 * Whether a sentence holds the right answer.
 * @param {Field} field
 * @param {string} sentence
 */
function tells({ shown }, sentence) {
  const escaped = shown.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\w.^-])${escaped}(?![\\w^]|\\.\\d)`).test(sentence);
}

/**
 * What is wrong with the value of one part, or "".
 * @param {Field} field
 * @param {string} text
 * @param {any} value
 * @param {boolean} shows
 */
function problemOf(field, text, value, shows) {
  const { kind, shown, wrong, tolerance } = field;
  const right = read(field.right, field).value;
  if (isEqual(value, right, tolerance)) return "";
  const known = wrong.find(([typed]) => isEqual(value, read(typed, field).value, tolerance));
  let why = known ? known[1] : kind === "number" ? nearly(value, right, field) : "";
  if (!shows && tells(field, why)) why = "";
  return `not ${text}${shows ? `, but ${shown}` : ""}${why && ` (${why})`}`;
}

/**
 * @param {string} text
 * @param {Field} field
 * @returns {{ value?: any, said?: string, slip?: string }}
 */
function tryRead(text, field) {
  try {
    return read(text, field);
  } catch (error) {
    if (error instanceof Unclear) return { slip: `“${short(text)}” ${error.message}` };
    throw error;
  }
}

/**
 * The verdict on what is typed, {part: text}: its outcome, what there is to say, and the parts to look at again.
 * @param {Omit<Asked, "name" | "asks">} card
 * @param {Record<string, string>} given
 * @param {boolean} [shows] whether the right answer is shown too
 * @returns {{ outcome: "right" | "wrong" | "open", sentence: string, read?: string, hint?: string,
 *   reason?: string, slips?: string[] }}
 */
export function grade({ fields, reason, hint }, given, shows = false) {
  const labelled = (field, problem) => (fields.length > 1 ? `${field.label}: ${problem}` : problem);
  const typed = (field) => (given[field.part] ?? "").trim();
  const answered = fields.filter(typed);
  if (!answered.length) return { outcome: "open", sentence: "" };
  const found = answered.map((field) => ({ field, text: typed(field), ...tryRead(typed(field), field) }));
  const slips = found.filter(({ slip }) => slip);
  if (slips.length) {
    const sentence = `${slips.map(({ field, slip }) => labelled(field, slip)).join("; ")}.`;
    return { outcome: "open", sentence, slips: slips.map(({ field }) => field.part) };
  }
  const wrong = found
    .map(({ field, text, value }) => ({ field, problem: problemOf(field, short(text), value, shows) }))
    .filter(({ problem }) => problem);
  const problem = wrong.map((one) => labelled(one.field, one.problem)).join("; ");
  const said = found.filter((one) => one.said).map(({ text, said }) => `“${short(text)}” is read as ${said}`);
  const left = fields.filter((field) => !typed(field));
  const read = said.length ? { read: `${said.join("; ")}.` } : {};
  const more = problem ? (shows && !left.length ? { reason } : { hint }) : {};
  if (left.length) {
    const sentence = `${problem || "right so far"}; left: ${left.map(({ label }) => label).join(", ")}.`;
    return { outcome: "open", sentence, slips: left.map(({ part }) => part), ...read, ...more };
  }
  const sentence = problem ? `${problem}.` : reason;
  const outcome = problem ? "wrong" : "right";
  return { outcome, sentence, ...read, ...more, slips: wrong.map(({ field }) => field.part) };
}
