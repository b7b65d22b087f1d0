// How long motions may take.

import assert from "node:assert/strict";
import test from "node:test";

import { HOLD, Motion, motionTime, storyPace, storyTime } from "../../../flashlib/widgets/shared/motion.js";

const asked = (reduced) => () => ({ matches: reduced });

test("motion takes a share of a step, at most 350 ms, and no time if steps come fast", () => {
  globalThis.matchMedia = asked(false);
  assert.deepEqual([0.5, 1, 2, 5, 10, 30, 60].map(motionTime), [350, 350, 300, 120, 0, 0, 0]);
});

test("nothing moves for those who ask for reduced motion", () => {
  globalThis.matchMedia = asked(true);
  assert.deepEqual([0.5, 1, 2, 5, 10].map(motionTime), [0, 0, 0, 0, 0]);
});

test("in a story a rescale lasts two seconds, with a shrink of 700 ms, and every other part 0.4 s", () => {
  globalThis.matchMedia = asked(false);
  const rescales = (position) => position === 3;
  const [plain, flies] = [storyPace({ rescales }), storyPace({ rescales, flies: true, lasts: () => 900 })];
  assert.deepEqual([0, 3].map(plain.lasts), [400, 2000]);
  assert.deepEqual([0, 3].map(flies.lasts), [900, 2000]);
  assert.equal(storyTime(plain, 3), 700);
  assert.ok(Math.abs(storyTime(flies, 3) * (1 - HOLD) - 700) < 1e-9);
  assert.ok([plain, flies].every((pace) => storyTime(pace, 0) < 400));
  globalThis.matchMedia = asked(true);
  assert.ok([plain, flies].every((pace) => storyTime(pace, 3) === 0 && pace.lasts(3) === 2000));
});

test("a held motion begins after a share of the time", () => {
  const [motion, moving] = [new Motion(), element()];
  motion.begin(300, 0.25);
  motion.from(moving, { width: "20%" });
  assert.deepEqual(moving.played[0].looks, [{ width: "20%", offset: 0 }, { width: "20%", offset: 0.25 }]);
});

/** An element that records its animations. */
function element() {
  const played = [];
  const animate = (looks, { duration }) => {
    const animation = { looks, duration, cancelled: false, cancel: () => (animation.cancelled = true) };
    played.push(animation);
    return animation;
  };
  return { played, animate };
}

test("a motion is cut short by the next, with one notice", () => {
  const [motion, moving] = [new Motion(), element()];
  let ended = 0;
  motion.begin(300);
  motion.from(moving, { width: "20%" });
  motion.play(moving, [{}, {}], () => ended++);
  assert.deepEqual(moving.played.map(({ duration }) => duration), [300, 300]);
  assert.deepEqual(moving.played[0].looks, [{ width: "20%", offset: 0 }]);
  motion.begin(0);
  assert.ok(moving.played.every(({ cancelled }) => cancelled) && ended === 1);
  motion.from(moving, { width: "20%" });
  motion.begin(300);
  assert.ok(moving.played.length === 2 && ended === 1); // without time nothing moves
});
