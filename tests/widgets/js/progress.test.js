// What counts as done in a chapter, and what can be used of a progress file.

import assert from "node:assert/strict";
import test from "node:test";

import { checked } from "../../../web/page/kept.js";
import { done } from "../../../web/page/progress.js";

test("a card counts once something is entered in it, an exercise once it is solved", () => {
  const chapter = { cards: ["a", "b", "c"], exercises: ["x", "y"] };
  const now = { solved: { y: "2026-01-01", other: "2026-01-01" }, predicted: { a: { "": "3" }, b: {}, other: { "": "1" } } };
  assert.deepEqual(done(chapter, now), [2, 5]);
});

test("everything in a file that is progress is kept, and the rest is left out", () => {
  const found = { solved: { x: "2026-01-01" }, predicted: { a: { "": "3" }, b: ["3"], c: null }, other: 1 };
  assert.deepEqual(checked(found), { solved: { x: "2026-01-01" }, predicted: { a: { "": "3" } } });
  assert.deepEqual(checked({ solved: {}, predicted: [] }), { solved: {}, predicted: {} });
  for (const wrong of [null, [], "x", {}, { solved: [] }]) assert.throws(() => checked(wrong), /not a progress file/);
});
