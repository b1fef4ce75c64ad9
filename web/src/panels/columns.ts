/** The columns of the table of moves and their order; no elements. */

import type { MoveRow, Solved } from "../protocol";

export interface Row extends MoveRow {
  /** The place in the server's order: the best move first. */
  rank: number;
  solved: Solved["moves"][number] | null;
}

export interface Column {
  name: string;
  title: string;
  help: string;
  text?: boolean;
  /** Left out where no move has a value. */
  optional?: boolean;
  /** What the column is sorted by; null comes last. */
  value: (row: Row) => number | string | null;
}

const proof = (value: number | null | undefined, distance: number | null | undefined): number | null => {
  if (value === null || value === undefined) return null;
  // Short wins before long ones, long losses before short ones.
  return value - (Math.sign(value) * Math.min(distance ?? 0, 9999)) / 10_000;
};

export const COLUMNS: Column[] = [
  { name: "move", title: "Move", help: "The move", text: true, value: (row) => row.text },
  { name: "visits", title: "Visits", help: "Simulations through the move, N", value: (row) => row.visits },
  { name: "share", title: "Share", help: "Part of all visits", value: (row) => row.share },
  { name: "q", title: "Q", help: "Mean value of the simulations, for the player who moves, from -1 to 1", value: (row) => row.q },
  { name: "prior", title: "Prior", help: "Prior probability that selection uses, with noise", optional: true, value: (row) => row.prior },
  { name: "clean_prior", title: "Prior, clean", help: "Prior probability without noise", optional: true, value: (row) => row.clean_prior },
  { name: "network", title: "Network", help: "The evaluator's own value of the position after the move, for the player who moves", optional: true, value: (row) => row.network },
  { name: "u", title: "U", help: "Exploration term of the selection score", optional: true, value: (row) => row.u },
  { name: "score", title: "Score", help: "What selection compares", optional: true, value: (row) => row.score },
  { name: "proven", title: "Proof", help: "Exact result that the search has proven", optional: true, value: (row) => proof(row.proven, row.distance) },
  { name: "solved", title: "Exact", help: "Result of the exact solver", optional: true, value: (row) => proof(row.solved?.value, row.solved?.distance) },
  { name: "line", title: "Expected line", help: "Most visited replies", text: true, value: (row) => row.line.join(" ") },
];

/** Sorts rows by a column; "rank" is the server's order. Equal rows keep that order. */
export function sortRows(rows: Row[], name: string, descending: boolean): void {
  const column = COLUMNS.find((candidate) => candidate.name === name);
  const sign = descending ? -1 : 1;
  rows.sort((a, b) => {
    const [x, y] = column ? [column.value(a), column.value(b)] : [0, 0];
    if (x === y) return a.rank - b.rank;
    if (x === null) return 1;
    if (y === null) return -1;
    const order = typeof x === "string" ? x.localeCompare(String(y), "en", { numeric: true }) : x - Number(y);
    return sign * order || a.rank - b.rank;
  });
}
