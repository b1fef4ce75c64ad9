/** Pure parts besides the tree: history of shares, sorting, cells of moves, numbers, back-off. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { splitPieces } from "../src/board/image";
import { Squares } from "../src/board/squares";
import { backOff } from "../src/connection";
import { compact, general, percent, signed, text, verdict } from "../src/format";
import { ShareHistory } from "../src/history";
import { sortRows, type Row } from "../src/panels/columns";
import { generator } from "./random";

test("the history is bounded, in order, and ends with the latest sample", () => {
  const history = new ShareHistory();
  for (let at = 1; at <= 5000; at++) {
    history.add(10 * at, at > 300 ? [[1, at / 5000], [2, 1 - at / 5000]] : [[1, 1]]);
    const { simulations } = history;
    assert.ok(simulations.length <= 513);
    assert.equal(simulations.at(-1), 10 * at);
    assert.equal(history.shares.get(1)?.at(-1), at > 300 ? at / 5000 : 1);
  }
  const { simulations } = history;
  for (let at = 1; at < simulations.length; at++) assert.ok(simulations[at] > simulations[at - 1]);
  for (const column of history.shares.values()) assert.equal(column.length, simulations.length);
  for (const [at, share] of (history.shares.get(1) ?? []).entries())
    if (simulations[at] > 3000) assert.equal(share, simulations[at] / 50_000);
  assert.deepEqual(history.leading(1), [1]);
});

test("the same number of simulations replaces the sample before", () => {
  const history = new ShareHistory();
  history.add(10, [[4, 0.5]]);
  history.add(10, [[4, 0.6]]);
  assert.deepEqual(history.simulations, [10]);
  assert.deepEqual(history.shares.get(4), [0.6]);
});

const row = (action: number, extra: Partial<Row>): Row => ({
  action, text: `m${action}`, visits: 0, share: 0, prior: null, clean_prior: null, network: null, q: null, u: null, score: null,
  proven: null, distance: null, line: [], rank: action, solved: null, ...extra,
});

test("rows sort by value both ways; those without one come last", () => {
  const random = generator(3);
  const rows = Array.from({ length: 50 }, (_, action) => row(action, { q: random() < 0.3 ? null : 2 * random() - 1 }));
  for (const descending of [true, false]) {
    sortRows(rows, "q", descending);
    const values = rows.map((each) => each.q);
    const known = values.filter((value) => value !== null);
    assert.deepEqual(values.slice(known.length), values.slice(known.length).map(() => null));
    assert.deepEqual(known, [...known].sort((a, b) => (descending ? b - a : a - b)));
  }
  sortRows(rows, "rank", true);
  assert.deepEqual(rows.map((each) => each.action), rows.map((_, place) => place));
});

test("proofs sort: short wins, long wins, draws, long losses, short losses", () => {
  const rows = [[-1, 2], [0, 0], [1, 9], [-1, 8], [1, 3]].map(([proven, distance], action) => row(action, { proven, distance }));
  sortRows(rows, "proven", true);
  assert.deepEqual(rows.map((each) => [each.proven, each.distance]), [[1, 3], [1, 9], [0, 0], [-1, 8], [-1, 2]]);
});

test("cells choose moves: placements, journeys, promotions, and moves without cells", () => {
  const squares = new Squares([
    { action: 1, text: "a", cells: [[10, 10]] },
    { action: 2, text: "bQ", cells: [[10, 30], [30, 30]] },
    { action: 3, text: "bN", cells: [[10, 30], [30, 30]] },
    { action: 4, text: "pass", cells: [] },
  ]);
  assert.deepEqual(squares.unplaced.map((move) => move.action), [4]);
  const [single, from, to] = [...squares.cells.keys()];
  assert.deepEqual(squares.between(single).map((move) => move.action), [1]);
  assert.deepEqual(squares.between(from, to).map((move) => move.action), [2, 3]);
  assert.deepEqual(squares.between(to), []);
  assert.deepEqual([...squares.targets(from)], [to]);
  assert.deepEqual([...squares.sources], [single, from]);
});

test("paths of pieces are split at their centres, others are left as they are", () => {
  const pieces = splitPieces("M50 150m-5 6.5h10zm1 1h2M10.5 -3m-1 0h4z");
  assert.deepEqual(pieces?.map(({ x, y }) => [x, y]), [[50, 150], [10.5, -3]]);
  assert.equal(pieces?.map(({ path }) => path).join(""), "M50 150m-5 6.5h10zm1 1h2M10.5 -3m-1 0h4z");
  assert.equal(splitPieces("M2 10a8 8 0 1 0 16 0"), null);
  assert.equal(splitPieces("M0 0h20v20h-20z"), null);
});

test("numbers are written for readers", () => {
  assert.equal(signed(0.1336), "+0.134");
  assert.equal(signed(-1), "−1.000");
  assert.equal(percent(0.8131), "81.3%");
  assert.equal(compact(9999), "9,999");
  assert.equal(compact(212_345), "212k");
  assert.equal(general(-1234567), "−1,234,567");
  assert.equal(general(0.00123456789), "0.00123457");
  assert.equal(text(null, signed), "–");
  assert.equal(verdict(1, 3), "win in 3");
  assert.equal(verdict(0, 0), "draw");
  assert.equal(verdict(null), "");
});

test("back-off doubles up to five seconds", () => {
  const delays = [0, 1, 2, 3, 4, 5, 9, 40].map((attempt) => backOff(attempt, 1));
  assert.deepEqual(delays, [250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
  assert.ok(backOff(3, 0) >= 0.75 * 2000);
});
