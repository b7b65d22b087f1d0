// The frames of the two passes of the backward as Python packed them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BackwardFrames } from "../../../flashlib/widgets/backward_player/frames.js";
import { all, each } from "./sent.js";

const PARTS = ["load", "scores", "weights", "dP", "dS", "add", "store"];
const player = (words, run) => each(test, "backward", BackwardFrames, words, run);

player("each array of each step is Python's, with its zeros, infinities and NaN", (frames, sent, arrays) => {
  assert.equal(frames.steps.length, arrays.length);
  frames.steps.forEach((step, k) => {
    for (const [name, X] of Object.entries(arrays[k]))
      assert.deepEqual(frames.numbers.subarray(step[name], step[name] + X.length), X, `${name} of step ${k}`);
  });
});

player("each step is played in its parts, and stores where something is written", (frames, sent) => {
  const stores = new Set(sent.writes.map(([after]) => after));
  const parts = (k) => PARTS.filter((part) => part !== "store" || stores.has(k));
  assert.deepEqual(frames.timeline, frames.steps.flatMap((_, k) => parts(k).map((part) => [k, part])));
  frames.setDetail(false);
  assert.deepEqual(frames.timeline, frames.steps.map((_, k) => [k, "add"]));
});

player("a block that stays is begun by its first step and stored by its last", (frames, sent) => {
  const { steps, pass } = frames;
  const stored = new Set(sent.writes.map(([after]) => after).filter((k) => k >= 0));
  const lasts = steps.map((_, k) => k).filter((k) => frames.lastOf.get(steps[k][pass.index]) === k);
  assert.deepEqual(lasts.filter((k) => !stored.has(k)), []);
  steps.forEach((step, k) => assert.equal(step.first, k === 0 || lasts.includes(k - 1)));
  for (const [, start, stop, , name] of sent.writes) {
    const [N, B] = name === "dQ" ? [frames.N_q, frames.B_r] : [frames.N_k, frames.B_c];
    assert.ok(start % B === 0 && stop === Math.min(start + B, N) && frames.gradients.includes(name));
  }
});

player("the error of a block and of all is the one after as many tiles as were added", (frames, sent) => {
  const { numbers, T } = frames;
  const error = (name, k) => numbers[sent.errors[name] + k];
  for (const at of all(frames)) {
    const { k, part } = at;
    const added = part === "add" || part === "store";
    const { block, whole, tiles } = frames.error(at);
    assert.equal(tiles, k + added);
    assert.equal(whole, error("whole", k + added));
    if (part === "end") assert.equal(block, undefined);
    else assert.equal(block, error(added ? "after" : "before", k));
  }
  assert.ok(error("whole", T) <= 1e-3 * frames.peaks.error || frames.peaks.error < 1e-6);
});

player("the numbers of a row agree: P = exp(S − lse), dS = P (dP − delta)", (frames) => {
  const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(b)), `${a}, ${b}`);
  for (const step of frames.steps)
    for (let r = 0; r < step.n_r; r++) {
      const { lse, delta, S, P, dP, dS } = frames.row(step, r);
      assert.equal(S.length, step.n_c);
      S.forEach((s, c) => {
        near(P[c], s === -Infinity ? 0 : Math.exp(s - lse));
        near(dS[c], P[c] * (dP[c] - delta));
      });
    }
});

player("bytes are counted as by Python, with both passes and standard attention as references", (frames, sent) => {
  let before = { read: 0, written: 0 };
  for (const at of all(frames)) {
    const now = frames.moved(at);
    assert.ok(now.read >= before.read && now.written >= before.written);
    const stored = at.storing ? sent.steps[at.k][7] : (sent.steps[at.k - 1]?.[7] ?? sent.start);
    if (at.step) assert.equal(now.written, stored);
    before = now;
  }
  assert.deepEqual([before.read, before.written], sent.all);
  const others = frames.baselines().map(([, { read, written }]) => [read, written]);
  assert.deepEqual(others, [sent.both, sent.standard]);
});
