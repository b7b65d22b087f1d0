// The size of the cells of a matrix.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cellsIn, heatWidth } from "../../../flashlib/widgets/flash_player/matrix.js";

test("cells with numbers fit into their room, or there are none", () => {
  for (const room of [100, 333, 632])
    for (let rows = 1; rows < 9; rows++)
      for (let cols = 1; cols < 31; cols++) {
        const cell = cellsIn(room, rows, cols);
        if (!cell) assert.ok(room / cols < 27 || 92 / rows < 16);
        else assert.ok(cell.width * cols <= room && cell.height * rows <= 92);
        if (cell) assert.ok(cell.width >= 27 && cell.height >= 16);
      }
  for (const cols of [1, 2, 3, 5, 64, 89, 1000]) assert.ok(heatWidth(cols) <= Math.max(88, cols));
});
