// What a card says of a prediction: a slip, a number that is near, one in another unit.

import assert from "node:assert/strict";
import { test } from "node:test";

import { grade } from "../../../flashlib/widgets/prediction_card/grade.js";

const NUMBER = { part: "", label: "", kind: "number", right: "2", shown: "2", tolerance: 0, wrong: [], choices: [], unit: "", units: {} };

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
  assert.match(open({ a: "2 keys" }), /^the first: “2 keys” has “keys” behind the number/);
  assert.equal(open({ a: "2" }), "right so far; left: b.");
  assert.equal(open({ a: "3" }), "the first: not 3; left: b.");
  assert.equal(open({ a: "2", b: "perhaps" }), "b: “perhaps” is neither True nor False: write True or False.");
  assert.equal(grade(two, { a: "2", b: "true" }).outcome, "right");
});

test("a wrong guess gets the hint, and the answer when it is shown", () => {
  const one = { ...card({ part: "", wrong: [["3", "that is one more than 2"]] }), hint: "look." };
  const first = grade(one, { "": "3" });
  assert.deepEqual([first.outcome, first.sentence, first.hint, first.reason], ["wrong", "not 3.", "look.", undefined]);
  const shown = grade(one, { "": "3" }, true);
  assert.equal(shown.sentence, "not 3, but 2 (that is one more than 2).");
  assert.deepEqual([shown.hint, shown.reason], [undefined, "because."]);
});

test("the parts to look at again are known", () => {
  const two = card({ part: "a", label: "a" }, { part: "b", label: "b" });
  assert.deepEqual(grade(two, { a: "2", b: "3" }).slips, ["b"]);
  assert.deepEqual(grade(two, { a: "x", b: "3" }).slips, ["a"]);
  assert.deepEqual(grade(two, { b: "2" }).slips, ["a"]);
});
