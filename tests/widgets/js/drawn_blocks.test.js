// What labs draw of blocks, pages and parts if no size divides another: two sizes, and a smaller last one.

import assert from "node:assert/strict";
import test from "node:test";

import { near, numbersIn, STILL, within } from "./dom.js";
import { labs } from "./sent.js";
import { TileCounts } from "../../../flashlib/widgets/mask_lab/counts.js";
import { Scores as MaskScores } from "../../../flashlib/widgets/mask_lab/scores.js";
import { Strip } from "../../../flashlib/widgets/pages_lab/strip.js";
import { Tables } from "../../../flashlib/widgets/pages_lab/tables.js";
import { Account } from "../../../flashlib/widgets/split_lab/account.js";
import { Chip } from "../../../flashlib/widgets/split_lab/chip.js";
import { Times } from "../../../flashlib/widgets/split_lab/times.js";
import { Bytes } from "../../../flashlib/widgets/tiling_lab/bytes.js";
import { Cut } from "../../../flashlib/widgets/tiling_lab/cut.js";
import { Sram } from "../../../flashlib/widgets/tiling_lab/sram.js";

test("MaskLab: a line on each edge of a tile, and the tiles by their rows and columns", () => {
  const { setting, kinds, ...result } = labs.mask;
  const { N_q, N_k, B_r, B_c } = setting;
  const scores = new MaskScores(() => {}, () => {});
  scores.take({ setting, kinds, ...result });
  const lines = scores.tiles.lines.getAttribute("d").split(/(?=M)/).map(numbersIn);
  const edges = (N, B) => Array.from({ length: Math.ceil(N / B) + 1 }, (_, k) => Math.min(k * B, N));
  const expected = [...edges(N_k, B_c).map((x) => [x * scores.wide, 0, N_q * scores.high]), ...edges(N_q, B_r).map((y) => [0, y * scores.high, N_k * scores.wide])];
  assert.deepEqual(lines, expected);
  const boxes = (name) => (scores.tiles[name].getAttribute("d").match(/M[^z]*z/g) ?? []).map(numbersIn);
  const cover = (name) => boxes(name).reduce((sum, [left, , right, high]) => sum + ((right - left) * high) / (scores.wide * scores.high), 0);
  const { all, computed, seen } = result.scores;
  [["computed", computed], ["hidden", all - computed], ["seen", seen]].forEach(([name, count]) => near(cover(name), count));
  const corners = boxes("corners").map(([right, top]) => [right / scores.wide, top / scores.high].map(Math.round));
  const cut = kinds.flatMap((row, i) => [...row].flatMap((kind, j) => (kind === "c" ? [[Math.min((j + 1) * B_c, N_k), i * B_r]] : [])));
  assert.deepEqual(corners, cut);
  for (const [group, side, from, N, B, size] of [[scores.columns, "x", 34, N_k, B_c, scores.wide], [scores.rows, "y", 42, N_q, B_r, scores.high]])
    for (const text of group.children.slice(1)) {
      const k = Number(text.textContent);
      near(Number(text.getAttribute(side)), from + ((k * B + Math.min((k + 1) * B, N)) / 2) * size);
    }
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
      near(x / y, B_c / B_r); // neither side of the two enlarged ones is cut
    }
    for (const { name, bar } of held.pieces) near(parseFloat(bar.style.width), (100 * sram.pieces[name]) / Math.max(sram.held, sram.room));
    near(parseFloat(held.limit.style.left), (100 * sram.room) / Math.max(sram.held, sram.room));
    assert.equal(held.room.textContent.includes("partly empty"), B_r > N || B_c > N);
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

test("SplitLab: the pieces of the time fill a bar, and each mark is at its number of parts", () => {
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
