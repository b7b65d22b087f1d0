import assert from "node:assert/strict";
import { test } from "node:test";
import { ringPlaces, ringPoint, ringWay } from "../../../flashlib/widgets/ring_player/paths.js";
import { ringTicks } from "../../../flashlib/widgets/ring_player/look.js";
import { holders, outputOf, positionAt, rowAtFirst, scoreRuns, standing, statesOf } from "../../../flashlib/widgets/ring_player/standing.js";

const RUN = {
  computes: [[[0, 0, 0, 3, 3], [1, 1, 5, 6, 1]], [[1, 0, 0, 2, 2]]],
  copies: [[1, 0, 1, 1, 5, 64], [0, 1, 0, 2, 2, 64]],
  held: [[[0, 0, 6], [1, 5, 6]], [[1, 0, 4]]],
  end: 6,
};

test("what is under way at a time", () => {
  const at = (time) => standing(RUN, time);
  assert.deepEqual(at(0), { done: [0, 0], now: [0, 0], flights: [], held: [[0], [1]] });
  assert.deepEqual(at(2), { done: [0, 1], now: [0, -1], flights: [{ copy: 0, way: 0.25 }], held: [[0], [1]] });
  assert.deepEqual(at(4), { done: [1, 1], now: [-1, -1], flights: [{ copy: 0, way: 0.75 }], held: [[0], []] });
  assert.deepEqual(at(5), { done: [1, 1], now: [1, -1], flights: [], held: [[0, 1], []] });
  assert.deepEqual(at(6), { done: [2, 1], now: [-1, -1], flights: [], held: [[0, 1], []] });
});

test("the last position up to a time", () => {
  const times = [0, 0.5, 2, 3];
  assert.deepEqual([-1, 0, 0.4, 0.5, 2.9, 3, 9].map((time) => positionAt(times, time)), [0, 0, 0, 1, 2, 3, 3]);
});

const random = (() => {
  let x = 12345;
  return (n) => (x = (x * 1103515245 + 12345) % 2147483648) % n;
})();

/** Tokens at random with P ranks, and which keys each row sees. */
function drawn(N, P) {
  const tokens = Array.from({ length: P }, () => []);
  for (let token = 0; token < N; token++) tokens[random(P)].push(token);
  const seen = Array.from({ length: N }, () => {
    const [a, b, c] = [random(N + 1), random(N + 1), random(N + 1)].sort((x, y) => x - y);
    return a < b && b + 1 < c ? [[a, b], [b + 1, c]] : a < c ? [[a, c]] : [];
  });
  return { tokens, seen };
}

for (const [N, P] of [[1, 2], [7, 2], [13, 5], [37, 8]]) {
  test(`runs of ${N} tokens on ${P} ranks cover each seen score once, with the ranks of its row and key`, () => {
    const { tokens, seen } = drawn(N, P);
    const { rank, place } = holders(tokens);
    tokens.forEach((own, r) => own.forEach((token, k) => assert.deepEqual([rank[token], place[token]], [r, k])));
    const covered = scoreRuns(seen, rank).flatMap(([row, first, count, r, source]) =>
      Array.from({ length: count }, (_, k) => {
        assert.deepEqual([rank[row], rank[first + k]], [r, source]);
        return row * N + first + k;
      }),
    );
    const wanted = seen.flatMap((ranges, row) => ranges.flatMap(([a, b]) => Array.from({ length: b - a }, (_, k) => row * N + a + k)));
    assert.deepEqual(covered, wanted);
  });

  test(`States of ${N} rows on ${P} ranks are where Python packs them`, () => {
    const { tokens } = drawn(N, P);
    const [D, times] = [3, tokens.map(() => 1 + random(4))];
    const numbers = [];
    tokens.forEach((own, r) => {
      for (let k = 0; k < times[r]; k++) for (const token of own) numbers.push(token, k, ...Array.from({ length: D }, (_, c) => 100 * token + 10 * k + c));
    });
    for (let row = 0; row < N; row++) numbers.push(row, row + 0.25, row + 0.5);
    for (let row = 0; row < N; row++) numbers.push(-row);
    const result = { tokens, D, computes: times.map((n) => Array(n).fill([])), setting: { N } };
    const all = Float64Array.from(numbers);
    const { rank, place } = holders(tokens);
    for (let row = 0; row < N; row++) {
      const states = statesOf(result, all, rank[row], place[row]);
      assert.equal(states.length, times[rank[row]]);
      states.forEach(({ m, l, O_acc }, k) => {
        assert.deepEqual([m, l, ...O_acc], [row, k, 100 * row + 10 * k, 100 * row + 10 * k + 1, 100 * row + 10 * k + 2]);
      });
      const { O, lse } = outputOf(result, all, row);
      assert.deepEqual([...O, lse], [row, row + 0.25, row + 0.5, -row]);
    }
  });
}

