import assert from "node:assert/strict";
import { test } from "node:test";
import { Frames } from "../../../flashlib/widgets/flash_player/frames.js";
import { heading, isRight, verdict } from "../../../flashlib/widgets/flash_player/learner.js";

const RIGHT = { errors: [0], tolerance: 1e-4, first: null, missed: [], remark: "", O: null };
const { rowInText } = Frames.prototype;
const ended = (learner) => verdict(learner, { steps: [], numbers: [], d: 1 }, { k: 1, step: undefined, reached: () => true });
const EACH = "m, l and O_acc were right at every step that was played.";

test("of a kernel that is right it is told that this holds on these numbers, and that its check tries more", () => {
  assert.equal(ended(RIGHT), `${EACH} O is right.`);
  const said = `${EACH} O is right. Right on these numbers; its check tries many more.`;
  assert.equal(ended({ ...RIGHT, kernel: true, lse: null, note: "" }), said);
});

test("what is wrong after the loop, or beside the numbers, is told, and the kernel is not called right", () => {
  const kernel = { ...RIGHT, kernel: true, lse: [0.25, 3], note: "Line 7 of f loads beside the elements of K_ptr" };
  const said = `${EACH} O is right. lse is wrong from row 3 on, by up to 0.2500. Line 7 of f loads beside the elements of K_ptr.`;
  assert.equal(ended(kernel), said);
  assert.equal(ended({ ...kernel, lse: null, O: [1e300, 0] }).includes("O is wrong from row 0 on, by up to ∞ or NaN."), true);
});

test("the heading says whose code it is, and how far it is right", () => {
  const told = (wrong, rowWords = null) => heading({ ...RIGHT, name: "f", ...wrong }, { T: 6, rowWords, rowInText });
  assert.equal(told({}), "`f`: right on these numbers");
  assert.equal(told({ first: [2, "l", 39] }), "`f`: right up to step 2 of 6, first wrong in l of row 39");
  assert.equal(told({ first: [2, "l", 1] }, ["a", "b"]), "`f`: right up to step 2 of 6, first wrong in l of row 1 (b)");
  assert.equal(told({ first: [0, "m", 3], missed: [[0, 0]] }), "`f`: wrong from step 1 of 6 on, first in m of row 3");
  assert.equal(told({ missed: [[0, 0]], O: [1, 0] }), "`f`: right at each step, but 1 tile missed");
  assert.equal(told({ O: [1, 7] }), "`f`: right at each step, but O is wrong from row 7 on");
  assert.equal(told({ lse: [1, 8] }), "`f`: right at each step, but lse is wrong from row 8 on");
  assert.equal(told({ remark: "f raised" }), "`f`: right at each step that was played");
});

test("a learner's steps are right if nothing is wrong, missed or remarked", () => {
  const wrongs = [{ first: [0, "m", 0] }, { missed: [[0, 0]] }, { remark: "x" }, { O: [1, 0] }, { lse: [1, 0] }, { note: "x" }];
  assert.deepEqual([isRight(RIGHT), ...wrongs.map((wrong) => isRight({ ...RIGHT, ...wrong }))], [true, ...wrongs.map(() => false)]);
});
