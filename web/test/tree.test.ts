/** The window of the tree: deltas, layout and level of detail, on random trees. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { newCamera, fit, pan, zoom } from "../src/tree/camera";
import { Layout } from "../src/tree/layout";
import { LEAST_WIDTH, Marks, MOST_MARKS } from "../src/tree/marks";
import { TreeModel } from "../src/tree/model";
import type { TreeNode } from "../src/protocol";
import { change, generator, node, randomTree } from "./random";

const NONE = new Set<number>();

function modelOf(nodes: TreeNode[]): TreeModel {
  const model = new TreeModel();
  model.apply({ reset: true, add: nodes, change: [], remove: [] });
  return model;
}

/** The model as plain data: each node with its children in order. */
function shape(model: TreeModel): Map<number, { visits: number; children: number[] }> {
  const order = [...model.arrange()];
  return new Map(order.map((slot) => [model.id[slot], { visits: model.visits[slot], children: model.children(slot).map((child) => model.id[child]) }]));
}

test("deltas lead to the tree that a reset would give", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = generator(seed);
    const nodes = randomTree(300, random);
    const model = modelOf(nodes.slice(0, 120));
    const alive = new Map(nodes.slice(0, 120).map((each) => [each.id, each]));
    for (let round = 0; round < 12; round++) {
      const inside = [...alive.values()].filter((each) => each.id);
      const gone = inside[Math.floor(inside.length * random())].id;
      const remove = new Set([gone]);
      for (const each of inside) if (each.parent !== null && remove.has(each.parent)) remove.add(each.id);
      for (const id of remove) alive.delete(id);
      const add = nodes.slice(120 + 15 * round, 135 + 15 * round).filter((each) => {
        if (each.parent === null || !alive.has(each.parent)) return false;
        alive.set(each.id, each);
        return true;
      });
      const changed = [...alive.values()].filter(() => random() < 0.3);
      for (const each of changed) each.visits += 5;
      model.apply({ reset: false, remove: [...remove], add, change: changed.map(change) });
    }
    const fresh = modelOf([...alive.values()].sort((a, b) => a.id - b.id));
    assert.deepEqual(shape(model), shape(fresh), `seed ${seed}`);
    assert.equal(model.size, alive.size);
    assert.equal(model.maxDepth, fresh.maxDepth);
  }
});

test("nodes whose parent is not shown are left out, and children follow their actions", () => {
  const model = modelOf([node(0, null, 0, 9), node(1, 0, 7, 3), node(2, 0, 3, 3), node(3, 99, 1, 1)]);
  assert.deepEqual(model.children(model.root).map((slot) => model.action[slot]), [3, 7]);
  assert.equal(model.slot(3), -1);
});

test("children divide the interval of their parent without overlap", () => {
  for (let seed = 1; seed <= 10; seed++) {
    const model = modelOf(randomTree(800, generator(seed)));
    const layout = new Layout(model);
    layout.update(1);
    layout.ease(1, true);
    for (const slot of model.arrange()) {
      let x = layout.left[slot];
      const end = x + layout.width[slot];
      const children = model.children(slot);
      for (const child of children) {
        assert.ok(Math.abs(layout.left[child] - x) < 1e-9, "no gap and no overlap");
        x += layout.width[child];
      }
      if (children.length) assert.ok(Math.abs(x - end) < 1e-9, "children fill their parent");
      const byVisits = [...children].sort((a, b) => model.visits[a] - model.visits[b]);
      for (let place = 1; place < byVisits.length; place++)
        assert.ok(layout.width[byVisits[place]] >= layout.width[byVisits[place - 1]] - 1e-12, "more visits, more room");
    }
  }
});

test("moves under the fewest visits have no room", () => {
  const model = modelOf([node(0, null, 0, 100), node(1, 0, 1, 90), node(2, 0, 2, 4)]);
  const layout = new Layout(model);
  layout.update(5);
  layout.ease(1, true);
  assert.equal(layout.width[model.slot(2)], 0);
  assert.equal(layout.width[model.slot(1)], 1);
});

