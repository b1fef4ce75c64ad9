/** The window of the tree in typed arrays: nodes in slots, children as linked lists in the order of their actions. */

import type { Frame, TreeNode } from "../protocol";

export const UNPROVEN = 2;
const NO = -1;

export class TreeModel {
  /** Slots in use, in an order where parents come before their children. */
  order = new Int32Array(0);
  size = 0;
  /** Changes with every change of structure and of numbers. */
  version = 0;
  maxDepth = 0;

  id = new Int32Array(64);
  action = new Int32Array(64);
  parent = new Int32Array(64);
  first = new Int32Array(64);
  next = new Int32Array(64);
  depth = new Int32Array(64);
  hidden = new Int32Array(64);
  player = new Uint8Array(64);
  proven = new Int8Array(64);
  terminal = new Uint8Array(64);
  pv = new Uint8Array(64);
  visits = new Float64Array(64);
  q = new Float64Array(64);
  prior = new Float64Array(64);
  text: string[] = [];

  private slots = new Map<number, number>();
  private free: number[] = [];
  private used = 0;
  private ordered = true;

  clear(): void {
    this.slots.clear();
    this.free = [];
    this.used = this.size = this.maxDepth = 0;
    this.ordered = false;
    this.version++;
  }

  /** The slot of a node; -1 if the window does not show it. */
  slot(id: number): number {
    return this.slots.get(id) ?? NO;
  }

  get root(): number {
    return this.slot(0);
  }

  apply(delta: Frame["tree"]): void {
    if (delta.reset) this.clear();
    if (delta.remove.length + delta.add.length + delta.change.length === 0) return;
    for (const id of delta.remove) this.remove(id);
    for (const node of delta.add) this.add(node);
    for (const [id, visits, q, proven, hidden, pv] of delta.change) {
      const slot = this.slot(id);
      if (slot === NO) continue;
      this.visits[slot] = visits;
      this.q[slot] = q ?? NaN;
      this.proven[slot] = proven ?? UNPROVEN;
      this.hidden[slot] = hidden;
      this.pv[slot] = Number(pv);
    }
    this.version++;
  }

  /** Brings `order` and `depth` up to date after nodes came or went. */
  arrange(): Int32Array {
    if (this.ordered) return this.order;
    this.order = new Int32Array(this.size);
    let end = 0;
    this.maxDepth = 0;
    if (this.root !== NO) {
      this.order[end++] = this.root;
      this.depth[this.root] = 0;
    }
    for (let at = 0; at < end; at++) {
      const slot = this.order[at];
      const below = this.depth[slot] + 1;
      for (let child = this.first[slot]; child !== NO; child = this.next[child]) {
        this.depth[child] = below;
        this.order[end++] = child;
      }
    }
    if (end) this.maxDepth = this.depth[this.order[end - 1]];
    this.ordered = true;
    return this.order;
  }

  children(slot: number): number[] {
    const found: number[] = [];
    for (let child = this.first[slot]; child !== NO; child = this.next[child]) found.push(child);
    return found;
  }

  /** The moves from the root to a node. */
  path(slot: number): string[] {
    const texts: string[] = [];
    for (; slot !== NO && this.parent[slot] !== NO; slot = this.parent[slot]) texts.unshift(this.text[slot]);
    return texts;
  }

  /** The value of a node for the player who made the move, as in its numbers. */
  value(slot: number): number {
    const proven = this.proven[slot];
    return proven === UNPROVEN ? this.q[slot] : proven;
  }

  private add(node: TreeNode): void {
    const parent = node.parent === null ? NO : this.slot(node.parent);
    if (node.parent !== null && parent === NO) return;
    let slot = this.slot(node.id);
    if (slot === NO) {
      slot = this.free.pop() ?? this.used++;
      if (slot >= this.id.length) this.grow();
      this.slots.set(node.id, slot);
      this.size++;
      this.id[slot] = node.id;
      this.action[slot] = node.action ?? NO;
      this.parent[slot] = parent;
      this.first[slot] = this.next[slot] = NO;
      if (parent !== NO) this.link(parent, slot);
      this.ordered = false;
    }
    this.player[slot] = node.player;
    this.visits[slot] = node.visits;
    this.q[slot] = node.q ?? NaN;
    this.prior[slot] = node.prior ?? NaN;
    this.proven[slot] = node.proven ?? UNPROVEN;
    this.terminal[slot] = Number(node.terminal);
    this.hidden[slot] = node.hidden;
    this.pv[slot] = Number(node.pv);
    this.text[slot] = node.text;
  }

  private link(parent: number, slot: number): void {
    let before = NO;
    let after = this.first[parent];
    while (after !== NO && this.action[after] < this.action[slot]) {
      before = after;
      after = this.next[after];
    }
    this.next[slot] = after;
    if (before === NO) this.first[parent] = slot;
    else this.next[before] = slot;
  }

  /** Removes a node with all below it. */
  private remove(id: number): void {
    const top = this.slot(id);
    if (top === NO) return;
    const parent = this.parent[top];
    if (parent !== NO) {
      if (this.first[parent] === top) this.first[parent] = this.next[top];
      else {
        let before = this.first[parent];
        while (this.next[before] !== top) before = this.next[before];
        this.next[before] = this.next[top];
      }
    }
    const stack = [top];
    for (let slot = stack.pop(); slot !== undefined; slot = stack.pop()) {
      stack.push(...this.children(slot));
      this.slots.delete(this.id[slot]);
      this.free.push(slot);
      this.size--;
    }
    this.ordered = false;
  }

  private grow(): void {
    const wider = <T extends Int32Array | Float64Array | Uint8Array | Int8Array>(column: T): T => {
      const made = new (column.constructor as new (length: number) => T)(column.length * 2);
      made.set(column);
      return made;
    };
    for (const name of ["id", "action", "parent", "first", "next", "depth", "hidden"] as const)
      this[name] = wider(this[name]);
    this.player = wider(this.player);
    this.proven = wider(this.proven);
    this.terminal = wider(this.terminal);
    this.pv = wider(this.pv);
    this.visits = wider(this.visits);
    this.q = wider(this.q);
    this.prior = wider(this.prior);
  }
}
