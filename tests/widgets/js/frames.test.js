// The frames of both players: tilings in which no size divides another.

import assert from "node:assert/strict";
import test from "node:test";

import { BackwardFrames } from "../../../flashlib/widgets/backward_player/frames.js";
import { bytes, Frames, span } from "../../../flashlib/widgets/flash_player/frames.js";
import { Memory } from "../../../flashlib/widgets/flash_player/memory.js";
import { andList, counted } from "../../../flashlib/widgets/shared/language.js";
import { drawn } from "./helpers.js";

const SIZES = [
  { N_q: 7, N_k: 11, d: 3, B_r: 4, B_c: 3 },
  { N_q: 10, N_k: 7, d: 5, B_r: 3, B_c: 4 },
  { N_q: 1, N_k: 13, d: 1, B_r: 2, B_c: 5 },
  { N_q: 5, N_k: 5, d: 2, B_r: 7, B_c: 7 },
];
const FORWARD = ["S_ij", "P_ij", "m_old", "m", "alpha", "l_old", "l", "O_acc_old", "O_acc", "l_rescaled", "O_acc_rescaled"];

/** A buffer that grows; `put` returns the offset of what it is given. */
function buffer() {
  const numbers = [];
  const put = (values) => numbers.push(...values) - values.length;
  return { put, sent: () => new DataView(Float64Array.from(numbers).buffer) };
}

const normal = (count, seed) => drawn(count, (draw) => 2 * draw() - 1, seed);

/** A tiling as Python sends it, with numbers that are drawn; outer: the index of the blocks that stay. */
function tiling({ N_q, N_k, d, B_r, B_c }, outer, names, width) {
  const { put, sent } = buffer();
  const [T_r, T_c] = [Math.ceil(N_q / B_r), Math.ceil(N_k / B_c)];
  const tiles = Array.from({ length: T_r * T_c }, (_, k) =>
    outer === "i" ? [Math.floor(k / T_c), k % T_c] : [k % T_r, Math.floor(k / T_r)],
  );
  const steps = tiles.map(([i, j], k) => {
    const rows = [i * B_r, Math.min((i + 1) * B_r, N_q)];
    const cols = [j * B_c, Math.min((j + 1) * B_c, N_k)];
    const [n_r, n_c] = [rows[1] - rows[0], cols[1] - cols[0]];
    const offsets = names.map((name, n) => put(normal(width(name, n_r, n_c), 97 * k + n + 1)));
    return [i, j, ...rows, ...cols, 100 * (k + 1), 10 * k, ...offsets];
  });
  const raw = { N_q, N_k, d, B_r, B_c, T_r, T_c, causal: false, dtype: "float64", masked: [], changed: false };
  return { raw: { ...raw, packed: names, steps, start: 0, standard: [5, 6] }, tiles, put, sent };
}

function forward(sizes, order, learner = null, words = null) {
  const { N_q, N_k, d } = sizes;
  const width = (name, n_r, n_c) => (name.endsWith("_ij") ? n_r * n_c : name.startsWith("O") ? n_r * d : n_r);
  const { raw, tiles, put, sent } = tiling(sizes, order === "fa1" ? "j" : "i", FORWARD, width);
  const last = (k) => order === "fa1" || tiles[k + 1]?.[0] !== tiles[k][0];
  const writes = raw.steps.flatMap(([, , start, stop], k) =>
    last(k) ? [[k, start, stop, put(normal((stop - start) * d, k + 5))]] : [],
  );
  const inputs = { Q: put(normal(N_q * d, 2)), K: put(normal(N_k * d, 3)), V: put(normal(N_k * d, 4)), lse: put(normal(N_q, 5)) };
  const all = [100 * tiles.length, 10 * tiles.length];
  return new Frames({ ...raw, order, writes, inputs, all, learner, words, sram: [1, 2], buffer: sent() });
}

