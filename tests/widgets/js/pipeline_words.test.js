import assert from "node:assert/strict";
import { test } from "node:test";
import { pipeStates } from "../../../flashlib/widgets/pipeline_player/words.js";

const ROLES = ["consumer 0", "warps", "producer"];
const row = (group, ...spans) => ({ name: "", group, spans, ticks: [] });
const said = (...rows) =>
  pipeStates({ rows, roles: ROLES, meanings: { "k_empty[0]": "K slot 0 free" } })(([, , start, end]) => start <= 5 && 5 < end);

test("the sentence says who multiplies and computes, and where alpha is used; no more", () => {
  const told = said(
    row("units", ["product", "S3", 4, 6, 0], ["copy", "K1", 0, 9, 2]),
    row("units", ["exp", "softmax 2", 0, 9, 0]), // of a unit: its role says it
    row("roles", ["exp", "softmax 2", 5, 9, 0]),
    row("roles", ["fma", "rescale 2", 0, 9, 1], ["wait", "k_empty[0]", 0, 9, 1]),
  );
  const computes = "consumer 0 computes “softmax 2”; warps compute “rescale 2”, O_acc times alpha";
  assert.equal(told, `The tensor cores multiply S3 for consumer 0; ${computes}.`);
});

test("if nobody computes, the sentence says what is copied and who waits for what", () => {
  const told = said(
    row("units", ["copy", "K1", 0, 9, 2]),
    row("roles", ["wait", "k_empty[0]", 0, 9, 2]),
    row("roles", ["wait", "x", 0, 9, 1], ["exp", "softmax 1", 0, 5, 1]),
  );
  assert.equal(told, "The copy unit brings K1; producer waits for k_empty[0] (K slot 0 free); warps wait for x.");
  assert.equal(said(row("roles", ["exp", "softmax 1", 0, 5, 1])), "Nobody works.");
});

test("besides an event, the sentence only says who multiplies and computes, or is empty", () => {
  const roles = (...spans) => pipeStates({ rows: [row("roles", ...spans)], roles: ROLES, meanings: {} })(() => true, true);
  assert.equal(roles(["fma", "rescale 2", 0, 9, 1], ["wait", "x", 0, 9, 2]), "Warps compute “rescale 2”, O_acc times alpha.");
  assert.equal(roles(["wait", "x", 0, 9, 2]), "");
});
