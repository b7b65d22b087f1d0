// What labs draw of numbers: if there are more than are shown, if zero is far away, if rows and columns differ.

import assert from "node:assert/strict";
import test from "node:test";

import { near, numbersIn, STILL, within } from "./dom.js";
import { labs } from "./sent.js";
import { Maps } from "../../../flashlib/widgets/eight_bits_lab/maps.js";
import { Score } from "../../../flashlib/widgets/eight_bits_lab/score.js";
import { RunningSum } from "../../../flashlib/widgets/eight_bits_lab/sums.js";
import { unpackLab } from "../../../flashlib/widgets/eight_bits_lab/unpack.js";
import { Scores } from "../../../flashlib/widgets/online_softmax_lab/charts.js";
import { Sum } from "../../../flashlib/widgets/online_softmax_lab/sum.js";
import { Axis } from "../../../flashlib/widgets/overflow_lab/picture.js";
import { COLUMNS, Table } from "../../../flashlib/widgets/overflow_lab/table.js";
import { holders, outputOf } from "../../../flashlib/widgets/ring_player/standing.js";
import { ringFill } from "../../../flashlib/widgets/ring_player/look.js";
import { RingRow } from "../../../flashlib/widgets/ring_player/row.js";
import { RingScores } from "../../../flashlib/widgets/ring_player/scores.js";
import { float64, number } from "../../../flashlib/widgets/shared/number_text.js";

test("EightBitsLab: the drawn P is the one in the sentence", () => {
  const result = labs.eight;
  const score = new Score(() => {});
  score.room = 400;
  assert.ok(result.shown < result.setting.N);
  score.draw({ row: result.rows - 1, key: 1, column: 0 }, result, unpackLab(result), true);
  assert.ok(score.text.some((line) => line.includes(number(score.plotted[1]))), score.text.join("\n"));
});

test("EightBitsLab: the sum of one query and column, and the mark on its number", () => {
  const [result, numbers] = [labs.eight, unpackLab(labs.eight)];
  const { rows, cols, shown, points } = result;
  const [row, column, key] = [rows - 3, 2, 5];
  assert.ok(rows !== cols && cols !== shown);
  const sum = new RunningSum(() => {});
  sum.room = 400;
  sum.draw({ row, column, key }, result, numbers, true);
  const path = numbersIn(within(sum.picture, "flash-eight-exact")[0].getAttribute("d"));
  const heights = path.filter((_, k) => k % 2);
  const last = numbers.unrounded.subarray((points - 1) * rows * cols); // of all queries and columns
  const first = numbers.unrounded;
  const at = row * cols + column;
  near((heights.at(-1) - heights[0]) * first[at], (heights[1] - heights[0]) * last[at], 0.05 * Math.abs(last[at]));
  const maps = new Maps(() => {});
  maps.drawScores(result, numbers, null);
  maps.drawOutput(result, numbers, null);
  maps.choose({ row, column, key }, result);
  for (const [map, wide, k] of [[maps.S, shown, key], [maps.weights, shown, key], [maps.O, cols, column]]) {
    const { left, top, width, height } = map.mark.style;
    [left, top, width, height].forEach((side, n) => near(parseFloat(side), 100 * [k / wide, row / rows, 1 / wide, 1 / rows][n]));
  }
});

test("RingPlayer: blocks of S are paler in later hops", () => {
  const result = labs.ring;
  const scores = new RingScores(() => {});
  const rank = [];
  result.tokens.forEach((own, r) => own.forEach((token) => (rank[token] = r)));
  scores.take(result, rank);
  for (const { path, r, source } of scores.blocks) {
    const hop = result.computes[r].find(([of]) => of === source)[1];
    assert.equal(path.getAttribute("style"), ringFill(r, hop, result.setting.ranks));
    const side = 256 / rank.length; // of a score, after the bands of ranks
    for (const [x, y] of path.getAttribute("d").split("z").filter(Boolean).map(numbersIn))
      assert.deepEqual([y, x].map((at) => rank[Math.round((at - 18) / side)]), [r, source]);
  }
  assert.equal(scores.blocks.length, 9);
});

