/**
 * The layout of the tree: each node has an interval of [0, 1], which its children divide by their visits.
 *
 * The depth gives the row. Intervals ease towards their targets, so that a running search moves calmly.
 */

import type { TreeModel } from "./model";

/** A power below 1 gives moves with few visits more room than their share. */
const POWER = 0.6;
const EASE = 0.3;
const SETTLED = 1e-4;

export const weight = (visits: number): number => Math.pow(visits + 0.5, POWER);

export class Layout {
  /** The interval of each slot as drawn. */
  left = new Float64Array(0);
  width = new Float64Array(0);
  private targetLeft = new Float64Array(0);
  private targetWidth = new Float64Array(0);
  private ids = new Int32Array(0);
  private version = -1;
  private least = -1;

  constructor(private readonly model: TreeModel) {}

  /** Recomputes the intervals if the model changed; nodes under `least` visits get none. */
  update(least: number): void {
    const { model } = this;
    if (model.version === this.version && least === this.least) return;
    this.version = model.version;
    this.least = least;
    const order = model.arrange();
    this.reserve(model.id.length);
    const { targetLeft, targetWidth } = this;
    const { first, next, visits, root } = model;
    if (root < 0) return;
    targetLeft[root] = 0;
    targetWidth[root] = 1;
    for (let at = 0; at < order.length; at++) {
      const slot = order[at];
      let total = 0;
      for (let child = first[slot]; child >= 0; child = next[child])
        if (visits[child] >= least) total += weight(visits[child]);
      let x = targetLeft[slot];
      const scale = total > 0 ? targetWidth[slot] / total : 0;
      for (let child = first[slot]; child >= 0; child = next[child]) {
        targetLeft[child] = x;
        targetWidth[child] = visits[child] >= least ? weight(visits[child]) * scale : 0;
        x += targetWidth[child];
      }
    }
    for (let at = 0; at < order.length; at++) {
      const slot = order[at];
      if (this.ids[slot] === model.id[slot] + 1) continue;
      // A new node grows from its place in its parent.
      this.ids[slot] = model.id[slot] + 1;
      const parent = model.parent[slot];
      this.left[slot] = parent < 0 ? 0 : this.left[parent];
      this.width[slot] = parent < 0 ? 1 : 0;
      if (parent >= 0 && this.width[parent] > 0) {
        const place = (targetLeft[slot] - targetLeft[parent]) / (targetWidth[parent] || 1);
        this.left[slot] += place * this.width[parent];
      }
    }
  }

  /** Moves the intervals towards their targets; `scale` is pixels per unit. Returns whether all have arrived. */
  ease(scale: number, jump: boolean): boolean {
    const { left, width, targetLeft, targetWidth } = this;
    const order = this.model.arrange();
    const near = Math.max(SETTLED, 0.05 / scale);
    let settled = true;
    for (let at = 0; at < order.length; at++) {
      const slot = order[at];
      const x = targetLeft[slot] - left[slot];
      const w = targetWidth[slot] - width[slot];
      if (jump || (Math.abs(x) < near && Math.abs(w) < near)) {
        left[slot] = targetLeft[slot];
        width[slot] = targetWidth[slot];
      } else {
        left[slot] += EASE * x;
        width[slot] += EASE * w;
        settled = false;
      }
    }
    return settled;
  }

  /** The interval that a slot moves to. */
  target(slot: number): { left: number; width: number } {
    return { left: this.targetLeft[slot], width: this.targetWidth[slot] };
  }

  private reserve(length: number): void {
    if (this.left.length >= length) return;
    const wider = (column: Float64Array): Float64Array<ArrayBuffer> => {
      const made = new Float64Array(length);
      made.set(column);
      return made;
    };
    this.left = wider(this.left);
    this.width = wider(this.width);
    this.targetLeft = wider(this.targetLeft);
    this.targetWidth = wider(this.targetWidth);
    const ids = new Int32Array(length);
    ids.set(this.ids);
    this.ids = ids;
  }
}