function backward(sizes, wrt) {
  const { N_q, N_k, d } = sizes;
  const gradients = wrt === "kv" ? ["dV", "dK"] : ["dQ"];
  const tilesOf = ["S_ij", "P_ij", "dP_ij", "dS_ij"];
  const names = [...tilesOf, ...gradients.flatMap((name) => ["added", "old", "sum"].map((part) => `${name}_${part}`))];
  const width = (name, n_r, n_c) => (tilesOf.includes(name) ? n_r * n_c : (wrt === "kv" ? n_c : n_r) * d);
  const { raw, tiles, put, sent } = tiling(sizes, wrt === "kv" ? "j" : "i", names, width);
  const [own, at] = wrt === "kv" ? [1, 4] : [0, 2];
  const writes = raw.steps.flatMap((step, k) => {
    const [start, stop] = [step[at], step[at + 1]];
    if (tiles[k + 1]?.[own] === tiles[k][own]) return [];
    return gradients.map((name) => [k, start, stop, put(normal((stop - start) * d, k + 5)), name]);
  });
  const T = tiles.length;
  const errors = { before: put(normal(T, 6)), after: put(normal(T, 7)), whole: put(normal(T + 1, 8)) };
  const counts = { Q: N_q * d, K: N_k * d, V: N_k * d, dO: N_q * d, lse: N_q, delta: N_q };
  const inputs = Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, put(normal(count, 9))]));
  const extra = { wrt, gradients, errors, inputs, writes, all: [100 * T, 10 * T], both: [3, 4] };
  return new BackwardFrames({ ...raw, ...extra, buffer: sent() });
}

for (const order of ["fa1", "fa2"])
  test(`rows of O are final once no step adds to them, and at the end all are: ${order}`, () => {
    for (const sizes of SIZES) {
      const frames = forward(sizes, order);
      for (const done of frames.steps.keys()) {
        const later = frames.steps.slice(done + 1).flatMap(({ rows: [start, stop] }) =>
          Array.from({ length: stop - start }, (_, r) => start + r),
        );
        const final = sizes.N_q - new Set(later).size;
        assert.equal(Memory.prototype.progress.call({ frames }, done), `O: ${final} of ${sizes.N_q} rows final`);
      }
    }
  });

const ALL = SIZES.flatMap((sizes) => [
  ...["fa1", "fa2"].map((order) => [`${JSON.stringify(sizes)}, ${order}`, () => forward(sizes, order)]),
  ...["kv", "q"].map((wrt) => [`${JSON.stringify(sizes)}, ${wrt}`, () => backward(sizes, wrt)]),
]);

for (const [name, make] of ALL) {
  test(`each step is played in its parts: ${name}`, () => {
    const frames = make();
    const stores = new Set(frames.writes.map(([after]) => after));
    const expected = frames.steps.flatMap((_, k) =>
      frames.parts.filter((part) => part !== "store" || stores.has(k)).map((part) => [k, part]),
    );
    assert.deepEqual(frames.timeline, expected);
    assert.equal(frames.last, expected.length);
    frames.frameOf.forEach((frame, k) => assert.equal(frames.at(frame).k, k));
    assert.deepEqual(frames.frameOf, [...frames.frameOf].sort((a, b) => a - b));
    frames.setDetail(false);
    assert.deepEqual(frames.timeline, frames.steps.map((_, k) => [k, "add"]));
  });

  test(`a frame has reached its part and those before: ${name}`, () => {
    const frames = make();
    for (let frame = 0; frame < frames.last; frame++) {
      const { part, reached, step, storing } = frames.at(frame);
      const at = frames.parts.indexOf(part);
      frames.parts.forEach((other, k) => assert.equal(reached(other), k <= at));
      assert.equal(storing, part === "store");
      if (storing) assert.ok(step.stores);
    }
    const { step, part, reached } = frames.at(frames.last);
    assert.ok(step === undefined && part === "end" && frames.parts.every(reached));
  });

  test(`bytes never go down and end at the totals: ${name}`, () => {
    const frames = make();
    for (const detail of [true, false]) {
      frames.setDetail(detail);
      let before = { read: 0, written: 0 };
      for (let frame = 0; frame <= frames.last; frame++) {
        const now = frames.moved(frames.at(frame));
        assert.ok(now.read >= before.read && now.written >= before.written);
        before = now;
      }
      assert.deepEqual(before, { read: frames.all[0], written: frames.all[1] });
    }
  });

  test(`each block that stays is loaded once, and each step loads what passes by: ${name}`, () => {
    const frames = make();
    const passes = frames.stays === "i" ? "j" : "i";
    const loaded = frames.steps.filter((_, k) => frames.loads(k, frames.stays)).map((step) => step[frames.stays]);
    assert.deepEqual(loaded, [...new Set(frames.steps.map((step) => step[frames.stays]))]);
    frames.steps.forEach((_, k) => assert.ok(frames.loads(k, passes)));
  });

  test(`it opens on an instructive frame, and on the requested step: ${name}`, () => {
    const frames = make();
    for (const k of frames.steps.keys()) {
      const { k: shown, part } = frames.at(frames.opening(k));
      assert.deepEqual([shown, part], k || frames.wrt ? [k, "add"] : [0, frames.at(0).part], "step 0 opens at its beginning");
    }
    const { k, part } = frames.at(frames.opening(null));
    const first = frames.marked()[0];
    if (frames.wrt) assert.ok(part === "add" && (k > 0 || frames.steps.every((step) => step.first)));
    else assert.ok(first === undefined ? k === 0 : frames.frameOf[k] < first && part === "rescale");
    frames.setDetail(false);
    assert.equal(frames.at(frames.opening(null)).k, k);
  });

  test(`the story visits every step and every rescale, and ends: ${name}`, () => {
    const frames = make();
    const told = [];
    for (let frame = 0; frame < frames.last; frame = frames.next(frame)) told.push(frame);
    assert.ok(told.every((frame, n) => !n || frame > told[n - 1]) && frames.next(told.at(-1)) === frames.last);
    assert.deepEqual([...new Set(told.map((frame) => frames.at(frame).k))], [...frames.steps.keys()]);
    const rescaled = Array.from({ length: frames.last }, (_, frame) => frame).filter((frame) => frames.rescales(frame));
    assert.deepEqual(rescaled, frames.marked());
    assert.ok([...rescaled, ...frames.steps.map((_, k) => frames.frame(k, "add"))].every((frame) => told.includes(frame)));
  });

  test(`a peak is the largest finite size: ${name}`, () => {
    const { peaks, numbers, steps, inputs, N_q, d } = make();
    const most = (offset, length) => Math.max(...numbers.subarray(offset, offset + length).map(Math.abs));
    assert.equal(peaks.Q, most(inputs.Q, N_q * d));
    assert.equal(peaks.S, Math.max(...steps.map(({ S_ij, n_r, n_c }) => most(S_ij, n_r * n_c))));
  });
}

