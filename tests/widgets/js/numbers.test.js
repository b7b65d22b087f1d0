// Numbers as texts, and the numbers in what Python sent.

import assert from "node:assert/strict";
import test from "node:test";

import { between, exact, float64, inBrackets, number, short } from "../../../flashlib/widgets/shared/number_text.js";
import { drawn, parsed } from "./helpers.js";

const SIZES = [1e-300, 1.2e-7, 9.9e-5, 1e-4, 0.00499, 0.005, 0.99995, 1, 9.995, 9.997, 99.95, 99.97, 9999.5, 12345.678, 1e21, 1e300];
const VALUES = [0, ...SIZES, ...SIZES.map((x) => -x), ...drawn(500, (draw) => (draw() - 0.5) * 10 ** (40 * draw() - 20))];

test("number has four significant digits", () => {
  for (const x of VALUES) assert.ok(Math.abs(parsed(number(x)) - x) <= 0.5001e-3 * Math.abs(x), number(x));
  const texts = ["1.950", "−0.01234", "1.234e−7", "3", "−9999", "1.000e4", "1.235e4"];
  assert.deepEqual([1.95, -0.012344, 1.2344e-7, 3, -9999, 1e4, 12346].map(number), texts);
});

test("infinity and NaN have their own texts", () => {
  assert.deepEqual([NaN, Infinity, -Infinity].map(number), ["NaN", "∞", "−∞"]);
  assert.deepEqual([NaN, Infinity, -Infinity].map(short), ["NaN", "∞", "−∞"]);
});

test("short has at most five characters where a power of ten has two digits", () => {
  for (const x of VALUES.filter((x) => x === 0 || Math.abs(Math.log10(Math.abs(x))) < 9)) {
    assert.ok(short(x).length <= 5, short(x));
    assert.ok(Math.abs(parsed(short(x)) - x) <= 0.5 * Math.abs(x) + 0.005, short(x));
  }
  assert.deepEqual([0, 1.9549, -12.34, 100.4, 1e-7, 12345].map(short), ["0", "1.95", "−12.3", "100", "1e−7", "1e4"]);
});

test("exact distinguishes a number from its neighbours", () => {
  for (const x of VALUES) assert.equal(parsed(exact(x)), x);
});

test("no text has a hyphen for a minus sign or a plus in a power", () => {
  for (const text of VALUES.flatMap((x) => [number(x), short(x), exact(x)])) assert.doesNotMatch(text, /[-+]/);
});

test("a negative number is in brackets after a minus sign", () => {
  assert.deepEqual([-1.5, 1.5, 0].map(inBrackets), ["(−1.500)", "1.500", "0"]);
});

test("between keeps a number inside", () => {
  assert.deepEqual([-1, 0, 3, 7, 9].map((x) => between(0, x, 7)), [0, 0, 3, 7, 7]);
});

test("numbers are read from unaligned bytes", () => {
  const bytes = new Uint8Array(3 + 5 * 8);
  const values = [1, -0.5, NaN, -Infinity, 5e-324];
  bytes.set(new Uint8Array(Float64Array.from(values).buffer), 3);
  const view = new DataView(bytes.buffer, 3, 5 * 8);
  assert.deepEqual([...float64(view)], values);
  float64(view)[0] = 7;
  assert.equal(view.getFloat64(0, true), 1); // it is a copy
});
