// What a card says of a prediction: a slip, a number that is near, one in another unit.

import assert from "node:assert/strict";
import { test } from "node:test";

import { grade } from "../../../flashlib/widgets/prediction_card/grade.js";

const NUMBER = { part: "", label: "", kind: "number", right: "2", shown: "2", tolerance: 0, wrong: [], choices: [] };

/** A card of fields that are NUMBER but for what is given. */
const card = (...own) => ({ name: "card", reason: "because.", fields: own.map((of) => ({ ...NUMBER, ...of })) });

test("what is missing, or is not of its kind, costs no reason", () => {
  const two = card({ part: "a", label: "the first" }, { part: "b", label: "b", kind: "bool", right: "True" });
  const open = (given) => {
    const found = grade(two, given);
    assert.deepEqual([found.outcome, found.reason], ["open", undefined]);
    return found.sentence;
  };
  assert.equal(open({}), "");
  assert.equal(open({ a: "2 keys" }), "the first: “2 keys” is not a number.");
  assert.equal(open({ a: "2" }), "Right so far; left: b.");
  assert.equal(open({ a: "3" }), "the first: not 3, but 2; left: b.");
  assert.equal(open({ a: "2", b: "yes" }), "b: “yes” is neither True nor False.");
  assert.equal(grade(two, { a: "2", b: "true" }).outcome, "right");
});

test("a near number, and one in another unit, have a sentence of their own", () => {
  const said = (right, given) => grade(card({ right, shown: right, tolerance: 1e-3 }), { "": given }).sentence;
  assert.match(said("100", "104"), /near: 4\.0% too much/);
  assert.match(said("100", "96"), /near: 4\.0% too little/);
  assert.match(said("100", "102400"), /right but for the unit: that is 1020 times as much/);
  for (const given of ["89", "111", "150", "115000"]) assert.doesNotMatch(said("100", given), /near|unit/);
  for (const given of ["0", "-100", "inf", "nan"]) assert.equal(said("100", given), `not ${given}, but 100.`);
});
