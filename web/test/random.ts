/** Random trees for tests, from a seed. */

import type { NodeChange, TreeNode } from "../src/protocol";

export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function node(id: number, parent: number | null, action: number, visits: number, extra: Partial<TreeNode> = {}): TreeNode {
  return {
    id, parent, action: parent === null ? null : action, text: `m${action}`, player: 0, visits, q: 0, prior: null,
    proven: null, terminal: false, hidden: 0, pv: false, ...extra,
  };
}

/** A tree of so many nodes: each new one goes below a random one, with at most its visits. */
export function randomTree(size: number, random: () => number): TreeNode[] {
  const nodes = [node(0, null, 0, 10 * size, { pv: true })];
  for (let id = 1; id < size; id++) {
    const parent = nodes[Math.floor(nodes.length * random() ** 2)];
    nodes.push(node(id, parent.id, id, 1 + Math.floor(parent.visits * 0.5 * random()), { player: id % 2, q: 2 * random() - 1 }));
  }
  return nodes;
}

export const change = (of: TreeNode): NodeChange => [of.id, of.visits, of.q, of.proven, of.hidden, of.pv];
