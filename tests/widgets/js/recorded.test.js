// The frames of the forward pass as Python packed them: unpacked, and played in their parts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Frames } from "../../../flashlib/widgets/flash_player/frames.js";
import { all, each } from "./sent.js";

const PARTS = ["load", "scores", "maximum", "rescale", "weights", "add", "store"];
const player = (words, run) => each(test, "flash", Frames, words, run);

player("each array of each step is Python's, with its zeros, infinities and NaN", (frames, sent, arrays) => {
  assert.equal(frames.steps.length, arrays.length);
  frames.steps.forEach((step, k) => {
    for (const [name, X] of Object.entries(arrays[k]))
      assert.deepEqual(frames.numbers.subarray(step[name], step[name] + X.length), X, `${name} of step ${k}`);
  });
});

player("steps cut S into tiles, with a smaller last one", (frames) => {
  const { N_q, N_k, B_r, B_c } = frames;
  for (const { i, j, rows, cols, n_r, n_c } of frames.steps) {
    assert.deepEqual(rows, [i * B_r, Math.min((i + 1) * B_r, N_q)]);
    assert.deepEqual(cols, [j * B_c, Math.min((j + 1) * B_c, N_k)]);
    assert.deepEqual([n_r, n_c], [rows[1] - rows[0], cols[1] - cols[0]]);
  }
});

player("each step is played in its parts, and stores where something is written", (frames, sent) => {
  const stores = new Set(sent.writes.map(([after]) => after));
  const parts = (k) => PARTS.filter((part) => part !== "store" || stores.has(k));
  assert.deepEqual(frames.timeline, frames.steps.flatMap((_, k) => parts(k).map((part) => [k, part])));
  assert.equal(frames.last, frames.timeline.length);
  frames.frameOf.forEach((frame, k) => {
    if (k < frames.T) assert.deepEqual(frames.timeline[frame], [k, "load"]);
    else assert.equal(frame, frames.last);
  });
});

player("whole steps are one frame each, which stores what its step stores", (frames, sent) => {
  frames.setDetail(false);
  assert.deepEqual(frames.timeline, frames.steps.map((_, k) => [k, "add"]));
  assert.deepEqual(frames.frameOf, Array.from({ length: frames.T + 1 }, (_, k) => k));
  const stored = all(frames).filter(({ storing }) => storing).map(({ k }) => k);
  const afters = [...new Set(sent.writes.map(([after]) => after))].filter((k) => k >= 0);
  assert.deepEqual(stored, afters.sort((a, b) => a - b));
});

player("a frame has reached its part and all before it, the end all of them", (frames) => {
  for (const { part, step, k, reached } of all(frames)) {
    const now = part === "end" ? PARTS.length : PARTS.indexOf(part);
    PARTS.forEach((name, n) => assert.equal(reached(name), n <= now));
    assert.equal(step, frames.steps[k]);
    assert.equal(step === undefined, part === "end");
  }
});

player("bytes are counted as Python counted them, and only grow", (frames, sent) => {
  let before = { read: 0, written: 0 };
  for (const at of all(frames)) {
    const now = frames.moved(at);
    assert.ok(now.read >= before.read && now.written >= before.written);
    const { k, part, storing } = at;
    if (part !== "end") assert.equal(now.read, sent.steps[k][6]);
    const stored = storing ? sent.steps[k][7] : (sent.steps[k - 1]?.[7] ?? sent.start);
    if (part !== "end") assert.equal(now.written, stored);
    before = now;
  }
  assert.deepEqual([before.read, before.written], sent.all);
  assert.equal(frames.sum(frames.standardMoved()), sent.standard[0] + sent.standard[1]);
});

player("the marked frames are those in which a maximum grows, and describe its first row", (frames) => {
  const { numbers } = frames;
  const grew = ({ n_r, m, m_old }) =>
    [...Array(n_r).keys()].filter((r) => numbers[m_old + r] > -Infinity && numbers[m + r] > numbers[m_old + r]);
  const expected = all(frames).filter(({ step, part }) => part === "rescale" && grew(step).length);
  assert.deepEqual(frames.marked(), expected.map(({ frame }) => frame));
  for (const step of frames.steps) assert.equal(frames.telling(step), grew(step)[0] ?? 0);
  frames.setDetail(false);
  assert.deepEqual(frames.marked(), expected.map(({ k }) => k));
});

