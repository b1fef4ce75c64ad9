/** The tree on its canvas: zooming, panning, selecting and folding, by pointer and keyboard. */

import { byId, h, icon, setAttribute, setText } from "../dom";
import { compact, count, percent, plural, signed, text, verdict } from "../format";
import { reducedMotion, schedule } from "../schedule";
import type { Store } from "../store";
import { fit, newCamera, pan, reveal, stretch, zoom } from "./camera";
import { Layout } from "./layout";
import { Marks, MOST_MARKS } from "./marks";
import { UNPROVEN } from "./model";
import { readPalette, type Palette } from "./palette";
import { listen } from "./pointer";
import type { ToPainter } from "./painter";
import { buildScene, STRIDE } from "./scene";

const FILTERS = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000];
const READABLE = 64;

export class TreeView {
  private readonly box = byId("tree");
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly item = h("div", { id: "tree-item", role: "treeitem", class: "hidden" });
  private readonly summary = byId("tree-summary");
  private readonly follow = h("button", { type: "button", "data-testid": "follow", "aria-pressed": "false" }, "Follow best line");
  private readonly layout: Layout;
  private readonly marks = new Marks();
  private readonly camera = newCamera();
  private readonly collapsed = new Set<number>();
  private palette: Palette = readPalette();
  private ratio = 1;
  private readonly painter = new Worker("painter.js", { type: "module" });
  /** The array of the next scene; null while the painter has it. */
  private buffer: Float32Array<ArrayBuffer> | null = new Float32Array(MOST_MARKS * STRIDE);
  private waiting = false;
  private sentPalette: Palette | null = null;
  private hover = -1;
  /** The node that the last click opened. */
  private opened = -1;
  /** The node whose children the keyboard waits for. */
  private descending = -1;
  private least = 1;
  /** Whether the whole tree is kept in view until the first zoom or pan. */
  private fitted = true;

