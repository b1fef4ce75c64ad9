/** Level of detail: which nodes are drawn, and how, in the part of the tree that the canvas shows. */

import type { Layout } from "./layout";
import type { TreeModel } from "./model";

/** Part of the layout on the canvas: x = left * scale + x0, y = depth * row + y0. */
export interface Camera {
  scale: number;
  x0: number;
  row: number;
  y0: number;
  width: number;
  height: number;
}

export const MOST_MARKS = 4000;
/** Widths in pixels from which a node is drawn at all, as a disc, and as a box with its numbers. */
export const LEAST_WIDTH = 2;
export const DISC_WIDTH = 9;
export const BOX_WIDTH = 34;
/** Heights of a row from which boxes fit, with their move alone, with visits, and with the value too. */
export const BOX_ROWS = [38, 54, 66];

export class Marks {
  /** Slots to draw, parents before children. */
  slots = new Int32Array(MOST_MARKS);
  count = 0;
  /** Slots whose children are left out because they would be too narrow. */
  folded = new Int32Array(MOST_MARKS);
  foldedCount = 0;
  /** The width under which nodes are left out; grows while there are too many. */
  threshold = LEAST_WIDTH;
  private index = new Int32Array(0);

  /** Chooses the marks, parents before children; doubles the threshold until they fit. */
  choose(model: TreeModel, layout: Layout, camera: Camera, collapsed: ReadonlySet<number>, path: ReadonlySet<number>): void {
    this.threshold = LEAST_WIDTH;
    // The principal variation is always kept: past the whole width, what is left of it stays out.
    while (!this.collect(model, layout, camera, collapsed, path) && this.threshold < camera.scale) this.threshold *= 1.5;
  }

  /** The place of a slot among the marks; -1 if it was not chosen. */
  placeOf(slot: number): number {
    const at = slot < 0 ? this.count : this.index[slot];
    return at < this.count && this.slots[at] === slot ? at : -1;
  }

  private collect(
    model: TreeModel,
    layout: Layout,
    camera: Camera,
    collapsed: ReadonlySet<number>,
    path: ReadonlySet<number>,
  ): boolean {
    if (this.index.length < model.id.length) this.index = new Int32Array(model.id.length);
    this.count = this.foldedCount = 0;
    if (model.root < 0) return true;
    const { slots } = this;
    const { first, next, pv, id, depth } = model;
    const { left, width } = layout;
    slots[this.count++] = model.root;
    for (let at = 0; at < this.count; at++) {
      const slot = slots[at];
      this.index[slot] = at;
      if (collapsed.has(id[slot]) || camera.y0 + (depth[slot] + 0.4) * camera.row > camera.height) continue;
      let folded = false;
      for (let child = first[slot]; child >= 0; child = next[child]) {
        const pixels = width[child] * camera.scale;
        const kept = pixels >= this.threshold || pv[child] || path.has(id[child]);
        const x = left[child] * camera.scale + camera.x0;
        // A band reaches from the parent to the child, so that both ends decide whether it is in view.
        if (x > camera.width + 40 || x + pixels < -40) continue;
        if (!kept) folded = true;
        else if (this.count < MOST_MARKS) slots[this.count++] = child;
        else return false;
      }
      if (folded) this.folded[this.foldedCount++] = slot;
    }
    return true;
  }

  /** The mark at a point of the canvas: the one in that row whose interval holds it; -1 if there is none. */
  at(model: TreeModel, layout: Layout, camera: Camera, x: number, y: number): number {
    const depth = Math.round((y - camera.y0) / camera.row);
    const place = (x - camera.x0) / camera.scale;
    const slack = 4 / camera.scale;
    let best = -1;
    let nearest = Infinity;
    for (let at = 0; at < this.count; at++) {
      const slot = this.slots[at];
      if (model.depth[slot] !== depth) continue;
      const centre = layout.left[slot] + layout.width[slot] / 2;
      const distance = Math.abs(centre - place);
      if (distance <= layout.width[slot] / 2 + slack && distance < nearest) {
        nearest = distance;
        best = slot;
      }
    }
    return best;
  }
}