for (let P = 2; P <= 8; P++) {
  test(`${P} ranks are on a circle, and two copies that cross do not meet`, () => {
    const places = ringPlaces(P, 100);
    assert.equal(places.length, P);
    for (let r = 0; r < P; r++) {
      const next = (r + 1) % P;
      const [there, back] = [ringWay(r, next, places, 35), ringWay(next, r, places, 35)];
      for (let k = 1; k < 10; k++) {
        const [x, y] = ringPoint(places[r], places[next], k / 10, there);
        const far = Array.from({ length: 11 }, (_, n) => ringPoint(places[next], places[r], n / 10, back)).map(([a, b]) => Math.hypot(x - a, y - b));
        assert.ok(Math.min(...far) > 10, `${r} to ${next}, ${k}: ${Math.min(...far)}`);
      }
    }
  });
}

for (let P = 2; P <= 8; P++) {
  test(`among ${P} ranks no copy's number is on the box that it leaves or enters`, () => {
    for (const high of [35, 50]) {
      const places = ringPlaces(P, 140);
      for (const [from, a] of places.entries())
        for (const [to, b] of places.entries()) {
          if (from === to) continue;
          const way = ringWay(from, to, places, high);
          assert.ok(way.start < way.stop, `${from} to ${to} stands still`);
          for (let k = 0; k <= 50; k++)
            for (const [x, y] of [a, b]) {
              const [at_x, at_y] = ringPoint(a, b, k / 50, way);
              assert.ok(Math.abs(at_x - x) >= 36 || Math.abs(at_y - y) >= high / 2 + 4, `${from} to ${to}, ${k}`);
            }
        }
    }
  });
}

test("ticks are round, evenly spaced, from 0 to the end, and not too many", () => {
  for (const end of [0.03, 0.7, 1, 7.4, 12.6, 34, 58, 640, 2560]) {
    for (const most of [6, 11]) {
      const ticks = ringTicks(end, most);
      assert.ok(ticks.length >= 2 && ticks.length <= most + 1, `${end}: ${ticks}`);
      assert.equal(ticks[0], 0);
      assert.ok(ticks.at(-1) <= end + 1e-9 && ticks.at(-1) + ticks[1] > end);
    }
  }
  assert.deepEqual(ringTicks(0, 6), [0]);
  assert.deepEqual(ringTicks(34, 11), [0, 5, 10, 15, 20, 25, 30]);
});

test("the row that is shown at first is the last whose sums were rescaled by then", () => {
  const run = { ...RUN, times: [0, 6], opens: 1, tokens: [[0, 1, 2], [3]], D: 1 };
  const of = { rank: [0, 0, 0, 1], place: [0, 1, 2, 0] };
  const ms = [[1, -Infinity, 4], [2, 5, 4], [7]]; // of rank 0 after each of its two turns, and of rank 1
  const numbers = Float64Array.from(ms.flat().flatMap((m) => [m, 1, 0]));
  assert.equal(rowAtFirst(run, numbers, of), 0, "row 1 saw nothing before, row 2 no larger score");
  assert.equal(rowAtFirst({ ...run, opens: 0 }, numbers, of), 3, "before a second turn: the last row");
});
