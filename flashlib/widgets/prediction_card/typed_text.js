// Reads entered text as a value, or says how to write it.

/** @import { Answer, Field, Value } from "./types.js" */
import { isEqual, labelled, short } from "./grade.js";

const NUMBER = /^[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?$/i;
const THOUSANDS = /^[+-]?[1-9]\d{0,2}([.,'’_\s]\d{3})+$/;

/** A text that is not understood, and how to write it. */
class Unclear extends Error {}

/**
 * The values of the entered texts, {part: text}, and sentences on those that are not understood.
 * @param {Field[]} fields
 * @param {Record<string, string>} texts
 */
export function readAll(fields, texts) {
  /** @type {Record<string, Answer>} */
  const answers = {};
  /** @type {{ part: string, sentence: string }[]} */
  const slips = [];
  for (const field of fields.filter(({ part }) => texts[part])) {
    const { part } = field;
    try {
      answers[part] = { text: texts[part], value: READ[field.kind](texts[part], field) };
    } catch (error) {
      if (!(error instanceof Unclear)) throw error;
      slips.push({ part, sentence: labelled(fields, field, error.message) });
    }
  }
  return { answers, slips };
}

/**
 * The items of a list; a comma in brackets, or without a space, does not separate items.
 * @param {string} text
 */
export const itemsOf = (text) => text.split(/, (?![^(]*\))/);

/**
 * A number with a point or a comma before its decimals. If that may be a thousands separator, the learner is asked: always
 * for a comma, and for a point, which the course writes before decimals, only if the thousands are right.
 * @param {string} typed
 * @param {Value} right
 * @param {Field} field
 */
function numberOf(typed, right, { tolerance, unit }) {
  const text = typed.trim().replace(/[−–]/g, "-");
  const said = short(typed);
  const value = Number(text.replace(",", "."));
  const digits = text.replace(/[^\d-]/g, "");
  const isGrouped = THOUSANDS.test(text);
  if (!NUMBER.test(text)) {
    if (isGrouped) throw new Unclear(`“${said}” has signs between its digits: write ${digits}.`);
    if (unit) throw new Unclear(`“${said}” is not a number: write the number alone, in ${unit}.`);
    throw new Unclear(`“${said}” is not a number: write one such as 12, 0.5 or 1e-3.`);
  }
  if (isGrouped && text.includes(",")) throw new Unclear(`“${said}” may be ${digits} or ${value}: write one of these.`);
  if (isGrouped && !isEqual(value, right, tolerance) && isEqual(Number(digits), right, tolerance))
    throw new Unclear(`“${said}” has a decimal point: write ${digits} if you mean that.`);
  if (!Number.isFinite(value)) throw new Unclear(`“${said}” is too large to be read: write one such as 12, 0.5 or 1e-3.`);
  return value;
}

/**
 * @param {string} text
 * @param {Field} field
 */
function numbersOf(text, field) {
  const texts = itemsOf(text);
  const right = /** @type {Value[]} */ (field.right);
  if (texts.length !== field.length || texts.includes("")) throw new Unclear(`write all ${field.length} numbers.`);
  return texts.map((one, k) => numberOf(one, right[k], field));
}

/**
 * @param {string} text
 * @param {string[]} choices
 */
function chosen(text, choices) {
  if (!choices.includes(text)) throw new Unclear(`“${short(text)}” is none of ${choices.join(", ")}: choose one of them.`);
  return text;
}

/** @type {Record<Field["kind"], (text: string, field: Field) => Value>} */
const READ = {
  number: (text, field) => numberOf(text, field.right, field),
  tuple: numbersOf,
  bool: (text) => chosen(text, ["True", "False"]) === "True",
  choice: (text, { choices }) => chosen(text, choices),
  set: (text, { choices }) => {
    const items = itemsOf(text).map((item) => chosen(item, choices));
    return choices.filter((choice) => items.includes(choice));
  },
};
