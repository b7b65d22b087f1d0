import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, pipeTitle, playedAt, playedTimes, zoomed } from "../../../flashlib/widgets/pipeline_player/view.js";

const END = 1234;
const TIMES = [0, 1, 37, 600, 1200, END];
const VIEWS = [
  [0, END],
  [0, 20],
  [500, 900],
  [END - 20, END],
];

for (const view of VIEWS) {
  for (const at of TIMES) {
    test(`a view of [${view}] is zoomed around ${at}, and stays on the axis`, () => {
      for (const factor of [0.5, 2, 1 / 1000, 1000]) {
        const [from, to] = zoomed(view, factor, at, END);
        const wide = Math.min(END, Math.max(END / 64, (view[1] - view[0]) * factor));
        assert.ok(from >= 0 && to <= END + 1e-9 && Math.abs(to - from - wide) < 1e-9);
        assert.ok(from <= at && at <= to, "the time that is played is in it");
        if (from > 0 && to < END - 1e-9) assert.ok(Math.abs((from + to) / 2 - at) < 1e-9, "in its middle");
      }
    });

    test(`a view of [${view}] moves to ${at} and keeps its width`, () => {
      const [from, to] = moved(view, at, END);
      assert.ok(from >= 0 && to <= END + 1e-9 && Math.abs(to - from - (view[1] - view[0])) < 1e-9);
      assert.ok(from <= at && at <= to + 1e-9);
      if (from > 0 && to < END - 1e-9) assert.ok(Math.abs(at - from - 0.1 * (to - from)) < 1e-9, "near its left end");
    });
  }
}

test("clocks are played evenly, from the first to the last; actions one by one", () => {
  const times = playedTimes({ axis: "clocks", end: END, events: [0, 1, 2, END], opens: 0, programs: [] });
  assert.deepEqual([times[0], times[times.length - 1]], [0, END]);
  const steps = times.slice(1).map((time, k) => time - times[k]);
  assert.ok(Math.max(...steps) - Math.min(...steps) < 1e-9);
  const events = [0, 1, 2, 3];
  assert.deepEqual(playedTimes({ axis: "actions", end: 3, events, opens: 3, programs: [] }), events);
  assert.deepEqual(playedTimes({ axis: "clocks", end: 0, events: [0], opens: 0, programs: [] }), [0]);
});

test("everything is played in half a minute, and no faster than necessary", () => {
  const speeds = [0.5, 1, 2, 5, 10];
  assert.deepEqual([1, 60, 61, 121, 150, 151, 999].map((count) => playedAt(count, speeds)), [2, 2, 5, 5, 5, 10, 10]);
});

test("the title of several programs says how long each took, if all finished", () => {
  const program = (end, rows = [{}]) => ({ end, rows });
  const title = (...programs) => pipeTitle({ axis: "clocks", programs })[0];
  assert.equal(title(program(41892.4), program(27420.6)), "The same work in 2 ways: 41892 and 27421 clocks");
  assert.ok(title(program(1), program(2), program(3)).endsWith("in 3 ways: 1, 2 and 3 clocks"));
  assert.equal(title(program(41892), program(0, [])), "The same work in 2 ways");
  assert.ok(!/\d/.test(title(program(5))));
  const attends = [{ spans: [["product", "PV3", 0, 1, 0]] }];
  assert.equal(title(program(3, attends), program(2, attends)), "Attention in 2 ways: 3 and 2 clocks");
  assert.equal(title(program(3, attends), program(2)), "The same work in 2 ways: 3 and 2 clocks");
  assert.ok(title(program(3, attends)).includes("attention") && !title(program(3)).includes("attention"));
});
