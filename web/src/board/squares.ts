/** The cells of a board and the moves that a click or two choose; no elements. */

import type { LegalMove } from "../protocol";

export type Point = [number, number];

const keyOf = ([x, y]: Point): string => `${x.toFixed(2)},${y.toFixed(2)}`;

export interface Cell {
  key: string;
  point: Point;
}

export class Squares {
  readonly cells = new Map<string, Cell>();
  /** Moves by their first and last cell, and moves without cells. */
  private readonly moves = new Map<string, LegalMove[]>();
  readonly unplaced: LegalMove[];
  /** Whether moves go from one cell to another. */
  readonly travels: boolean;

  constructor(readonly legal: LegalMove[]) {
    this.unplaced = legal.filter((move) => move.cells.length === 0);
    this.travels = legal.some((move) => move.cells.length > 1);
    for (const move of legal) {
      if (!move.cells.length) continue;
      for (const point of move.cells) this.cells.set(keyOf(point), { key: keyOf(point), point });
      const ends = this.ends(move);
      this.moves.set(ends, [...(this.moves.get(ends) ?? []), move]);
    }
  }

  private ends(move: LegalMove): string {
    const from = keyOf(move.cells[0]);
    return move.cells.length > 1 ? `${from} ${keyOf(move.cells[move.cells.length - 1])}` : from;
  }

  /** Cells where a move can begin. */
  get sources(): Set<string> {
    return new Set(this.legal.filter((move) => move.cells.length).map((move) => keyOf(move.cells[0])));
  }

  /** Cells where moves from a cell can end. */
  targets(from: string): Set<string> {
    const ends = [...this.moves.keys()].filter((key) => key.startsWith(`${from} `));
    return new Set(ends.map((key) => key.slice(from.length + 1)));
  }

  /** The moves from one cell to another, or on one cell; more than one where the player has to choose. */
  between(from: string, to?: string): LegalMove[] {
    return this.moves.get(to === undefined ? from : `${from} ${to}`) ?? [];
  }
}
