/** What the search thinks, drawn over the board: arrows for moves, discs for placements. */

import { svg } from "../dom";
import { percent, signed, verdictSign } from "../format";
import type { LegalMove, MoveRow } from "../protocol";
import type { Overlay } from "../store";

const MOST_ARROWS = 7;
const LEAST_SHARE = 0.01;
const BEST = "#d9930f";
const OTHER = "#1f6a60";
const LOSS = "#b5431f";

export interface Entry {
  row: MoveRow;
  move: LegalMove;
  /** From 0 to 1: how strongly the move is drawn. */
  strength: number;
  label: string;
  colour: string;
}

/** The moves to draw, weakest first so that the best lies on top. */
export function entries(legal: LegalMove[], rows: MoveRow[], overlay: Overlay, only: number | null): Entry[] {
  const byAction = new Map(legal.map((move) => [move.action, move]));
  const best = rows[0]?.action;
  const found: Entry[] = [];
  for (const row of rows) {
    const move = byAction.get(row.action);
    if (!move?.cells.length || (only !== null && row.action !== only)) continue;
    const entry = { row, move, colour: row.action === best ? BEST : OTHER };
    if (overlay === "q" || (overlay === "none" && only !== null)) {
      const value = row.proven ?? row.q;
      if (value === null) continue;
      const label = row.proven === null ? signed(value).replace("0.", ".").slice(0, 4) : verdictSign(row.proven);
      found.push({ ...entry, strength: (value + 1) / 2, label, colour: row.action === best ? BEST : value < 0 ? LOSS : OTHER });
    } else {
      const share = overlay === "prior" ? row.prior : row.share;
      if (row.action === best && row.proven === 1 && row.visits === 0) {
        // Proven before the first simulation.
        found.push({ ...entry, strength: 1, label: verdictSign(1) });
        continue;
      }
      if (share === null || (share < LEAST_SHARE && only === null)) continue;
      found.push({ ...entry, strength: share, label: share < 0.01 ? "<1" : percent(share).replace(/\.\d/, "") });
    }
  }
  found.sort((a, b) => b.strength - a.strength);
  const kept = found.slice(0, found.some(({ move }) => move.cells.length > 1) ? MOST_ARROWS : undefined);
  return kept.reverse();
}

/** Draws the entries; `size` is the distance between cells, `turn` maps points of a flipped board. */
export function drawOverlay(shown: Entry[], size: number, turn: (point: [number, number]) => [number, number]): SVGElement[] {
  const most = Math.max(...shown.map((entry) => entry.strength), 1e-9);
  return shown.flatMap((entry) => {
    const points = entry.move.cells.map(turn);
    const relative = Math.sqrt(entry.strength / most);
    return points.length > 1 ? [arrow(points, size, relative, entry)] : disc(points[0], size, relative, entry);
  });
}

function disc([x, y]: [number, number], size: number, relative: number, entry: Entry): SVGElement[] {
  const radius = size * (0.14 + 0.24 * relative);
  const parts = [
    svg("circle", {
      cx: x, cy: y, r: radius, fill: entry.colour, "fill-opacity": 0.35 + 0.55 * relative, stroke: "#fff",
      "stroke-width": size * 0.025, "data-action": entry.row.action,
    }),
  ];
  if (relative > 0.45) {
    const label = svg("text", {
      x, y: y + size * 0.075, "font-size": size * 0.21, "font-weight": 700, fill: "#fff", "text-anchor": "middle",
      "font-family": "system-ui, sans-serif",
    });
    label.textContent = entry.label.replace("%", "");
    parts.push(label);
  }
  return parts;
}

function arrow(points: [number, number][], size: number, relative: number, entry: Entry): SVGElement {
  const [from, to] = [points[0], points[points.length - 1]];
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
  const [dx, dy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const half = size * (0.03 + 0.085 * relative);
  const head = half * 2 + size * 0.09;
  const neck = Math.max(length - head * 1.5, length * 0.3);
  const start = Math.min(size * 0.18, neck / 2);
  const at = (along: number, across: number): string =>
    `${(from[0] + dx * along - dy * across).toFixed(2)} ${(from[1] + dy * along + dx * across).toFixed(2)}`;
  const tip = length + size * 0.08;
  const outline = [at(start, half), at(neck, half), at(neck, head), at(tip, 0), at(neck, -head), at(neck, -half), at(start, -half)];
  return svg("path", {
    d: `M${outline.join("L")}Z`, fill: entry.colour, "fill-opacity": 0.3 + 0.55 * relative, stroke: "#fff",
    "stroke-opacity": 0.7, "stroke-width": size * 0.02, "stroke-linejoin": "round", "data-action": entry.row.action,
  });
}
