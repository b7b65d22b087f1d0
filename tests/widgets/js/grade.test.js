// A card's sentences on answers: on missing ones, on unreadable ones, and on wrong ones.

import assert from "node:assert/strict";
import { test } from "node:test";

import { grade } from "../../../flashlib/widgets/prediction_card/grade.js";
import { readAll } from "../../../flashlib/widgets/prediction_card/typed_text.js";

const NUMBER = { part: "", label: "", kind: "number", right: 2, shown: "2", tolerance: 0, wrong: [], choices: [], length: 1, unit: "" };

/** A card of fields that are NUMBER except for the given properties. */
const card = (...own) => ({ name: "card", reason: "because.", fields: own.map((of) => ({ ...NUMBER, ...of })) });

/** The verdict on texts that can be read. */
function graded(one, texts, shows = false) {
  const { answers, slips } = readAll(one.fields, texts);
  assert.deepEqual(slips, []);
  return grade(one, answers, shows);
}

test("missing parts do not reveal the reason", () => {
  const two = card({ part: "a", label: "the first" }, { part: "b", label: "b", kind: "bool", right: true, shown: "True" });
  const open = (given) => {
    const found = graded(two, given);
    assert.deepEqual([found.outcome, found.reason], ["open", undefined]);
    return found.sentence;
  };
  assert.equal(open({}), "");
  assert.equal(open({ a: "2" }), "right so far; left: b.");
  assert.equal(open({ a: "3" }), "the first: not 3. Left: b.");
  assert.equal(graded(two, { a: "2,0", b: "True" }).outcome, "right");
  assert.equal(graded(two, { a: "2", b: "False" }).sentence, "b: not False.");
});

test("each unreadable text is named, and does not affect the others", () => {
  const two = card({ part: "a", label: "the first" }, { part: "b", label: "b" }, { part: "c", label: "c", unit: "GB" });
  const { answers, slips } = readAll(two.fields, { a: "two", b: "2", c: "1,500", d: "of another form of the question" });
  assert.deepEqual(answers, { b: { text: "2", value: 2 } });
  assert.deepEqual(slips.map(({ part }) => part), ["a", "c"]);
  assert.equal(slips[0].sentence, "the first: “two” is not a number: write one such as 12, 0.5 or 1e-3.");
  assert.equal(slips[1].sentence, "c: “1,500” may be 1500 or 1.5: write one of these.");
});

test("a wrong answer gets the hint, and the right one when it is shown", () => {
  const one = { ...card({ part: "", wrong: [[3, "that is one more than 2"]] }), hint: "look." };
  const first = graded(one, { "": "3" });
  assert.deepEqual([first.outcome, first.sentence, first.hint, first.reason], ["wrong", "not 3.", "look.", undefined]);
  const shown = graded(one, { "": "3" }, true);
  assert.equal(shown.sentence, "not 3, but 2 (that is one more than 2).");
  assert.deepEqual([shown.hint, shown.reason], [undefined, "because."]);
});

test("the parts to look at again are known", () => {
  const two = card({ part: "a", label: "a" }, { part: "b", label: "b" });
  assert.deepEqual(graded(two, { a: "2", b: "3" }).again, ["b"]);
  assert.deepEqual(graded(two, { b: "2" }).again, ["a"]);
});