test("RingPlayer: the last State of a row, with its alphas, is its O and lse", () => {
  const result = labs.ring;
  const numbers = float64(result.buffer);
  const row = new RingRow(() => {});
  const of = holders(result.tokens);
  for (const token of [0, 11, 29]) {
    row.take(result, numbers, token, of);
    const cells = row.rows.map((line) => line.children.map((cell) => Number(cell.getAttribute("title").replaceAll("−", "-").replace("∞", "Infinity"))));
    cells.reduce((before, now) => {
      near(now[2], Math.exp(before - now[3]), 1e-9);
      return now[3];
    }, -Infinity);
    const [, , , m, l, size] = cells.at(-1);
    const { O, lse } = outputOf(result, numbers, token);
    near(m + Math.log(l), lse, 1e-9);
    near(size / l, Math.hypot(...O), 1e-9);
  }
});

for (const name of ["high", "low", "around"])
  test(`OnlineSoftmaxLab: bars from the side on which zero is, and the sum at its size: ${name}`, () => {
    const { rows, N, buffer } = labs[name];
    const numbers = float64(buffer);
    const scan = { N, terms: numbers.subarray(rows.length * N), ...Object.fromEntries(rows.map((row, k) => [row, numbers.subarray(k * N, (k + 1) * N)])) };
    const { x, l, l_wrong, p } = scan;
    const heights = new Scores(scan).columns.map(({ area }) => within(area, "flash-online-bar")[0].getAttribute("style"));
    const [low, high] = [[], []];
    for (const style of heights) {
      const [from, size] = numbersIn(style);
      low.push(from);
      high.push(from + size);
    }
    const tops = Array.from(x, (value, k) => (value > 0 ? high[k] : low[k])); // at the number
    const feet = Array.from(x, (value, k) => (value > 0 ? low[k] : high[k])); // at zero
    assert.ok(Math.max(...feet) - Math.min(...feet) < 0.02);
    for (let k = 1; k < N; k++) near((tops[k] - tops[0]) * (x[1] - x[0]), (tops[1] - tops[0]) * (x[k] - x[0]), 0.2);
    const sum = new Sum(scan);
    for (let j = 0; j < N; j++) {
      const across = [];
      sum.tag.style.setProperty = (_, value) => across.push(value);
      sum.draw(j, "add", false, STILL);
      near(across[0] * l_wrong[N - 1], l_wrong[j] - p[j] / 2, 1e-9); // in the middle of the added term
      sum.draw(j, "add", true, STILL);
      near(across[1] * Math.max(...l), l[j] - p[j] / 2, 1e-9);
    }
  });

for (const name of ["overflow", "shifted"])
  test(`OverflowLab: bars from 1 to each term on the axis of the format, and all terms in the sum: ${name}`, () => {
    const result = labs[name];
    const { n, limits, range, shift, asked } = result;
    const numbers = float64(result.buffer);
    const columns = Object.fromEntries(COLUMNS.map((column, k) => [column, numbers.subarray(k * n, (k + 1) * n)]));
    ["m", "l", "l_safe", "naive_total", "safe_total", "log_l", "log_l_safe"].forEach((one, k) => (columns[one] = numbers[COLUMNS.length * n + k]));
    const [axis, table] = [new Axis(n, [], []), new Table(n)];
    for (const part of [axis, table]) part.draw(result, columns);
    const place = (x) => Math.max(0, Math.min(100, (100 * (x - shift - range[0])) / (range[1] - range[0])));
    const terms = Array.from(columns.x);
    const sum = Math.log(asked.copies * terms.reduce((all, x) => all + Math.exp(x), 0));
    axis.bars.forEach(({ bar, diamond }, k) => {
      const x = k < n ? terms[k] : sum;
      const ends = [place(x), place(0)].sort((a, b) => a - b);
      near(parseFloat(bar.style.left), ends[0], 0.05);
      near(parseFloat(bar.style.left) + parseFloat(bar.style.width), ends[1], 0.05);
      near(parseFloat(diamond.style.left), place(x - Math.max(...terms)), 0.05);
    });
    const { low, subnormal, normal, high } = axis.zones;
    [low, subnormal, normal, high].reduce((end, { style }) => {
      near(parseFloat(style.left), end);
      return end + parseFloat(style.width);
    }, 0);
    near(parseFloat(normal.style.left), place(limits.normal[0]));
    assert.equal(table.caption.textContent, `sum of ${n * asked.copies}`);
    COLUMNS.forEach((column, k) => near(table.values.reduce((sum, values) => sum + Number(values[k].element.getAttribute("title").replaceAll("−", "-").replace("inf", "Infinity")), 0), columns[column].reduce((a, b) => a + b, 0), 1e-9));
  });
