// Axes, and the places of the nodes of a merge.

import assert from "node:assert/strict";
import test from "node:test";

import { doublings, logarithmic, ticksOf } from "../../../flashlib/widgets/split_lab/axes.js";
import { placesOf } from "../../../flashlib/widgets/split_lab/merges.js";
import { drawn } from "./helpers.js";

test("ticks are round, inside, and as many as there is room for", () => {
  const ends = drawn(200, (draw) => [10 ** (6 * draw() - 3), 1 + 50 * draw()]);
  for (const [low, factor] of ends) {
    const ticks = ticksOf(low, low * factor);
    assert.ok(ticks.length <= 7 && ticks.every((x) => x >= low && x <= low * factor));
    assert.deepEqual(ticks, [...ticks].sort((a, b) => a - b));
  }
  assert.deepEqual(ticksOf(3, 70), [5, 10, 20, 50]);
});

test("doublings reach as far as possible, with every second one if there are many", () => {
  for (let most = 1; most < 3000; most += 7) {
    const all = doublings(most);
    assert.ok(all[0] === 1 && all.every((x) => x <= most && Number.isInteger(Math.log2(x))));
    assert.ok(all.at(-1) * (all.length > 1 && all[1] === 4 ? 4 : 2) > most);
  }
  assert.deepEqual([doublings(257), doublings(600)], [[1, 2, 4, 8, 16, 32, 64, 128, 256], [1, 4, 16, 64, 256]]);
});

test("a logarithmic place goes from one end to the other, equal ratios equally far", () => {
  const place = logarithmic(3, 48, 10, 90);
  assert.deepEqual([3, 6, 12, 24, 48].map((x) => Math.round(1e9 * place(x)) / 1e9), [10, 30, 50, 70, 90]);
  assert.equal(logarithmic(5, 5, 10, 90)(5), 10);
});

test("a node of a tree is between its children, of a row below the part that it adds", () => {
  const middles = [1, 3, 5, 9, 11]; // five parts: ((0 1) (2 3)) 4
  const children = [[0, 1], [2, 3], [5, 6], [7, 4]];
  const nodes = { children, levels: [0, 0, 0, 0, 0, 1, 1, 2, 3] };
  const at = placesOf(nodes, "tree", middles, 100, 20);
  children.forEach(([a, b], k) => assert.equal(at[5 + k][0], (at[a][0] + at[b][0]) / 2));
  assert.deepEqual(at.map(([, y]) => y), [100, 100, 100, 100, 100, 120, 120, 140, 160]);
  const row = placesOf({ children: [[0, 1], [5, 2], [6, 3], [7, 4]], levels: [] }, "row", middles, 100, 20);
  assert.deepEqual(row.slice(5), [[3, 120], [5, 120], [9, 120], [11, 120]]);
});