test("rows whose maximum grew are marked, not those that see their first score", () => {
  const frames = forward(SIZES[0], "fa2");
  const [step] = frames.steps;
  frames.numbers.set([-Infinity, 0, 1, 2], step.m_old);
  frames.numbers.set([5, 1, 1, 2], step.m);
  const again = new Frames({ ...sentBy(frames), buffer: new DataView(frames.numbers.buffer) });
  assert.deepEqual(again.steps[0].grown, [1]);
  assert.ok(again.marked().includes(again.parts.indexOf("rescale")) && again.telling(again.steps[0]) === 1);
});

/** What Python would have sent. */
function sentBy(frames) {
  const steps = frames.steps.map((step) => {
    const offsets = FORWARD.map((name) => step[name]);
    return [step.i, step.j, ...step.rows, ...step.cols, step.read, step.written, ...offsets];
  });
  return { ...frames, packed: FORWARD, steps };
}

test("a peak ignores numbers that are not finite", () => {
  const frames = forward(SIZES[1], "fa1");
  frames.numbers.set([NaN, -3, Infinity, -Infinity, 2], 0);
  assert.equal(frames.peak(0, 5), 3);
  assert.equal(frames.peak(0, 0), 0);
});

test("a row's bars are drawn against the largest size the row has in any step", () => {
  const frames = forward(SIZES[0], "fa2");
  for (let row = 0; row < frames.N_q; row++) {
    const own = frames.steps.filter(({ rows: [first, stop] }) => first <= row && row < stop);
    const sizes = own.map((step) => Math.abs(frames.row(step, row - step.rows[0]).l));
    assert.equal(frames.rowPeak("l", row), Math.max(...sizes));
  }
});

test("the errors of a frame are those before it adds, then those after", () => {
  const frames = backward(SIZES[0], "kv");
  const { numbers, errors, T } = frames;
  for (let frame = 0; frame < frames.last; frame++) {
    const at = frames.at(frame);
    const added = ["add", "store"].includes(at.part);
    const { block, whole, tiles } = frames.error(at);
    assert.equal(block, numbers[(added ? errors.after : errors.before) + at.k]);
    assert.deepEqual([whole, tiles], [numbers[errors.whole + at.k + Number(added)], at.k + Number(added)]);
  }
  assert.deepEqual(frames.error(frames.at(frames.last)), { block: undefined, whole: numbers[errors.whole + T], tiles: T });
});

