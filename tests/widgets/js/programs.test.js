// ProgramsLab: where programs, elements and runs of memory are drawn.

import assert from "node:assert/strict";
import test from "node:test";

import { numbersIn } from "./dom.js";
import { labs } from "./sent.js";
import { frameOf } from "../../../flashlib/widgets/programs_lab/frame.js";
import { fold, layOut, longAxes, windowOf } from "../../../flashlib/widgets/programs_lab/layout.js";
import { Matrix } from "../../../flashlib/widgets/programs_lab/matrix.js";
import { ownersOf, placesOf, runsOf } from "../../../flashlib/widgets/programs_lab/places.js";

const gridOf = (shown, first = [0, 0, 0]) => {
  const programs = [];
  const range = (axis) => Array.from({ length: shown[axis] }, (_, k) => first[axis] + k);
  for (const z of range(2)) for (const y of range(1)) for (const x of range(0)) programs.push({ number: [x, y, z] });
  return { programs, grid: { shown, first, whole: shown, words: "" } };
};

test("a grid: no program on another, the first axis down, the second across", () => {
  for (const shown of [[1, 1, 1], [7, 1, 1], [256, 1, 1], [1, 5, 1], [4, 3, 1], [2, 3, 4], [3, 85, 1]])
    for (const room of [100, 270, 900]) {
      const { programs, grid } = gridOf(shown, [2, 0, 1]);
      const { at, size } = layOut(programs, grid, room);
      assert.equal(new Set(at.map(({ x, y }) => `${x},${y}`)).size, programs.length);
      assert.ok(at.every(({ x, y }) => x >= 0 && y >= 0 && x + size <= room));
    }
  const { programs, grid } = gridOf([4, 3, 1]);
  const { at, size } = layOut(programs, grid, 270);
  assert.deepEqual(at[programs.findIndex(({ number }) => String(number) === "2,1,0")], { x: size, y: 2 * size });
  assert.deepEqual(longAxes(gridOf([1, 1, 1]).grid), [0]);
  assert.deepEqual(longAxes(gridOf([1, 4, 2]).grid), [1, 2]);
});

test("a vector folds to a power of two, and a window holds what is looked at", () => {
  assert.deepEqual([fold(12, 300, 24), fold(16, 300, 24), fold(100, 30, 24), fold(0, 300, 24)], [12, 8, 1, 1]);
  assert.deepEqual(windowOf([0, 10], [3, 5], 24), [0, 10]);
  for (const seen of [[0, 4], [50, 60], [96, 100], [10, 90]]) {
    const [from, to] = windowOf([0, 100], seen, 24);
    assert.equal(to - from, 24);
    assert.ok(from >= 0 && to <= 100 && from <= seen[0] && to >= Math.min(seen[1], seen[0] + 24), String(seen));
  }
});

test("a place that is not in a vector is not drawn on its first element", () => {
  const vector = { name: "x_ptr", shape: [3], strides: [2], rows: 1, columns: 3, span: [0, 5], around: [0, 1, 0, 3] };
  const outside = { offset: 6, state: 0, row: -1000, column: 0 };
  const { place } = frameOf(vector, [outside], 300);
  assert.deepEqual([place(outside.row, outside.column), place(0, 0)], [null, [0, 0]]);
});

test("offsets as runs, from low to high", () => {
  assert.deepEqual(runsOf([5, 3, 4, 9, 3, -7, 30], 0, 20), [[3, 6], [9, 10]]);
  assert.deepEqual(runsOf([], 0, 20), []);
});

for (const name of ["programs", "vector"])
  test(`an element is drawn once, with its offset, and what is touched is lit where it is: ${name}`, () => {
    const { buffer, accesses, tensors } = labs[name];
    const all = new Int32Array(buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength));
    for (const access of accesses) {
      const [matrix, places, tensor] = [new Matrix(access.kind), placesOf(access, all), tensors[access.tensor]];
      matrix.draw(tensor, access, places, ownersOf(accesses.filter(({ line }) => line === access.line), all), 420);
      const boxes = (d) => (d.match(/M[^z]*z/g) ?? []).map((box) => numbersIn(box).slice(0, 2).join());
      const cells = boxes(matrix.cells.getAttribute("d"));
      assert.equal(cells.length, tensor.rows * tensor.columns);
      assert.equal(new Set(cells).size, cells.length);
      const lit = Object.fromEntries(Object.entries(matrix.marks).map(([mark, path]) => [mark, boxes(path.getAttribute("d"))]));
      const count = (state) => places.filter((place) => place.state === state).length;
      assert.deepEqual([lit[access.kind].length, lit.masked.length, lit.wrong.length], [count(1), count(0), count(2) + count(3)]);
      assert.ok(lit[access.kind].every((box) => cells.includes(box)));
      const beyond = boxes(matrix.beyond.getAttribute("d"));
      assert.ok(beyond.every((box) => !cells.includes(box)));
      const edges = matrix.edges.getAttribute("d").split("M").length - 1;
      assert.equal(edges, name === "vector" ? 1 : 6 + 7);
    }
  });
