// What widgets draw where nothing is even: blocks of two sizes, the last one cut, more numbers than are shown.

import assert from "node:assert/strict";
import test from "node:test";

import { numbersIn, STILL, within } from "./dom.js";
import { labs } from "./sent.js";
import { Maps } from "../../../flashlib/widgets/eight_bits_lab/maps.js";
import { Score } from "../../../flashlib/widgets/eight_bits_lab/score.js";
import { RunningSum } from "../../../flashlib/widgets/eight_bits_lab/sums.js";
import { unpackLab } from "../../../flashlib/widgets/eight_bits_lab/unpack.js";
import { TileCounts } from "../../../flashlib/widgets/mask_lab/counts.js";
import { Scores as MaskScores } from "../../../flashlib/widgets/mask_lab/scores.js";
import { Scores } from "../../../flashlib/widgets/online_softmax_lab/charts.js";
import { Sum } from "../../../flashlib/widgets/online_softmax_lab/sum.js";
import { Strip } from "../../../flashlib/widgets/pages_lab/strip.js";
import { Tables } from "../../../flashlib/widgets/pages_lab/tables.js";
import { holders, outputOf } from "../../../flashlib/widgets/ring_player/standing.js";
import { ringFill } from "../../../flashlib/widgets/ring_player/look.js";
import { RingRow } from "../../../flashlib/widgets/ring_player/row.js";
import { RingScores } from "../../../flashlib/widgets/ring_player/scores.js";
import { float64, number } from "../../../flashlib/widgets/shared/numbers.js";
import { Account } from "../../../flashlib/widgets/split_lab/account.js";
import { Chip } from "../../../flashlib/widgets/split_lab/chip.js";
import { Times } from "../../../flashlib/widgets/split_lab/times.js";
import { Bytes } from "../../../flashlib/widgets/tiling_lab/bytes.js";
import { Cut } from "../../../flashlib/widgets/tiling_lab/cut.js";
import { Sram } from "../../../flashlib/widgets/tiling_lab/sram.js";

const near = (a, b, by = 0.02) => assert.ok(Math.abs(a - b) <= by, `${a}, not ${b}`);

test("MaskLab: a line on each edge of a tile, and the tiles by their rows and columns", () => {
  const { setting, kinds, ...result } = labs.mask;
  const { N_q, N_k, B_r, B_c } = setting;
  const scores = new MaskScores(() => {}, () => {});
  scores.take({ setting, kinds, ...result });
  const lines = scores.tiles.lines.getAttribute("d").split(/(?=M)/).map(numbersIn);
  const edges = (N, B) => Array.from({ length: Math.ceil(N / B) + 1 }, (_, k) => Math.min(k * B, N));
  const expected = [...edges(N_k, B_c).map((x) => [x * scores.wide, 0, N_q * scores.high]), ...edges(N_q, B_r).map((y) => [0, y * scores.high, N_k * scores.wide])];
  assert.deepEqual(lines, expected);
  const counts = new TileCounts();
  counts.draw({ setting, kinds, ...result });
  assert.equal(counts.all.textContent, `${edges(N_q, B_r).length - 1} × ${edges(N_k, B_c).length - 1}, of ${B_r} × ${B_c} scores`);
  near(counts.parts.reduce((sum, { style }) => sum + parseFloat(style.width), 0), 100);
});

for (const name of ["wide", "tall", "large"])
  test(`TilingLab: one tile in S, and its pieces in SRAM: ${name}`, () => {
    const result = labs[name];
    const { N, B_r, B_c, sram } = result;
    const [cut, held] = [new Cut(), new Sram()];
    for (const part of [cut, held]) part.draw(result);
    const [, , width, height] = numbersIn(cut.one.getAttribute("d"));
    near(width, (240 * Math.min(B_c, N)) / N);
    near(height, (240 * Math.min(B_r, N)) / N);
    for (const glass of within(cut.lens, "flash-tiling-one")) {
      const [, , x, y] = numbersIn(glass.getAttribute("d"));
      near(x / y, B_c / B_r); // in the two that are enlarged neither side is cut
    }
    for (const { name, bar } of held.pieces) near(parseFloat(bar.style.width), (100 * sram.pieces[name]) / Math.max(sram.held, sram.room));
    assert.equal(held.room.textContent.includes("in part empty"), B_r > N || B_c > N);
    const moved = new Bytes();
    moved.draw(result);
    const most = Math.max(...Object.values(result.traffic).map(({ total }) => total));
    for (const { name, read, written, level } of moved.rows)
      for (const [part, count] of [[read.style.width, result.traffic[name].read], [written.style.width, result.traffic[name].written], [level.style.left, result.traffic.standard.total]])
        near(parseFloat(part), (100 * count) / most);
  });

