// EightBitsLab: texts of shares, numbers next to a given one, ends of bars, and sentences on a score and a sum.

import assert from "node:assert/strict";
import test from "node:test";

import { endOf, neighbours } from "../../../flashlib/widgets/eight_bits_lab/nearby.js";
import { accountOf, endingOf, percent } from "../../../flashlib/widgets/eight_bits_lab/words.js";
import { unpackLab } from "../../../flashlib/widgets/eight_bits_lab/unpack.js";
import { drawn, parsed } from "./helpers.js";

test("a share has three digits", () => {
  const texts = ["0%", "100%", "9.71%", "0.0493%", "0.0000272%", "1230%"];
  assert.deepEqual([0, 1, 0.09713, 0.000493, 2.72e-7, 12.345].map(percent), texts);
  for (const share of drawn(300, (draw) => 10 ** (8 * draw() - 7)))
    assert.ok(Math.abs(parsed(percent(share).slice(0, -1)) / 100 - share) <= 0.00501 * share);
});

test("bars end at a round number that is not smaller", () => {
  for (const x of drawn(300, (draw) => 10 ** (5 * draw() - 4.5))) {
    const end = endOf(x);
    assert.ok(end >= x && end <= 2.5 * x, `${x}: ${end}`);
  }
  assert.deepEqual([0.1, 0.2, 0.21, 1].map(endOf), [0.1, 0.2, 0.5, 1]);
});

test("the numbers next to a given one are in order, around it, and fewer at the ends", () => {
  const grid = [1, 2, 3, 4, 6, 8, 12, 16];
  assert.deepEqual(neighbours(grid, 5, 2), [3, 4, 6, 8]);
  assert.deepEqual(neighbours(grid, 6, 2), [4, 6, 8, 12]);
  assert.deepEqual(neighbours(grid, 0.3, 2), [0, 1, 2]);
  assert.deepEqual(neighbours(grid, 16, 2), [12, 16]);
  assert.deepEqual(neighbours(grid, 99, 2), [12, 16]);
  for (const x of drawn(300, (draw) => 16 * draw())) {
    const near = neighbours(grid, x);
    const far = [0, ...grid].map((value) => Math.abs(value - x));
    const nearest = [0, ...grid][far.indexOf(Math.min(...far))];
    assert.ok(near.includes(nearest) && near.length >= 4);
  }
});

const SIZES = { rows: 2, cols: 3, shown: 4, points: 5, step: 32 };
const COUNT = 6 * 8 + 4 * 6 + 5 + 2 * 30;

test("packed numbers are unpacked, each once", () => {
  const all = Float64Array.from({ length: COUNT }, (_, k) => k);
  const parts = unpackLab({ ...SIZES, buffer: new DataView(all.buffer) });
  assert.deepEqual(Object.values(parts).flatMap((part) => [...part]), [...all]);
  const { weights_now, O, keys, running } = parts;
  assert.deepEqual([weights_now, O, keys, running].map(({ length }) => length), [8, 6, 5, 30]);
});

test("the sentences on a score have each factor of its weight", () => {
  const [s, s_now, P, P_q, weight, weight_now] = [1, 1.25, 50, 48, 0.01, 0.0125];
  const at = (x) => Float64Array.from({ length: 8 }, (_, k) => (k === 5 ? x : NaN));
  const numbers = { S: at(s), S_now: at(s_now), P: at(P), P_q: at(P_q) };
  Object.assign(numbers, { weights: at(weight), weights_now: at(weight_now) });
  const setting = { qk: "e4m3", pv: "e5m2", p_times: 256 };
  const lines = accountOf({ row: 1, key: 1, column: 0 }, { ...SIZES, setting }, numbers);
  const l = weight_now / weight / (Math.exp(0.25) * (P_q / P));
  assert.deepEqual(lines, [
    "The score is 1; from Q and K in e4m3 it is 1.250, off by 0.2500.",
    "What a score is off by becomes a factor of its weight: exp(0.2500) = 1.284.",
    "P = exp(1.250 − m) = 0.1953, times 256: 50. In e5m2 that is 48, 4% too small.",
    "Its weight P / l is 0.01000; now it is 0.01250, 25% too large. " +
      `Of this, l contributes a factor of ${l.toPrecision(4)}.`,
  ]);
  const once = { ...SIZES, setting: { ...setting, p_times: 1 } };
  const nothing = { ...numbers, P_q: at(0), weights_now: at(0) };
  const lost = accountOf({ row: 1, key: 1, column: 0 }, once, nothing);
  assert.match(lost[2], /= 50\. In e5m2 that is 0, lost\.$/);
  assert.match(lost[3], /now it is 0, lost\.$/);
});

test("the sentences on a sum", () => {
  const ends = (sum, exact, unit, lost, setting) => {
    const last = (x) => Float64Array.from({ length: 30 }, (_, k) => (k === 24 + 4 ? x : NaN));
    const at = (x) => Float64Array.from({ length: 6 }, (_, k) => (k === 4 ? x : NaN));
    const numbers = { running: last(sum), unrounded: last(exact), unit: at(unit), lost: at(lost) };
    const result = { ...SIZES, setting: { N: 640, sums: "13 bits", pv: "e4m3", ...setting } };
    return endingOf({ row: 1, key: 0, column: 1 }, result, numbers);
  };
  const start = "640 terms add up to 3; the same terms, added exactly, give 4: the sum is 25% too small.";
  const last = "By then its last bit is worth 0.5000; of the last 32 terms 7 are smaller.";
  assert.equal(ends(3, 4, 0.5, 7), `${start} ${last}`);
  assert.match(ends(5, 4, 0.5, 7), /give 4: the sum is 25% too large\. By then/);
  assert.match(ends(-5, -4, 0.5, 7), /the sum is 25% too large\. By then/);
  assert.match(ends(-1, 4, -0.5, 7), /the sum is of the opposite sign\. By then its last bit is worth 0.5000/);
  assert.match(ends(3, 4, 0.5, 1), /of the last 32 terms 1 is smaller\.$/);
  assert.match(ends(3, 4, 0.5, 0), /of the last 32 terms none is smaller\.$/);
  assert.match(ends(4, 4, NaN, NaN, { sums: "two levels" }), /give 4\. Between tiles nothing is cut off\.$/);
  assert.match(ends(4, 4, NaN, NaN, { sums: "exact" }), /give 4\. Nothing is cut off\.$/);
  assert.match(ends(4, 4, NaN, NaN, { sums: "two levels", pv: "fp16" }), /give 4\. Nothing is cut off\.$/);
});
