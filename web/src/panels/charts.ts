/** Graphs over time: the moves' shares of the visits, and the evaluation of the game. */

import uPlot from "uplot";
import { byId, h, setNumber } from "../dom";
import { compact, count, percent, signed } from "../format";
import type { Store } from "../store";
import { lastPly } from "./game";
import { readPalette, type Palette } from "../tree/palette";

const MOST_SERIES = 8;
/** Plies that the graph of the evaluation has room for at least. */
const LEAST_PLIES = 8;
const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3]];

const style = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axis(values: (value: number) => string, extra: Partial<uPlot.Axis> = {}): uPlot.Axis {
  return {
    stroke: () => style("--soft"),
    grid: { stroke: () => style("--edge"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
    values: (_, splits) => splits.map((value) => (value === null ? "" : values(value))),
    ...extra,
  };
}

/** A graph that has the size of its element. */
class Chart {
  private plot: uPlot | null = null;
  private width = 0;
  private height = 0;

  constructor(
    readonly element: HTMLElement,
    private readonly options: () => Omit<uPlot.Options, "width" | "height">,
    private readonly data: () => uPlot.AlignedData,
    private readonly resized: () => void = () => this.draw(),
  ) {
    // The observer tells the size, so that drawing does not force a layout.
    new ResizeObserver(([{ contentRect }]) => {
      this.width = Math.floor(contentRect.width);
      this.height = Math.floor(contentRect.height);
      this.resized();
    }).observe(element);
  }

  get isShown(): boolean {
    return this.width > 0;
  }

  rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  }

  draw(): void {
    const { width, height } = this;
    if (width < 40 || height < 40) return;
    if (!this.plot) {
      const options: uPlot.Options = { legend: { show: false }, ...this.options(), width, height };
      this.plot = new uPlot(options, this.data(), this.element);
    } else {
      if (this.plot.width !== width || this.plot.height !== height) this.plot.setSize({ width, height });
      this.plot.setData(this.data());
    }
  }
}

export class SharesPanel {
  private readonly keys = h("ol", { class: "keys", "aria-label": "Shares now" });
  private readonly chart: Chart;
  private palette: Palette = readPalette();
  private shown: number[] = [];

  constructor(private readonly store: Store) {
    const box = h("div", { class: "chart", role: "img", "aria-label": "Each move's share of the visits over the simulations", "data-testid": "shares" });
    byId("panel-shares").append(h("div", { class: "shares" }, box, this.keys));
    this.chart = new Chart(box, () => this.options(), () => this.data(), () => this.update());
    store.on(["frame"], () => this.update());
    store.on(["theme"], () => {
      this.palette = readPalette();
      this.chart.rebuild();
      this.list();
    });
  }

  private options(): Omit<uPlot.Options, "width" | "height"> {
    const colours = this.palette.series;
    return {
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(0.1, (most ?? 1) * 1.05)] } },
      axes: [axis(compact, { size: 28, values: (_, splits) => splits.map(splits[0] > 0.9 * splits[splits.length - 1] ? count : compact) }), axis((value) => `${Math.round(100 * value)}%`, { size: 44 })],
      cursor: { points: { size: 6 }, drag: { setScale: false } },
      series: [
        {},
        ...this.shown.map((action, place) => ({
          label: this.store.moveText(action),
          stroke: colours[place],
          width: place ? 1.8 : 2.8,
          dash: DASHES[place % DASHES.length],
          // A line needs two samples.
          points: { show: () => this.store.history.simulations.length < 2, size: 7, fill: colours[place] },
        })),
      ],
    };
  }

  private data(): uPlot.AlignedData {
    const { history } = this.store;
    return [history.simulations, ...this.shown.map((action) => history.shares.get(action) ?? [])] as uPlot.AlignedData;
  }

  private update(): void {
    if (!this.chart.isShown) return;
    const leading = this.store.history.leading(MOST_SERIES);
    const same = leading.length === this.shown.length && leading.every((action) => this.shown.includes(action));
    if (!same) {
      this.shown = leading;
      this.chart.rebuild();
    } else this.chart.draw();
    this.list();
  }

  private list(): void {
    const last = this.store.history.simulations.length - 1;
    this.keys.replaceChildren(
      ...this.shown.map((action, place) => {
        const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = this.palette.series[place];
        const amount = h("span", { class: "amount" });
        setNumber(amount, this.store.history.shares.get(action)?.[last], percent);
        const move = this.store.moveText(action);
        return h("li", { "data-action": action }, swatch, h("span", { class: "name", title: move }, move), amount);
      }),
    );
  }
}

