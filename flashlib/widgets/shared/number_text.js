// Numbers as texts, and from the bytes that Python sent.

/**
 * The numbers in received bytes: a copy, since the bytes may not be aligned to 8.
 * @param {DataView} bytes
 */
export const float64 = ({ buffer, byteOffset, byteLength }) =>
  new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength));

/** @param {number} low @param {number} x @param {number} high */
export const between = (low, x, high) => Math.max(low, Math.min(high, x));

/** @param {string} text */
const tidy = (text) => text.replace("e+", "e").replaceAll("-", "−");

/**
 * x to four significant digits: 1.950, −0.01234, 1.234e−7, −∞; 0 and other small integers as they are.
 * @param {number} x
 */
export function number(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x > 0 ? "∞" : "−∞";
  if (Number.isInteger(x) && Math.abs(x) < 1e4) return tidy(String(x));
  return tidy(Math.abs(x) < 1e-4 ? x.toExponential(3) : x.toPrecision(4));
}

/**
 * x in at most five characters, for small spaces: 1.95, −12.3, 1e−7.
 * @param {number} x
 */
export function short(x) {
  if (!Number.isFinite(x)) return number(x);
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < 0.005 || size >= 9999.5) return tidy(x.toExponential(0));
  return tidy(x.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0));
}

/**
 * x as in a sentence, to three digits, without trailing zeros: 12.6, 1.4, 4.
 * @param {number} x
 */
export const threeDigits = (x) => number(Number(x.toPrecision(3))).replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, "");

/**
 * x with every digit that distinguishes it from its neighbours.
 * @param {number} x
 */
export const exact = (x) => (Number.isFinite(x) ? tidy(String(x)) : number(x));

/**
 * x as it is written after a minus sign.
 * @param {number} x
 */
export const inBrackets = (x) => (x < 0 ? `(${number(x)})` : number(x));
