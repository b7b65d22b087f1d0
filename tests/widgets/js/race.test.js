// TripsPlayer: both sides on one clock of bytes, and what is said of their trips.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Race } from "../../../flashlib/widgets/trips_player/race.js";
import { compared, flashWords, roomWords, standardWords } from "../../../flashlib/widgets/trips_player/words.js";
import { labs } from "./sent.js";

const BOTH = ["standard", "flash"];
const races = (words, run) => {
  for (const name of ["trips", "one trip"]) test(`${words}: ${name}`, () => run(new Race(labs[name]), labs[name]));
};
const positions = (race) => Array.from({ length: race.last + 1 }, (_, position) => position);
const bytesOf = ({ moves }) => moves.reduce((sum, [, , , bytes]) => sum + bytes, 0);

races("a position ends where a trip does, and the clock only grows", (race, sent) => {
  const ends = BOTH.flatMap((name) => sent[name].trips.map((_, k, all) => all.slice(0, k + 1).reduce((sum, trip) => sum + bytesOf(trip), 0)));
  let before = 0;
  for (const position of positions(race).slice(0, -1)) {
    const [from, to] = race.span(position);
    assert.equal(from, before);
    assert.ok(to > from && ends.includes(to));
    before = to;
  }
  assert.deepEqual(race.span(race.last), [Math.max(...ends), Math.max(...ends)]);
});

races("each trip of a side goes all its way, one after another", (race, sent) => {
  for (const name of BOTH) {
    let [k, way] = [0, 0];
    for (const position of positions(race)) {
      const now = race.underWay(name, position);
      if (!now) continue;
      assert.equal(now.k, k);
      assert.equal(now.from, way);
      assert.ok(now.to > way && now.to <= 1);
      [k, way] = now.to === 1 ? [k + 1, 0] : [k, now.to];
    }
    assert.deepEqual([k, way], [sent[name].trips.length, 0]);
    assert.equal(race.underWay(name, race.last), undefined);
  }
});

races("both have moved as much as each other until one is done", (race, sent) => {
  const totals = Object.fromEntries(BOTH.map((name) => [name, sent[name].trips.reduce((sum, trip) => sum + bytesOf(trip), 0)]));
  for (const position of positions(race)) {
    const [a, b] = BOTH.map((name) => race.moved(name, position));
    assert.ok(a === b || Math.min(a, b) === Math.min(totals.standard, totals.flash));
  }
  for (const name of BOTH) assert.equal(race.moved(name, race.last), totals[name]);
});

races("what has arrived is what the trips before moved", (race, sent) => {
  for (const name of BOTH)
    for (const position of positions(race)) {
      const count = race.arrived(name, position).length;
      const moved = sent[name].trips.slice(0, count).reduce((sum, trip) => sum + bytesOf(trip), 0);
      assert.ok(moved <= race.moved(name, position));
    }
});

races("the chip holds what a pass works on, and nothing once it has stored", (race) => {
  const [standard, flash] = BOTH.map((name) => race.sides[name].trips);
  const held = (trips, when) => trips.map((trip) => [...trip[when].keys()].sort().join(" "));
  assert.deepEqual(held(standard, "after"), ["K Q S", "", "P S lse", "", "O P V", ""]);
  assert.deepEqual(held(standard, "before"), ["", "K Q", "", "S", "", "P V"]);
  flash.forEach(({ loads, before, after }, k) => {
    assert.equal([...after.keys()].sort().join(" "), loads ? "K_j O_acc P_ij Q_i S_ij V_j" : "");
    const kept = loads ? (flash[k - 1]?.loads ? "O_acc Q_i" : "") : "K_j P_ij Q_i S_ij V_j";
    assert.equal([...before.keys()].sort().join(" "), kept);
  });
});

races("a tile on the chip has the rows of Q and the columns of K", (race, { setting: { N, d } }) => {
  for (const { loads, after } of race.sides.flash.trips) {
    if (!loads) continue;
    const [Q, K, S, P, O] = ["Q_i", "K_j", "S_ij", "P_ij", "O_acc"].map((place) => after.get(place));
    assert.deepEqual([Q.cols, K.cols, O.cols, O.rows], [d, d, d, Q.rows]);
    for (const tile of [S, P]) assert.deepEqual([tile.rows, tile.cols], [Q.rows, K.rows]);
    const dot = (r, c) => Array.from({ length: d }, (_, k) => race.numbers[Q.offset + r * d + k] * race.numbers[K.offset + c * d + k]).reduce((a, b) => a + b);
    const last = [S.rows - 1, S.cols - 1];
    assert.ok(Math.abs(race.numbers[S.offset + S.rows * S.cols - 1] - dot(...last) / Math.sqrt(d)) < 1e-5);
  }
  assert.ok(Object.values(race.peaks).every((peak) => peak > 0 && peak < 100) && N);
});

races("the marks are where standard attention's trips begin", (race) => {
  const starts = race.starts();
  assert.equal(starts.length, 6);
  starts.forEach((position, k) => {
    assert.equal(race.underWay("standard", position).k, k);
    assert.equal(race.underWay("standard", position).from, 0);
  });
});

races("each trip is named, with its bytes, and so is the end", (race) => {
  const plain = (text) => text.replaceAll("\u202f", "");
  for (const position of positions(race).slice(0, -1)) {
    for (const [name, words] of [["standard", standardWords], ["flash", flashWords]]) {
      const way = race.underWay(name, position);
      const said = plain(words(race, way));
      if (!way) assert.match(said, /^Finished/);
      else {
        assert.ok(said.startsWith(`Trip ${way.k + 1} of its ${race.sides[name].trips.length}`), said);
        const soFar = `, ${Math.round(way.to * way.trip.bytes)} B of ${way.trip.bytes} B so far`;
        assert.ok(said.includes(way.to < 1 ? soFar : `, ${way.trip.bytes} B`), said);
        assert.ok(way.trip.flights.every((flight) => said.includes(flight.name)), said);
      }
    }
  }
  assert.match(standardWords(race, undefined), /4 of the 6 trips carried S or P: \d+ % of all bytes/);
  const times = (race.sides.standard.total / race.sides.flash.total).toPrecision(3).replace(/\.?0+$/, "");
  assert.ok(compared(race).startsWith(`Standard attention moves ${times} times as many bytes as FlashAttention, `));
});

test("what does not fit on the chip is worked on in parts", () => {
  const plain = (text) => text.replaceAll("\u202f", "");
  assert.equal(plain(roomWords(3072, 1536)), "3072 B do not fit into 1536 B: it works in parts");
  assert.equal(plain(roomWords(1536, 1536)), "needs 1536 B of its 1536 B");
  assert.equal(plain(roomWords(0, 1536)), "holds 1536 B");
});

test("a chip that holds the whole pass is not called too small", () => {
  const said = (name) => standardWords(new Race(labs[name]), { k: 1, trip: new Race(labs[name]).sides.standard.trips[1], from: 0, to: 1 });
  assert.match(said("one trip"), /It would fit/);
  assert.match(said("trips"), /It cannot stay: the pass needs 2\u202f268 B, the chip holds 1\u202f536 B/);
});
