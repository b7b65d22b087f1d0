// The players' sentences on each frame, for each of its rows: with the right numbers, and no others.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BackwardFrames } from "../../../flashlib/widgets/backward_player/frames.js";
import { backwardEquations, backwardSentence } from "../../../flashlib/widgets/backward_player/words.js";
import { Frames } from "../../../flashlib/widgets/flash_player/frames.js";
import { verdict } from "../../../flashlib/widgets/flash_player/learner.js";
import { forwardEquations, sentence } from "../../../flashlib/widgets/flash_player/words.js";
import { number } from "../../../flashlib/widgets/shared/number_text.js";
import { all, each } from "./sent.js";

/** Every frame that has a step, with each row of it. */
const rowsOf = (frames) =>
  all(frames)
    .filter(({ step }) => step)
    .flatMap((at) => Array.from({ length: at.step.n_r }, (_, r) => ({ at, r, row: at.step.rows[0] + r })));

each(test, "flash", Frames, "every part has an equation and every row a sentence", (frames) => {
  assert.deepEqual(Object.keys(forwardEquations(frames)), frames.parts);
  for (const { at, row } of rowsOf(frames)) {
    const text = sentence(frames, at, row);
    assert.match(text, /^[^]+\.$/);
    assert.doesNotMatch(text, /undefined|object|null/);
  }
});

each(test, "flash", Frames, "the sentence on a rescale says what happens to the row", (frames) => {
  for (const { at, r, row } of rowsOf(frames).filter(({ at }) => at.part === "rescale")) {
    const { m_old, m, alpha, l_old, l_rescaled, scores } = frames.row(at.step, r);
    const text = sentence(frames, at, row);
    if (m === -Infinity) assert.match(text, /has seen no key/);
    else if (scores.every((s) => s === -Infinity)) assert.match(text, /sees no key of this tile/);
    else if (m_old === -Infinity) assert.match(text, /nothing to rescale/);
    else if (m === m_old) assert.match(text, /nothing is rescaled/);
    else {
      assert.ok(text.includes(`grew from ${number(m_old)} to ${number(m)}`), text);
      assert.ok(text.includes(`= ${number(alpha)}: l from ${number(l_old)} to ${number(l_rescaled)}`), text);
    }
  }
});

each(test, "flash", Frames, "a learner's steps are judged from the first wrong one", (frames) => {
  if (!frames.learner) return;
  const [first, name, row] = frames.learner.first;
  for (const at of all(frames)) {
    const text = verdict(frames.learner, frames, at);
    assert.doesNotMatch(text, /undefined|object|null/);
    if (!at.step) assert.ok(text.includes(`It went wrong at step ${first + 1}.`), text);
    else if (at.k < first || !at.reached("add")) assert.equal(text, "");
    else if (at.k === first) assert.ok(text.includes(`Here it goes wrong: ${name} of row ${row}`), text);
    else if (frames.learner.errors[at.k] > frames.learner.tolerance) assert.match(text, /^Off by up to /);
    else assert.equal(text, "");
  }
});

each(test, "backward", BackwardFrames, "every part has an equation and every row a sentence", (frames) => {
  assert.deepEqual(Object.keys(backwardEquations(frames)), frames.parts);
  for (const { at, row } of rowsOf(frames)) {
    const text = backwardSentence(frames, at, row);
    assert.match(text, /^[^]+\.$/);
    assert.doesNotMatch(text, /undefined|object|null|NaN/);
  }
});

each(test, "backward", BackwardFrames, "dS is described for the key with the largest weight", (frames) => {
  for (const { at, r, row } of rowsOf(frames).filter(({ at }) => at.part === "dS")) {
    const text = backwardSentence(frames, at, row);
    const { lse, S, P, dS } = frames.row(at.step, r);
    if (lse === -Infinity) assert.match(text, /sees no key: its lse is −∞/);
    else if (S.every((s) => s === -Infinity)) assert.match(text, /sees no key of this tile/);
    else {
      const c = P.indexOf(Math.max(...P));
      assert.ok(text.startsWith(`Row ${row}, key ${at.step.cols[0] + c}: P · (dP − delta) = `), text);
      assert.ok(text.includes(` = ${number(dS[c])}. `), text);
    }
  }
});