test("PagesLab: what happened to a page, whatever it was before", () => {
  for (const result of [labs.prompt, labs.forks]) {
    const { frames, names, setting } = result;
    const [strip, tables] = [new Strip(), new Tables()];
    for (const part of [strip, tables]) part.take(result);
    const freed = new Set();
    frames.forEach((frame, k) => {
      const before = frames[k - 1];
      strip.draw(frame, before, STILL);
      tables.draw(k);
      strip.cells.forEach(({ mark, rows }, page) => {
        assert.equal(rows.filter(({ names }) => names[0] === "flash-paging-written").length, frame.written.reduce((sum, [number, first, end]) => sum + (number === page ? end - first : 0), 0));
        const isFreed = Boolean(before) && before.state[page] !== "f" && frame.state[page] === "f";
        if (isFreed) freed.add(before.state[page]);
        assert.equal(mark.textContent === "given back", isFreed);
      });
      names.forEach((name, n) => {
        const bars = tables.rows[n].chips.slice(0, frame.tables[name]?.length ?? 0).map(({ bar }) => parseFloat(bar.style.width));
        near((bars.reduce((a, b) => a + b, 0) / 100) * setting.page, frame.tables[name] ? frame.lengths[name] : 0);
      });
    });
    assert.ok(freed.size > 0);
  }
});

test("SplitLab: tiles of a part that is not full, and the programs of each wave", () => {
  const { ranges, tile, chip } = labs.split;
  const states = Array.from({ length: 2 * ranges.length }, () => ({ m: 0, l: 1, O_acc: [1, 2, 3, 4] }));
  const account = new Account(() => {});
  ranges.forEach(([begin, end], k) => {
    account.draw(k, labs.split, states);
    let tiles = 0;
    for (let at = begin; at < end; at += tile) tiles++;
    assert.match(account.text[0], new RegExp(`, ${tiles} tiles?\\.`));
  });
  assert.ok(ranges.some(([begin, end]) => (end - begin) % tile));
  const picture = new Chip();
  picture.room = 400;
  picture.draw(labs.split);
  const next = picture.buttons[1];
  let programs = 0;
  for (let wave = 0; wave < chip.waves; wave++, next.click())
    programs += within(picture.svg, "flash-split-programs")[0].getAttribute("d").split("M").length - 1;
  assert.ok(chip.waves > 1 && chip.last < chip.places);
  assert.equal(programs, chip.programs);
});

test("SplitLab: the pieces of the time fill a bar, and each mark stands at its number of parts", () => {
  const { times, n } = labs.split;
  const picture = new Times();
  picture.room = 400;
  picture.draw(labs.split);
  near(picture.pieces.reduce((sum, { part }) => sum + parseFloat(part.style.width), 0), 100);
  const curve = within(picture.svg, "flash-split-curve")[0].getAttribute("d").split(/[ML]/).slice(1).map(numbersIn);
  const placeOf = (parts) => curve[times.curve.findIndex(([count]) => count === parts)];
  const now = within(picture.svg, "flash-split-now")[0];
  assert.deepEqual([Number(now.getAttribute("cx")), Number(now.getAttribute("cy"))], placeOf(n));
  const [x, y] = numbersIn(within(picture.svg, "flash-split-default")[0].getAttribute("d"));
  assert.deepEqual([x, y + 8].map(Math.round), placeOf(times.default).map(Math.round));
  assert.ok(n !== times.default);
});

test("EightBitsLab: the P that is drawn is the one that is told", () => {
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

test("RingPlayer: a block of S is as pale as its hop is late", () => {
  const result = labs.ring;
  const scores = new RingScores(() => {});
  const rank = [];
  result.tokens.forEach((own, r) => own.forEach((token) => (rank[token] = r)));
  scores.take(result, rank);
  for (const { path, r, source } of scores.blocks) {
    const hop = result.computes[r].find(([of]) => of === source)[1];
    assert.equal(path.getAttribute("style"), ringFill(r, hop, result.setting.ranks));
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
      near(across[0] * l_wrong[N - 1], l_wrong[j] - p[j] / 2, 1e-9); // in the middle of what is added
      sum.draw(j, "add", true, STILL);
      near(across[1] * Math.max(...l), l[j] - p[j] / 2, 1e-9);
    }
  });