export class EvaluationGraph {
  private readonly chart: Chart;

  constructor(
    private readonly store: Store,
    private readonly jump: (ply: number) => void,
  ) {
    const box = byId("evaluation");
    box.setAttribute("role", "img");
    this.chart = new Chart(box, () => this.options(), () => this.data());
    store.on(["position"], () => this.update());
    store.on(["theme"], () => this.chart.rebuild());
  }

  private options(): Omit<uPlot.Options, "width" | "height"> {
    return {
      scales: { x: { time: false, range: (_, __, most) => [0, most ?? LEAST_PLIES] }, y: { range: [-1.05, 1.05] } },
      axes: [
        axis((value) => (Number.isInteger(value) ? String(value) : ""), { size: 24, grid: { show: false } }),
        axis((value) => (value ? signed(value).replace(/\.?0+$/, "") : "0"), { size: 40, splits: [-1, 0, 1] as unknown as uPlot.Axis.Splits }),
      ],
      cursor: { y: false, drag: { setScale: false }, points: { size: 7 } },
      series: [
        {},
        {
          stroke: () => style("--accent"),
          fill: () => `${style("--accent")}22`,
          fillTo: 0,
          width: 2,
          spanGaps: true,
          points: { show: true, size: 5, fill: () => style("--accent") },
        },
      ],
      hooks: {
        draw: [(plot) => this.markPly(plot)],
        ready: [(plot) => plot.over.addEventListener("click", () => this.click(plot))],
      },
    };
  }

  private data(): uPlot.AlignedData {
    const values = this.store.position?.evaluations ?? [];
    // The last point has no value: it keeps room for moves to come.
    const end = Math.max(LEAST_PLIES, this.store.position?.ply ?? 0, ...values.map((entry) => entry.ply + 1));
    return [[...values.map((entry) => entry.ply), end], [...values.map((entry) => entry.value), null]];
  }

  private update(): void {
    const { position } = this.store;
    if (!position) return;
    const last = position.evaluations.at(-1);
    const text = last ? `, last ${signed(last.value)} at ply ${last.ply}` : "";
    this.chart.element.setAttribute("aria-label", `Value for ${this.store.player(0)} at each ply of the game${text}`);
    this.chart.element.dataset.points = String(position.evaluations.length);
    this.chart.draw();
  }

  private markPly(plot: uPlot): void {
    const { position } = this.store;
    if (!position) return;
    const x = plot.valToPos(position.ply, "x", true);
    const { top, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.strokeStyle = style("--best");
    plot.ctx.lineWidth = 2;
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, top);
    plot.ctx.lineTo(x, top + height);
    plot.ctx.stroke();
    plot.ctx.fillStyle = style("--soft");
    plot.ctx.font = `${11 * uPlot.pxRatio}px system-ui, sans-serif`;
    // Beside the mark of the ply, whichever half it is in.
    const { left, width } = plot.bbox;
    const isLate = x > left + width / 2;
    plot.ctx.textAlign = isLate ? "left" : "right";
    plot.ctx.fillText(`for ${this.store.player(0)}`, isLate ? left + 4 : left + width - 4, top + 13 * uPlot.pxRatio);
    plot.ctx.restore();
  }

  private click(plot: uPlot): void {
    const left = plot.cursor.left ?? -1;
    if (left < 0 || !this.store.position) return;
    const ply = Math.round(plot.posToVal(left, "x"));
    this.jump(Math.max(0, Math.min(lastPly(this.store.position), ply)));
  }
}

