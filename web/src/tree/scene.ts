/** What the painter needs of the chosen marks: their places and looks in one array, and the texts of boxes. */

import { brief, compact, signed, text, verdictSign } from "../format";
import type { Layout } from "./layout";
import { BOX_ROWS, BOX_WIDTH, DISC_WIDTH, MOST_MARKS, type Camera, type Marks } from "./marks";
import { UNPROVEN, type TreeModel } from "./model";
import { stepOf, type Palette } from "./palette";

/** Numbers of a mark: centre, centre of the parent, width of the band, radius, width of the box, and its looks. */
export const STRIDE = 8;
export const TICK = 0;
export const DISC = 1;
export const BOX = 2;

const WIDEST_BOX = 92;
const WIDEST_LOW_BOX = 64;
/** Characters of a move in a box. */
const LONGEST_LABEL = 12;

export interface Looks {
  step: number;
  /** 0: not proven, 1: won, 2: lost, 3: drawn. */
  shape: number;
  kind: number;
  pv: boolean;
  terminal: boolean;
  /** Whether children are not drawn. */
  folded: boolean;
}

export const pack = ({ step, shape, kind, pv, terminal, folded }: Looks): number =>
  step | (shape << 4) | (kind << 6) | (Number(pv) << 8) | (Number(terminal) << 9) | (Number(folded) << 10);

export const unpack = (bits: number): Looks => ({
  step: bits & 15, shape: (bits >> 4) & 3, kind: (bits >> 6) & 3, pv: !!(bits & 256), terminal: !!(bits & 512), folded: !!(bits & 1024),
});

export interface Scene {
  marks: Float32Array<ArrayBuffer>;
  count: number;
  /** For each box: move, visits, value. */
  texts: string[];
  boxHeight: number;
  row: number;
  width: number;
  height: number;
  ratio: number;
  /** Places of marks, or -1. */
  selected: number;
  hover: number;
  path: number[];
  /** Sent when it changed. */
  palette: Palette | null;
}

interface View {
  model: TreeModel;
  layout: Layout;
  camera: Camera;
}

export const boxHeight = (row: number): number => (row >= BOX_ROWS[2] ? 44 : row >= BOX_ROWS[1] ? 32 : 21);

/** The shape of a result: it is told by the shape, not by the colour alone. */
export const shapeOf = (proven: number): number => (proven === UNPROVEN ? 0 : proven > 0 ? 1 : proven < 0 ? 2 : 3);

/** Writes the marks into `buffer`; highlights are added by the caller. */
export function buildScene({ model, layout, camera }: View, marks: Marks, buffer: Float32Array<ArrayBuffer> | null): Scene {
  const array = buffer ?? new Float32Array(MOST_MARKS * STRIDE);
  const texts: string[] = [];
  const total = Math.max(1, model.visits[model.root]);
  const high = boxHeight(camera.row);
  const folded = new Set(marks.folded.subarray(0, marks.foldedCount));
  for (let at = 0; at < marks.count; at++) {
    const slot = marks.slots[at];
    const parent = model.parent[slot];
    const width = layout.width[slot] * camera.scale;
    const share = Math.sqrt(model.visits[slot] / total);
    const y = model.depth[slot] * camera.row + camera.y0;
    const kind = width >= BOX_WIDTH && camera.row >= BOX_ROWS[0] ? BOX : width >= DISC_WIDTH ? DISC : TICK;
    const place = at * STRIDE;
    array[place] = (layout.left[slot] + layout.width[slot] / 2) * camera.scale + camera.x0;
    array[place + 1] = y;
    array[place + 2] = parent < 0 ? NaN : (layout.left[parent] + layout.width[parent] / 2) * camera.scale + camera.x0;
    array[place + 3] = y - camera.row;
    array[place + 4] = 0.6 + 11.4 * share;
    array[place + 5] = Math.max(1.5, Math.min(camera.row / 3.2, width / 2, 3 + 12 * share));
    array[place + 6] = Math.min(high > 21 ? WIDEST_BOX : WIDEST_LOW_BOX, width - 5);
    array[place + 7] = pack({
      step: stepOf(model.value(slot)),
      shape: shapeOf(model.proven[slot]),
      kind,
      pv: model.pv[slot] === 1,
      terminal: model.terminal[slot] === 1,
      folded: folded.has(slot) || model.hidden[slot] > 0,
    });
    if (kind === BOX) {
      const proven = model.proven[slot];
      const sign = proven === UNPROVEN ? "" : `${verdictSign(proven)} `;
      texts.push(sign + (parent < 0 ? "root" : brief(model.text[slot], LONGEST_LABEL)), compact(model.visits[slot]), text(model.q[slot], signed));
    }
  }
  const { row, width, height } = camera;
  return { marks: array, count: marks.count, texts, boxHeight: high, row, width, height, ratio: 1, selected: -1, hover: -1, path: [], palette: null };
}