test("intervals ease to their targets and arrive", () => {
  const model = modelOf([node(0, null, 0, 100), node(1, 0, 1, 50), node(2, 0, 2, 50)]);
  const layout = new Layout(model);
  layout.update(1);
  let frames = 0;
  while (!layout.ease(1000, false) && frames < 200) frames++;
  assert.ok(frames > 2 && frames < 60, `${frames} frames`);
  assert.equal(layout.left[model.slot(2)], 0.5);
});

test("at most 4,000 marks are drawn, parents with their children, at any zoom", () => {
  const random = generator(7);
  // Lines of about three pixels each: far more than 4,000 nodes are wide enough.
  const nodes = [node(0, null, 0, 10_000)];
  for (let id = 1; id <= 12_000; id++) nodes.push(node(id, Math.max(0, id - 400), id, 20 + Math.floor(10 * random())));
  const model = modelOf(nodes);
  const layout = new Layout(model);
  layout.update(1);
  layout.ease(1, true);
  const camera = newCamera();
  camera.width = 1200;
  camera.height = 4000;
  fit(camera, model.maxDepth);
  const marks = new Marks();
  for (let round = 0; round < 40; round++) {
    marks.choose(model, layout, camera, NONE, NONE);
    assert.ok(marks.count > 0 && marks.count <= MOST_MARKS);
    if (!round) assert.ok(marks.threshold > LEAST_WIDTH, "the threshold had to grow");
    for (let at = 1; at < marks.count; at++) assert.ok(marks.placeOf(model.parent[marks.slots[at]]) >= 0, "the parent is drawn");
    zoom(camera, 0.5 + 1.5 * random(), 1200 * random());
    pan(camera, 300 * (random() - 0.5), 200 * (random() - 0.5), model.maxDepth);
  }
});

test("narrow nodes are left out until the zoom makes room, the best line never", () => {
  const nodes = [node(0, null, 0, 10_000)];
  for (let id = 1; id <= 3000; id++) nodes.push(node(id, 0, id, 3, { pv: id === 1500 }));
  const model = modelOf(nodes);
  const layout = new Layout(model);
  layout.update(1);
  layout.ease(1, true);
  const camera = newCamera();
  camera.width = 600;
  camera.height = 400;
  fit(camera, 1);
  const marks = new Marks();
  marks.choose(model, layout, camera, NONE, NONE);
  assert.equal(marks.count, 2);
  assert.ok(marks.placeOf(model.slot(1500)) >= 0);
  assert.equal(marks.foldedCount, 1);
  zoom(camera, 40, 300);
  marks.choose(model, layout, camera, NONE, NONE);
  assert.ok(marks.count > 50);
  const slot = marks.slots[5];
  const x = (layout.left[slot] + layout.width[slot] / 2) * camera.scale + camera.x0;
  assert.equal(marks.at(model, layout, camera, x, camera.y0 + camera.row), slot);
  assert.equal(marks.at(model, layout, camera, x, camera.y0 + 3 * camera.row), -1);
});

test("zooming keeps the point under the pointer in place", () => {
  const camera = newCamera();
  camera.width = 900;
  camera.height = 500;
  fit(camera, 5);
  const before = (333 - camera.x0) / camera.scale;
  zoom(camera, 3.7, 333);
  assert.ok(Math.abs((333 - camera.x0) / camera.scale - before) < 1e-9);
  const row = (200 - camera.y0) / camera.row;
  zoom(camera, 0.4, 333, 200);
  assert.ok(Math.abs((200 - camera.y0) / camera.row - row) < 1e-9);
});

test("colours follow the numbers: values are for the player who made the move", () => {
  const model = modelOf([node(0, null, 0, 9, { q: 0.2 }), node(1, 0, 1, 5, { player: 0, q: 0.4 }), node(2, 1, 2, 4, { player: 1, q: -0.4 }), node(3, 1, 3, 1, { player: 1, q: 0.9, proven: -1 })]);
  assert.equal(model.value(model.slot(2)), -0.4);
  assert.equal(model.value(model.slot(3)), -1);
});
