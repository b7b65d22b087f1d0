// Whether an answer is right, and what there is to say of it: as flashlib/checks/engine/prediction.py does for a call.

/** @import { Field } from "./types.js" */
import { EXPECTED, READ } from "./read.js";

/**
 * @param {any} a
 * @param {any} b
 * @param {number} tolerance
 */
function isEqual(a, b, tolerance) {
  if (Array.isArray(a)) return a.length === b.length && a.every((x, k) => isEqual(x, b[k], tolerance));
  if (typeof a !== "number" || typeof b !== "number") return a === b;
  if (Number.isNaN(b)) return Number.isNaN(a);
  return Number.isFinite(b) ? Math.abs(a - b) <= tolerance * Math.abs(b) : a === b;
}

/**
 * A ratio to three digits: 1020, 0.001, 1e9.
 * @param {number} ratio
 */
function times(ratio) {
  const x = Number(ratio.toPrecision(3));
  return x < 1e6 && x >= 1e-4 ? String(x) : x.toExponential().replace("e+", "e");
}

/**
 * What to say of a number that is nearly right, or right in another unit.
 * @param {any} given
 * @param {any} right
 */
function nearly(given, right) {
  if (![given, right].every((x) => Number.isFinite(x) && x !== 0)) return "";
  const ratio = given / right;
  const off = Math.abs(ratio - 1);
  if (off <= 0.1) return ` (near: ${(100 * off).toFixed(1)}% too ${Math.abs(ratio) > 1 ? "much" : "little"})`;
  for (const unit of [1000, 1024]) {
    const power = Math.round(Math.log(Math.abs(ratio)) / Math.log(unit));
    if (ratio > 0 && power && Math.abs(ratio / unit ** power - 1) <= 0.1)
      return ` (right but for the unit: that is ${times(ratio)} times as much)`;
  }
  return "";
}

/**
 * What is wrong with the text of one part, or "".
 * @param {Field} field
 * @param {string} text
 */
function gradePart(field, text) {
  const { kind, right, shown, wrong, tolerance } = field;
  const read = (typed) => READ[kind](typed, field);
  const given = read(text);
  if (isEqual(given, read(right), tolerance)) return "";
  const known = wrong.find(([value]) => isEqual(given, read(value), tolerance));
  const why = known ? ` (${known[1]})` : kind === "number" && tolerance ? nearly(given, read(right)) : "";
  return `not ${text}, but ${shown}${why}`;
}

/**
 * The verdict on what is given, {part: text}: its outcome, a sentence, and the reason once all was answered.
 * @param {{ fields: Field[], reason: string }} card
 * @param {Record<string, string>} given
 */
export function grade({ fields, reason }, given) {
  const labelled = (field, problem) => (fields.length > 1 ? `${field.label}: ${problem}` : problem);
  const answered = fields.filter(({ part }) => given[part]);
  if (!answered.length) return { outcome: "open", sentence: "" };
  const slips = answered.filter((field) => READ[field.kind](given[field.part], field) === undefined);
  const slip = (field) => labelled(field, `“${given[field.part]}” ${EXPECTED[field.kind](field)}`);
  if (slips.length) return { outcome: "open", sentence: `${slips.map(slip).join("; ")}.` };
  const problems = answered.map((field) => [field, gradePart(field, given[field.part])]).filter(([, problem]) => problem);
  const problem = problems.map((pair) => labelled(...pair)).join("; ");
  const left = fields.filter(({ part }) => !given[part]).map(({ label }) => label);
  if (left.length) return { outcome: "open", sentence: `${problem || "Right so far"}; left: ${left.join(", ")}.` };
  return problem ? { outcome: "wrong", sentence: `${problem}.`, reason } : { outcome: "right", sentence: reason };
}
