// What a learner typed, as a value, or how to write it: as flashlib/checks/engine/guess.py, which has the rules.

/** @import { Field } from "./types.js" */

const LONGEST = 200; // characters
/** @type {Record<string, boolean>} */
const BOOLS = Object.fromEntries([
  ...["true", "t", "yes", "y", "ja"].map((word) => [word, true]),
  ...["false", "f", "no", "n", "nein"].map((word) => [word, false]),
]);
const HIGH = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻";
const ABOUT = /^(?:(?:about|approximately|approx\.?|roughly|around|circa|ca\.?)(?![a-z])|[~≈≃=]) */i;
const NAMED = /^([+-]?) ?(?:math\.|np\.|numpy\.)?(?:(inf|infinity|∞)|nan)$/i;
const CODED = /^[+-]?0[xbo][0-9a-f_]+$/i;
const NUMBER = "[+-]? ?[0-9.,](?:[0-9.,_' ]*[0-9.,])?(?:e[+-]?[0-9]+)?";
const PRODUCT = new RegExp(`^(${NUMBER}(?: ?(?:\\*\\*|[*^/x]) ?${NUMBER})*) ?(.*)$`, "i");
// It needs no word on how it was read; 1.000 does, which some write for a thousand.
const PLAIN = /^((?!-?[1-9][0-9]{0,2}\.[0-9]{2}0$)-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?|-?inf|nan)$/;
const EITHER = /(?<![0-9.,])[1-9][0-9]{0,2},[0-9]{3}(?![0-9.,]| [0-9])/; // thousands, or a decimal comma
const HOW = "write one such as 0.5, 1e-3, 2^10 or 1/1024";
const LONG = `is longer than ${LONGEST} characters: write the answer alone`;
const NONE = `is not a number: ${HOW}`;
const COMMA = "has a comma that is unclear: write 1000 for a thousand and 0.5 for a half";
const GAP = "has nothing before or behind a comma: write numbers with commas between them";
const SPACE = "has a space between digits: write one number without spaces";
const ZEROS = "has a space or zeros before digits: write 1000 for a thousand, and a comma between numbers";
const TO_INFINITY = "write inf if you mean that";

/** A guess that is not understood, and how to write it. */
export class Unclear extends Error {}

/**
 * The value of a text, and how it was read if that needs saying; throws Unclear if it is not understood.
 * @param {string} text
 * @param {Field} field
 */
export function read(text, field) {
  if ([...text].length > LONGEST) throw new Unclear(LONG);
  const { value, said } = READ[field.kind](tidy(text), field);
  const isSame = field.kind !== "number" && bareWords(said) === bareWords(text);
  return { value, said: isSame || PLAIN.test(text) || said === text ? "" : said };
}