test("spans, counts, lists and bytes in words", () => {
  assert.deepEqual([span("row", [4, 5]), span("row", [4, 8])], ["row 4", "rows 4–7"]);
  assert.deepEqual([0, 1].map((n) => counted(n, "step", "steps")), ["0 steps", "1 step"]);
  assert.deepEqual([[], ["dK"], ["dK", "dV"], ["a", "b", "c"]].map(andList), ["", "dK", "dK and dV", "a, b and c"]);
  assert.deepEqual([7, 999, 1000, 1234567].map(bytes), ["7 B", "999 B", "1\u202f000 B", "1\u202f234\u202f567 B"]);
});

test("a learner's steps open on the part that is wrong", () => {
  const at = (learner, step = null) => {
    const frames = forward(SIZES[0], "fa2", { errors: [], missed: [], ...learner });
    const { k, part } = frames.at(frames.opening(step));
    return [k, part];
  };
  assert.deepEqual(at({ first: [3, "m", 2], O: [1, 0] }), [3, "maximum"]);
  assert.deepEqual(at({ first: [3, "l", 2], O: [1, 0] }), [3, "add"]); // though this step stores, too
  assert.deepEqual(at({ first: [3, "O_acc", 2], O: [1, 0] }, 3), [3, "add"]);
  assert.deepEqual(at({ first: [3, "m", 2], O: [1, 0] }, 5), [5, "add"]); // the requested step
  assert.deepEqual(at({ first: null, O: [1, 5] }), [7, "store"]); // the last step of the block of row 5
});

test("another tiling is shown at the same progress, and in the same part", () => {
  const sizes = { N_q: 8, N_k: 8, d: 2, B_r: 4 };
  const [fine, coarse] = [2, 8].map((B_c) => forward({ ...sizes, B_c }, "fa2")); // 8 steps, 2 steps
  const near = (from, to, k, part) => {
    const { k: step, part: now } = to.at(to.near({ k, part }, from.T));
    return [step, now];
  };
  assert.deepEqual([0, 3, 4, 7].map((k) => near(fine, coarse, k, "rescale")), [0, 0, 1, 1].map((k) => [k, "rescale"]));
  assert.deepEqual([0, 1].map((k) => near(coarse, fine, k, "add")), [[0, "add"], [4, "add"]]);
  assert.deepEqual(near(coarse, fine, 0, "store"), [0, "add"]); // this step stores nothing
  for (let frame = 0; frame < fine.last; frame++) assert.equal(fine.near(fine.at(frame), fine.T), frame);
});

test("O fills as rows are stored, and of the same inputs it is compared with another tiling's", () => {
  const sizes = { N_q: 8, N_k: 6, d: 2, B_r: 4 };
  const [frames, other] = [2, 3].map((B_c) => forward({ ...sizes, B_c }, "fa2"));
  const stores = frames.writes.map(([after]) => after);
  assert.deepEqual(stores, [2, 5]);
  const filled = [-1, 1, 2, 4, 5, frames.T].map((done) => frames.outputAfter(done).filter((x) => !Number.isNaN(x)).length);
  assert.deepEqual(filled, [0, 0, 8, 8, 16, 16]);
  const most = frames.outputAfter(6).reduce((most, x, k) => Math.max(most, Math.abs(x - other.outputAfter(4)[k])), 0);
  assert.ok(most > 0); // these are drawn
  assert.equal(frames.differenceOfO(other.result()), most);
  assert.equal(frames.differenceOfO(frames.result()), 0);
  assert.equal(frames.differenceOfO(forward({ ...sizes, N_k: 7, B_c: 2 }, "fa2").result()), undefined);
  const changed = frames.result();
  changed.inputs[2][3] += 1e-9;
  assert.equal(frames.differenceOfO(changed), undefined);
});

test("rows and keys are called by their words, rows of Q by the last of them", () => {
  const frames = forward(SIZES[0], "fa2");
  assert.deepEqual([frames.rowName(2), frames.keyName(9)], ["Row 2", "key 9"]);
  const words = [..."abcdefghijk"]; // of 11 keys; 7 rows of Q
  const named = forward(SIZES[0], "fa2", null, words);
  assert.deepEqual([named.rowName(2), named.keyName(9)], ["Row 2 (g)", "key 9 (j)"]);
});