player("m, l and O_acc are old before the part that makes them", (frames) => {
  for (const at of all(frames)) {
    const { l, m, O_acc } = frames.now(at);
    const rescaled = frames.learner ? "_old" : "_rescaled"; // a learner may not rescale
    const [add, rescale, maximum] = ["add", "rescale", "maximum"].map(at.reached);
    const suffix = add ? "" : rescale ? rescaled : "_old";
    assert.deepEqual([l, m, O_acc], [`l${suffix}`, maximum ? "m" : "m_old", `O_acc${suffix}`]);
    if (at.step) for (const name of [l, m, O_acc]) assert.ok(Number.isInteger(at.step[name]), name);
  }
});

player("the numbers of a row agree: m, alpha, P and l", (frames) => {
  if (frames.learner) return; // they need not
  const { T, steps } = frames;
  const isNear = (a, b) => Object.is(a, b) || Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(b));
  const near = (a, b) => assert.ok(isNear(a, b), `${a}, ${b}`);
  for (const step of steps.slice(0, T))
    for (let r = 0; r < step.n_r; r++) {
      const { m_old, m, alpha, l_old, l_rescaled, l, scores, weights } = frames.row(step, r);
      assert.equal(scores.length, step.n_c);
      near(m, Math.max(m_old, ...scores));
      near(alpha, m === -Infinity ? alpha : Math.exp(m_old - m));
      near(l_rescaled, alpha * l_old);
      near(l, l_rescaled + weights.reduce((sum, p) => sum + p, 0));
      weights.forEach((p, c) => near(p, scores[c] === -Infinity ? 0 : Math.exp(scores[c] - m)));
    }
});

player("peaks are the largest finite sizes", (frames) => {
  const { numbers, steps, peaks, d, inputs, N_k } = frames;
  const largest = (offset, length) =>
    Math.max(0, ...[...numbers.subarray(offset, offset + length)].map(Math.abs).filter(Number.isFinite));
  assert.equal(peaks.K, largest(inputs.K, N_k * d));
  assert.equal(peaks.S, Math.max(...steps.map((step) => largest(step.S_ij, step.n_r * step.n_c))));
  for (let row = 0; row < frames.N_q; row++)
    for (const [name, cols] of [["l", 1], ["O_acc", d]]) {
      const own = steps.filter(({ rows }) => rows[0] <= row && row < rows[1]);
      const sizes = own.map((step) => largest(step[name] + (row - step.rows[0]) * cols, cols));
      assert.equal(frames.rowPeak(name, row), Math.max(0, ...sizes) || 1);
    }
});

player("blocks that stay are loaded once, blocks that pass by at every step", (frames) => {
  const { steps, stays, T_r, T_c } = frames;
  const loads = (side) => steps.filter((_, k) => frames.loads(k, side)).length;
  const passes = stays === "i" ? "j" : "i";
  const blocks = new Set(steps.map((step) => step[stays])).size;
  assert.ok(blocks <= (stays === "i" ? T_r : T_c));
  assert.deepEqual([loads(stays), loads(passes)], [blocks, steps.length]);
  for (const [i, k] of frames.lastOf) assert.equal(steps.findLastIndex((step) => step.i === i), k);
});

player("the largest weight of a row is that of its softmax over all its tiles", (frames) => {
  if (frames.learner) return; // lse is of the true scores
  for (let row = 0; row < frames.N_q; row++) {
    const all = frames.steps
      .filter(({ rows: [first, stop] }) => first <= row && row < stop)
      .flatMap((step) => [...frames.row(step, row - step.rows[0]).scores].map((score, c) => [score, step.cols[0] + c]));
    const largest = Math.max(-Infinity, ...all.map(([score]) => score));
    const found = frames.largestWeight(row);
    if (largest === -Infinity) assert.equal(found, undefined);
    else {
      const sum = all.reduce((sum, [score]) => sum + Math.exp(score - largest), 0);
      assert.ok(Math.abs(found[1] - 1 / sum) < 1e-3 / sum);
      assert.ok(all.some(([score, key]) => score === largest && key === found[0]));
    }
  }
});