/** @param {string} text */
const bareWords = (text) => text.replace(/[\s()[\]{}"']/g, "").toLowerCase();

/**
 * A text with the signs of a keyboard, single spaces and no quotes around it.
 * @param {string} typed
 */
function tidy(typed) {
  let text = typed
    .replace(/[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+/g, (high) => `^${[...high].map((c) => "0123456789+-"[HIGH.indexOf(c)]).join("")}`)
    .replace(/([0-9]) ?(?=[¼-¾⅐-⅞])/g, "$1 + ") // 1½ is not 11/2
    .normalize("NFKC")
    .replace(/[‐‑‒–—−]/g, "-")
    .replace(/[⁄∕÷]/g, "/")
    .replace(/[×·⋅∙]/g, "*")
    .replace(/’/g, "'")
    .replace(/\p{Cf}/gu, "") // not seen
    .replace(/\s+/g, " ")
    .replace(/^ +| +$/g, "");
  for (let quoted; (quoted = /^["'`“”„‘«»] ?(.*?) ?["'`“”‘«»]$/.exec(text)); ) text = quoted[1];
  return text;
}

/**
 * A number in few characters, the same as Python's.
 * @param {number} x
 */
function shown(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return String(x);
  if (Math.abs(x) >= 1e-4 && Math.abs(x) < 1e12) return String(Number(x.toPrecision(12)));
  const [digits, power] = x.toExponential(5).split("e");
  return `${digits.replace(/0+$/, "").replace(/\.$/, "")}e${Number(power)}`;
}

/**
 * A number, or a product, quotient or power of numbers, and what stands behind it.
 * @param {string} text
 */
function readNumber(text) {
  const named = NAMED.exec(text);
  if (named) return { value: named[2] ? (named[1] === "-" ? -Infinity : Infinity) : NaN, behind: "" };
  if (CODED.test(text)) throw new Unclear("is not a decimal number: write its decimal digits");
  const found = PRODUCT.exec(text);
  if (!found) throw new Unclear(NONE);
  const [, typed, behind] = found;
  if (/^[-+*/^(=.,0-9]/.test(behind) && behind !== "*") throw new Unclear(`is not computed here: ${HOW}`);
  const [first, ...others] = typed.split(/ ?(\*\*|[*^/xX]) ?/);
  const factors = [{ divides: false, powers: [plain(first)] }];
  for (let k = 0; k < others.length; k += 2) {
    const x = plain(others[k + 1]);
    if (others[k] === "^" || others[k] === "**") factors[factors.length - 1].powers.push(x);
    else factors.push({ divides: others[k] === "/", powers: [x] });
  }
  const value = factors.reduce((product, { divides, powers }) => {
    const by = powerOf(powers);
    if (divides && by === 0) throw new Unclear(`divides by 0: ${TO_INFINITY}`);
    return divides ? product / by : product * by;
  }, 1);
  if (!Number.isFinite(value)) throw new Unclear(`is too large to be read: ${TO_INFINITY}`);
  return { value, behind };
}

/**
 * A number as it is typed, with any sign of thousands.
 * @param {string} typed
 */
function plain(typed) {
  const text = typed.replace("- ", "-").replace("+ ", "+").replace(/(?<=[0-9])_(?=[0-9])/g, "").toLowerCase();
  const [mantissa, exponent] = text.split("e");
  const sign = mantissa.startsWith("-") ? "-" : "";
  let body = mantissa.replace(/^[+-]/, "");
  if (/^[1-9][0-9]{0,2}(?:( [0-9]{3})+|('[0-9]{3})+)([.,][0-9]+)?$/.test(body))
    body = body.replace(/[ ']/g, "").replace(",", ".");
  else if (/^[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$/.test(body)) body = body.replaceAll(",", "");
  else if (/^([1-9][0-9]{0,2}(\.[0-9]{3})+,[0-9]+|[1-9][0-9]{0,2}(\.[0-9]{3}){2,})$/.test(body))
    body = body.replaceAll(".", "").replace(",", ".");
  else if (/^[0-9]*,[0-9]+$/.test(body)) body = body.replace(",", ".");
  if (!/^([0-9]+\.?[0-9]*|\.[0-9]+)$/.test(body)) {
    if (body.includes(",")) throw new Unclear(COMMA);
    throw new Unclear(body.includes(" ") ? SPACE : NONE);
  }
  return Number(`${sign}${body}e${exponent || 0}`);
}

/**
 * A number or the power of two; the sign stands before the power.
 * @param {number[]} powers
 */
function powerOf([base, ...exponents]) {
  if (exponents.length > 1) throw new Unclear(`has a power of a power: ${HOW}`);
  if (!exponents.length) return base;
  if (base === 0 && exponents[0] < 0) throw new Unclear(`divides by 0: ${TO_INFINITY}`);
  return (base < 0 ? -1 : 1) * Math.abs(base) ** exponents[0];
}

/**
 * @param {string} typed
 * @param {Field} field
 */
function oneNumber(typed, { unit, units, right }) {
  let text = typed;
  for (let k = 0; k < 3; k += 1) text = text.replace(ABOUT, ""); // as in "about = 5"
  if (/[0-9] ?[,;] [+-]?[0-9]|[0-9] ?;/.test(text) || /^[([{].*[)\]}]$/.test(text)) {
    const inside = text.replace(/[()[\]{}]/g, "").replace(/^[ ,]+|[ ,]+$/g, "");
    if (/[,;]/.test(inside) || !inside) throw new Unclear("is not one number: write one number");
    text = inside;
  }
  const either = Number.isInteger(Number(right)) ? null : EITHER.exec(text);
  if (either) {
    const [plain, decimal] = ["", "."].map((sign) => either[0].replace(",", sign));
    throw new Unclear(`has a comma that is unclear: write ${plain} or ${decimal}`);
  }
  const { value, behind } = readNumber(text);
  if (!behind) return { value, said: shown(value) };
  const factor = Object.hasOwn(units, behind) ? units[behind] : units[behind.toLowerCase()];
  if (typeof factor !== "number") {
    const asked = unit ? `the answer is in ${unit}` : "the answer has no unit";
    throw new Unclear(`has “${behind}” behind the number, and ${asked}: write the number alone`);
  }
  return { value: value * factor, said: `${shown(value * factor)} ${unit}`.trim() };
}

/**
 * The numbers of a list without brackets.
 * @param {string} typed
 */
function items(typed) {
  const text = typed.replace(/ (?:and|und|&) /gi, ", ");
  const apart = text.includes(";") ? / ?; ?/ : text.includes(",") ? / ?, ?/ : " ";
  return text
    .replace(/ ?[,;] ?$/, "")
    .split(apart)
    .map((item) => {
      if (/[0-9] +[0-9]|^[+-]?0[0-9]/.test(item))
        throw new Unclear(ZEROS);
      if (!item.trim()) throw new Unclear(GAP);
      const { value, behind } = readNumber(item.trim());
      if (Number.isNaN(value)) throw new Unclear(NONE);
      if (!behind) return value;
      throw new Unclear(`has “${behind}” behind a number: write the numbers alone, with commas between them`);
    });
}

/**
 * @param {string} typed
 * @param {Field} field
 */
function readTuple(typed, { length }) {
  const example = Array.from({ length }, (_, k) => k + 1).join(", ");
  const how = `numbers: write ${length}, such as ${example}`;
  if (typed.includes("{")) throw new Unclear(`is a set, which has no order, and not ${length} ${how}`);
  const text = typed.replace(/^[([](.*)[)\]]$/, "$1").trim();
  const by = /^([0-9]+) ?(?:[*xX]|by) ?([0-9]+)$/.exec(text);
  const value = by ? [Number(by[1]), Number(by[2])] : items(text);
  if (value.length !== length) throw new Unclear(`is not ${length} ${how}`);
  return { value, said: value.map(shown).join(", ") };
}

/**
 * A set as its items, sorted, each as a text.
 * @param {string} typed
 * @param {Field} field
 */
function readSet(typed, { length }) {
  const text = typed.replace(/^(?:frozen)?set\((.*)\)$/, "$1").trim();
  if (["", "{}", "[]", "∅"].includes(text)) return { value: [], said: "{}" };
  const groups = length ? [...text.matchAll(/[([]([^()[\]{}]*)[)\]]/g)].map((found) => found[1]) : [];
  const rest = text.replace(/[([][^()[\]{}]*[)\]]/g, "").replace(/[()[\]{},; ]|and|und|&/g, "");
  if (groups.length && rest) throw new Unclear("is not a set of pairs: write (1, 0), (2, 0)");
  const read = (groups.length ? groups : [bare(text)]).map(items);
  const all = length ? read : read.flat().map((x) => [x]);
  if (length && all.some((item) => item.length !== length))
    throw new Unclear("is not a set of pairs: write (1, 0), (2, 0)");
  all.sort((a, b) => a.map((x, k) => x - b[k]).find((x) => x) ?? 0);
  const said = [...new Set(all.map((item) => item.map(shown).join(", ")))];
  const value = [...new Set(all.map((item) => String(item.map((x) => x + 0))))].sort();
  return { value, said: said.map((item) => (length ? `(${item})` : item)).join(", ") };
}

/**
 * A text without the brackets around it.
 * @param {string} typed
 */
function bare(typed) {
  let text = typed;
  for (let inside; (inside = /^[([{](.*)[)\]}] ?,?$/.exec(text)); ) text = inside[1].trim();
  if (/[()[\]{}]/.test(text))
    throw new Unclear("has brackets inside: write numbers with commas between them, such as 1, 2");
  return text;
}

/**
 * @param {string} text
 */
function readBool(text) {
  const value = Object.hasOwn(BOOLS, text.toLowerCase()) ? BOOLS[text.toLowerCase()] : undefined;
  if (value === undefined) throw new Unclear("is neither True nor False: write True or False");
  return { value, said: value ? "True" : "False" };
}

/**
 * @param {string} text
 * @param {Field} field
 */
function readChoice(text, { choices }) {
  const is = (option) => tidy(option).toLowerCase() === text.toLowerCase() || isSameNumber(option, text);
  const value = choices.find(is);
  if (value === undefined) throw new Unclear(`is none of ${choices.join(", ")}: write one of them`);
  return { value, said: value };
}

/**
 * @param {string} option
 * @param {string} text
 */
function isSameNumber(option, text) {
  try {
    const [a, b] = [readNumber(tidy(option)), readNumber(text)];
    return !a.behind && !b.behind && (a.value === b.value || (Number.isNaN(a.value) && Number.isNaN(b.value)));
  } catch {
    return false;
  }
}

/** @type {Record<Field["kind"], (text: string, field: Field) => { value: any, said: string }>} */
const READ = { number: oneNumber, tuple: readTuple, set: readSet, bool: readBool, choice: readChoice };
