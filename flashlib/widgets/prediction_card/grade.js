// Whether an answer is right, and the sentence on it: the counterpart of flashlib/checks/engine/grade.py for a call.

/** @import { Answer, Asked, Field, Value } from "./types.js" */
import { say } from "../shared/language.js";

const EXACT = 1e-9; // relative: rounding in the last digits
const NEAR = 0.1;
const FACTORS = [8, 100, ...[1000, 1024].flatMap((base) => [1, 2, 3, 4].map((k) => base ** k))]; // between units

/**
 * @param {any} given
 * @param {any} right
 * @param {number} tolerance
 */
export function isEqual(given, right, tolerance) {
  const isSame = (x, k) => isEqual(x, right[k], tolerance);
  if (Array.isArray(right)) return given.length === right.length && given.every(isSame);
  if (typeof right !== "number") return given === right;
  return Math.abs(given - right) <= Math.max(tolerance, EXACT) * Math.abs(right);
}

/**
 * A text, truncated if it is long.
 * @param {string} text
 */
export const short = (text) => ([...text].length <= 40 ? text : `${[...text].slice(0, 39).join("")}…`);

/**
 * A sentence on a field, with its label if there are several.
 * @param {Field[]} fields
 * @param {Field} field
 * @param {string} sentence
 */
export const labelled = (fields, field, sentence) => (fields.length > 1 ? `${field.label}: ${sentence}` : sentence);

/**
 * A note on a number that is near the right one, or right in a different unit, or "".
 * @param {number} given
 * @param {number} right
 * @param {Field} field
 */
function nearly(given, right, { tolerance, unit }) {
  if (given === 0 || right === 0) return "";
  if (tolerance && Math.abs(given / right - 1) <= NEAR)
    return given > right ? "near: less than 10 % too large" : "near: less than 10 % too small";
  const factors = unit ? [...FACTORS, ...FACTORS.map((factor) => 1 / factor)] : [];
  if (factors.some((factor) => isEqual(given, right * factor, tolerance)))
    return `right but for the unit: the answer is in ${unit}`;
  return "";
}

/**
 * Whether a sentence contains the right answer.
 * @param {Field} field
 * @param {string} sentence
 */
function givesAway({ shown }, sentence) {
  const escaped = shown.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\w.^-])${escaped}(?![\\w^]|\\.\\d)`).test(sentence);
}

/**
 * An answer as it appears in a sentence: a choice, which may be words, in quotation marks.
 * @param {Field} field
 * @param {string} text
 */
const quoted = ({ kind }, text) => (kind === "choice" ? `“${say(text)}”` : text);

/**
 * A sentence on the answer to one part if it is wrong, else "".
 * @param {Field} field
 * @param {Answer} answer
 * @param {boolean} shows
 */
function problemOf(field, { text, value }, shows) {
  const { right, wrong, tolerance } = field;
  if (isEqual(value, right, tolerance)) return "";
  const known = wrong.find(([one]) => isEqual(value, one, tolerance));
  let why = known ? known[1] : typeof value === "number" && typeof right === "number" ? nearly(value, right, field) : "";
  if (!shows && givesAway(field, why)) why = "";
  const [said, shown] = [quoted(field, short(text)), quoted(field, field.shown)];
  if (shows) return why ? `not ${said}, but ${shown} (${why}).` : `not ${said}, but ${shown}.`;
  return why ? `not ${said} (${why}).` : `not ${said}.`;
}

/**
 * The verdict on answers, {part: answer}: its outcome, its sentences, and the parts to look at again.
 * @param {Omit<Asked, "name" | "asks">} card
 * @param {Record<string, Answer>} answers
 * @param {boolean} [shows] whether the right answer is shown too
 * @returns {{ outcome: "right" | "wrong" | "open", sentence: string, hint?: string, reason?: string, again?: string[] }}
 */
export function grade({ fields, reason, hint }, answers, shows = false) {
  const answered = fields.filter(({ part }) => part in answers);
  if (!answered.length) return { outcome: "open", sentence: "" };
  const wrong = answered
    .map((field) => ({ field, problem: problemOf(field, answers[field.part], shows) }))
    .filter(({ problem }) => problem);
  const problem = wrong.map((one) => labelled(fields, one.field, one.problem)).join(" ");
  const left = fields.filter((field) => !answered.includes(field));
  const more = problem ? (shows && !left.length ? { reason } : { hint }) : {};
  if (left.length) {
    const labels = left.map(({ label }) => label).join(", ");
    const sentence = problem ? [problem, `Left: ${labels}.`].join(" ") : `right so far; left: ${labels}.`;
    return { outcome: "open", sentence, again: left.map(({ part }) => part), ...more };
  }
  return { outcome: problem ? "wrong" : "right", sentence: problem || reason, again: wrong.map(({ field }) => field.part), ...more };
}