  constructor(private readonly store: Store) {
    this.layout = new Layout(store.tree);
    this.box.append(this.canvas, this.item);
    for (const [name, value] of Object.entries({
      role: "tree", tabindex: "0", "aria-label": "Search tree", "aria-activedescendant": "tree-item",
    })) this.box.setAttribute(name, value);
    this.addTools();
    const offscreen = this.canvas.transferControlToOffscreen();
    this.tell({ canvas: offscreen }, offscreen);
    this.painter.onmessage = ({ data }: MessageEvent<Float32Array<ArrayBuffer>>) => {
      this.buffer = data;
      if (this.waiting) this.draw();
    };
    listen(this.canvas, {
      pan: (x, y) => this.move(() => pan(this.camera, x, y, store.tree.maxDepth)),
      zoom: (factor, x, y) => this.move(() => zoom(this.camera, factor, x, y)),
      stretch: (factor, y) => this.move(() => stretch(this.camera, factor, y)),
      click: (x, y) => this.click(x, y),
      open: (x, y) => this.doubleClick(x, y),
      hover: (x, y) => this.setHover(this.find(x, y)),
      leave: () => this.setHover(-1),
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.box);
    store.on(["frame"], () => this.descend());
    store.on(["frame", "step", "select"], this.draw);
    store.on(["position"], () => this.restart());
    store.on(["theme"], () => {
      this.palette = readPalette();
      this.draw();
    });
  }

  private restart(): void {
    this.collapsed.clear();
    this.fitted = true;
    this.draw();
  }

  private addTools(): void {
    const tool = (name: string, label: string, act: () => void): HTMLButtonElement =>
      h("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick: act, "data-testid": `tree-${name}` }, icon(name));
    const shown = h("output", {}, "all");
    const filter = h("input", {
      type: "range", min: 0, max: FILTERS.length - 1, value: 0, "aria-label": "Fewest visits shown", "data-testid": "least",
      oninput: () => {
        this.least = FILTERS[Number(filter.value)];
        setText(shown, this.least > 1 ? `≥ ${compact(this.least)}` : "all");
        setAttribute(filter, "aria-valuetext", plural(this.least, "visit"));
        this.draw();
      },
      onchange: () => void this.store.send({ type: "window", least: this.least }),
    });
    this.follow.addEventListener("click", () => this.setFollow(this.follow.getAttribute("aria-pressed") !== "true"));
    byId("tree-tools").append(
      h("label", { class: "inline" }, "Visits", filter, shown),
      this.follow,
      tool("minus", "Zoom out", () => this.zoomBy(1 / 1.5)),
      tool("plus", "Zoom in", () => this.zoomBy(1.5)),
      tool("fit", "Show the whole tree", () => this.showAll()),
    );
    byId("panel-tree").append(
      h("p", { class: "legend" },
        h("span", {}, "value for the player who made the move: −1", h("i", { class: "ramp" }), "+1"),
        h("span", {}, h("i", { class: "best-line" }), "best line"),
        h("span", {}, "▲ won  ◆ drawn  ▼ lost"),
        h("span", {}, "⋯ more below")),
    );
  }

  private setFollow(on: boolean): void {
    setAttribute(this.follow, "aria-pressed", String(on));
    this.draw();
  }

  private get follows(): boolean {
    return this.follow.getAttribute("aria-pressed") === "true";
  }

  private resize(): void {
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!width || !height) return;
    this.camera.width = width;
    this.camera.height = height;
    this.draw();
  }

  private tell(message: ToPainter, transferred: Transferable): void {
    this.painter.postMessage(message, [transferred]);
  }

  readonly draw = (): void => schedule(this.render);

  private readonly render = (): void => {
    this.waiting = this.buffer === null;
    if (!this.buffer || this.camera.width <= 1) return;
    const { tree } = this.store;
    this.layout.update(this.least);
    if (this.fitted) fit(this.camera, tree.maxDepth);
    const path = new Set(this.store.step?.nodes ?? []);
    const settled = this.layout.ease(this.camera.scale, reducedMotion());
    if (this.follows) this.showBest();
    this.marks.choose(tree, this.layout, this.camera, this.collapsed, path);
    const { layout, camera, marks } = this;
    const scene = buildScene({ model: tree, layout, camera }, marks, this.buffer);
    scene.ratio = this.ratio;
    scene.selected = marks.placeOf(tree.slot(this.store.selected));
    scene.hover = marks.placeOf(this.hover);
    scene.path = [...path].map((id) => marks.placeOf(tree.slot(id))).filter((at) => at >= 0);
    if (this.sentPalette !== this.palette) scene.palette = this.sentPalette = this.palette;
    this.buffer = null;
    this.tell({ scene }, scene.marks.buffer);
    this.describe();
    if (!settled) this.draw();
  };

  private describe(): void {
    const { tree, selected, frame } = this.store;
    const nodes = frame?.status.nodes ?? 0;
    setText(this.summary, tree.size ? `${count(this.marks.count)} of ${plural(Math.max(nodes, tree.size), "node")}` : this.store.position?.over ? "The game is over" : "");
    setAttribute(this.summary, "data-marks", String(this.marks.count));
    setAttribute(this.summary, "data-window", String(tree.size));
    const slot = tree.slot(selected);
    if (slot < 0) return setText(this.item, "no node");
    const parent = tree.parent[slot];
    const siblings = parent < 0 ? [slot] : tree.children(parent);
    setText(this.item, this.label(slot));
    const expandable = tree.first[slot] >= 0 || tree.hidden[slot] > 0;
    const expanded = tree.first[slot] >= 0 && !this.collapsed.has(selected);
    setAttribute(this.item, "aria-level", String(tree.depth[slot] + 1));
    setAttribute(this.item, "aria-setsize", String(siblings.length));
    setAttribute(this.item, "aria-posinset", String(siblings.indexOf(slot) + 1));
    setAttribute(this.item, "aria-expanded", expandable ? String(expanded) : null);
    setAttribute(this.item, "aria-selected", "true");
    setAttribute(this.item, "data-id", String(selected));
  }

  private label(slot: number): string {
    const { tree } = this.store;
    const parent = tree.parent[slot];
    const move = parent < 0 ? "root" : tree.text[slot];
    const share = parent < 0 ? "" : `, ${percent(tree.visits[slot] / Math.max(1, tree.visits[parent]))}`;
    const proven = tree.proven[slot];
    const result = proven === UNPROVEN ? text(tree.q[slot], signed) : `proven ${verdict(proven)}`;
    return `${move}: ${plural(tree.visits[slot], "visit")}${share}, ${result}`;
  }

  private move(change: () => void): void {
    this.fitted = false;
    if (this.follows) this.setFollow(false);
    change();
    this.draw();
  }

  zoomBy(factor: number): void {
    this.move(() => zoom(this.camera, factor, this.camera.width / 2));
  }

  showAll(): void {
    this.fitted = true;
    this.draw();
  }

  private find(x: number, y: number): number {
    return this.marks.at(this.store.tree, this.layout, this.camera, x, y);
  }

  private setHover(slot: number): void {
    if (slot === this.hover) return;
    this.hover = slot;
    this.box.classList.toggle("pointing", slot >= 0);
    this.canvas.title = slot < 0 ? "" : this.label(slot);
    const { tree } = this.store;
    this.store.setHover(slot >= 0 && tree.parent[slot] === tree.root ? tree.action[slot] : null);
    this.draw();
  }

  private click(x: number, y: number): void {
    const slot = this.find(x, y);
    if (slot < 0) return;
    const { tree } = this.store;
    this.choose(slot);
    if (tree.id[slot] === this.opened) return;
    this.opened = tree.first[slot] < 0 && tree.hidden[slot] ? tree.id[slot] : -1;
    if (this.opened >= 0) this.toggle(slot);
  }

  /** A double click folds or unfolds, unless its first click has done so. */
  private doubleClick(x: number, y: number): void {
    const slot = this.find(x, y);
    if (slot >= 0 && this.store.tree.id[slot] !== this.opened) this.toggle(slot);
    this.opened = -1;
  }

  private choose(slot: number): void {
    if (slot < 0) return;
    this.store.select(this.store.tree.id[slot]);
  }

  /** Selects a node by keyboard and brings it into view. */
  private go(slot: number): void {
    if (slot < 0) return;
    this.choose(slot);
    const { left, width } = this.layout.target(slot);
    this.fitted = false;
    reveal(this.camera, left, width, this.store.tree.depth[slot], READABLE);
    this.draw();
  }

  /** Folds a node with children, or shows children that the window leaves out. */
  private toggle(slot: number): void {
    const { tree } = this.store;
    if (slot < 0) return;
    const id = tree.id[slot];
    const open = this.collapsed.has(id) || tree.first[slot] < 0;
    if (open) this.collapsed.delete(id);
    else this.collapsed.add(id);
    void this.store.send(open ? { type: "window", open: [id] } : { type: "window", close: [id] });
    this.draw();
  }

  private mostVisited(slot: number): number {
    const { tree } = this.store;
    return tree.children(slot).reduce((best, child) => (best < 0 || tree.visits[child] > tree.visits[best] ? child : best), -1);
  }

  /** Goes down where the children had to be asked for. */
  private descend(): void {
    const { tree, selected } = this.store;
    if (this.descending !== selected) this.descending = -1;
    const below = this.descending < 0 ? -1 : this.mostVisited(tree.slot(selected));
    if (below >= 0) {
      this.descending = -1;
      this.go(below);
    }
  }

  private bestEnd(): number {
    const { tree } = this.store;
    let slot = tree.root;
    for (let below = slot; below >= 0; ) {
      slot = below;
      below = tree.children(slot).find((child) => tree.pv[child] === 1) ?? -1;
    }
    return slot;
  }

  private showBest(): void {
    const end = this.bestEnd();
    if (end < 0) return;
    reveal(this.camera, this.layout.left[end], this.layout.width[end], this.store.tree.depth[end], 0);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { tree, selected } = this.store;
    const slot = Math.max(tree.slot(selected), tree.root);
    if (slot < 0) return;
    const parent = tree.parent[slot];
    const siblings = parent < 0 ? [slot] : tree.children(parent).filter((child) => tree.visits[child] >= this.least);
    const place = siblings.indexOf(slot);
    const actions: Record<string, () => void> = {
      ArrowUp: () => this.go(parent),
      ArrowDown: () => {
        if (this.collapsed.has(tree.id[slot]) || (tree.first[slot] < 0 && tree.hidden[slot])) this.toggle(slot);
        if (tree.first[slot] < 0 && tree.hidden[slot]) this.descending = tree.id[slot];
        this.go(this.mostVisited(slot));
      },
      ArrowLeft: () => this.go(siblings[place - 1] ?? -1),
      ArrowRight: () => this.go(siblings[place + 1] ?? -1),
      Home: () => this.go(tree.root),
      End: () => this.go(this.bestEnd()),
      Enter: () => this.toggle(slot),
      " ": () => this.toggle(slot),
      "+": () => this.zoomBy(1.5),
      "=": () => this.zoomBy(1.5),
      "-": () => this.zoomBy(1 / 1.5),
      "0": () => this.showAll(),
      b: () => this.setFollow(!this.follows),
    };
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}
