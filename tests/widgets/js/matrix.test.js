// A matrix shows the number under the pointer, even if its tile is smaller than its room.

import assert from "node:assert/strict";
import test from "node:test";

import "./dom.js";
import { Matrix } from "../../../flashlib/widgets/flash_player/matrix.js";
import { exact } from "../../../flashlib/widgets/shared/number_text.js";

test("the number under the pointer is that of the tile, and outside it there is none", () => {
  const room = { rows: 4, cols: 5, width: 20, height: 10, numbers: false };
  const matrix = new Matrix("S_ij", room);
  matrix.element.getBoundingClientRect = () => ({ top: 7, left: 3, width: 100, height: 40 });
  const data = Float64Array.from({ length: 12 }, (_, k) => k / 8);
  matrix.shown = { data, offset: 2, rows: 3, cols: 2 };
  for (let r = 0; r < room.rows; r++)
    for (let c = 0; c < room.cols; c++) {
      matrix.element.pointermove({ clientX: 3 + 20 * c + 9, clientY: 7 + 10 * r + 4 });
      const inside = r < 3 && c < 2;
      assert.equal(matrix.element.title, inside ? `[${r}, ${c}]: ${exact(data[2 + 2 * r + c])}` : "");
    }
});
