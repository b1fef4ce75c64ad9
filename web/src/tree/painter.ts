/** A worker that paints scenes, so that the main thread stays free: bands, then discs, then boxes with numbers. */

import { STEPS, type Palette } from "./palette";
import { BOX, STRIDE, TICK, unpack, type Looks, type Scene } from "./scene";

export type ToPainter = { canvas: OffscreenCanvas } | { scene: Scene };

const BANDS = [0.6, 1, 1.6, 2.4, 3.6, 5.5, 8, 12];
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
/** Boxes under this width show visits and value in two lines. */
const ONE_LINE = 78;
/** Discs under this radius are squares, which nobody can tell apart. */
const SQUARE = 2.5;

let canvas: OffscreenCanvas | null = null;
let palette: Palette | null = null;

self.onmessage = ({ data }: MessageEvent<ToPainter>): void => {
  if ("canvas" in data) {
    canvas = data.canvas;
    return;
  }
  const { scene } = data;
  palette = scene.palette ?? palette;
  if (canvas && palette) paint(canvas, palette, scene);
  // The array goes back, and with it the permission to send the next scene.
  self.postMessage(scene.marks, { transfer: [scene.marks.buffer] });
};

interface Picture {
  context: OffscreenCanvasRenderingContext2D;
  palette: Palette;
  scene: Scene;
  marks: Float32Array;
  looks: Looks[];
}

function paint(canvas: OffscreenCanvas, palette: Palette, scene: Scene): void {
  const width = Math.round(scene.width * scene.ratio);
  const height = Math.round(scene.height * scene.ratio);
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
  context.clearRect(0, 0, scene.width, scene.height);
  const looks = Array.from({ length: scene.count }, (_, at) => unpack(scene.marks[at * STRIDE + 7]));
  const picture = { context, palette, scene, marks: scene.marks, looks };
  paintBands(picture);
  paintPath(picture);
  paintFolds(picture);
  paintDiscs(picture);
  paintBoxes(picture);
  for (const at of scene.path) outline(picture, at, palette.accent, 1.5);
  if (scene.hover >= 0) outline(picture, scene.hover, palette.faint, 1.5);
  if (scene.selected >= 0) outline(picture, scene.selected, palette.ink, 2);
}

/** Adds the band from a mark's parent to it. */
function band({ context, marks, scene }: Picture, at: number): void {
  const [x, y, fromX, fromY] = marks.subarray(at * STRIDE, at * STRIDE + 4);
  if (Number.isNaN(fromX)) return;
  context.moveTo(fromX, fromY);
  if (Math.abs(x - fromX) < 3) context.lineTo(x, y);
  else context.bezierCurveTo(fromX, fromY + 0.55 * scene.row, x, y - 0.55 * scene.row, x, y);
}

function paintBands(picture: Picture): void {
  const { context, palette, scene, marks, looks } = picture;
  const groups: number[][] = Array.from({ length: 2 * BANDS.length }, () => []);
  for (let at = 1; at < scene.count; at++) {
    const y = marks[at * STRIDE + 1];
    if (y < -scene.row || y - scene.row > scene.height) continue;
    let width = 0;
    while (width < BANDS.length - 1 && BANDS[width + 1] <= marks[at * STRIDE + 4]) width++;
    groups[looks[at].pv ? BANDS.length + width : width].push(at);
  }
  context.lineCap = "round";
  for (const [place, group] of groups.entries()) {
    if (!group.length) continue;
    const onLine = place >= BANDS.length;
    context.strokeStyle = onLine ? palette.line : palette.link;
    context.lineWidth = Math.max(BANDS[place % BANDS.length], onLine ? 2 : 0);
    context.beginPath();
    for (const at of group) band(picture, at);
    context.stroke();
  }
}

/** The path of the last single simulation. */
function paintPath(picture: Picture): void {
  const { context, palette, scene } = picture;
  context.strokeStyle = palette.accent;
  context.lineWidth = 3;
  context.setLineDash([2, 6]);
  context.beginPath();
  for (const at of scene.path) band(picture, at);
  context.stroke();
  context.setLineDash([]);
}

/** Three dots under nodes with children that are not drawn. */
function paintFolds({ context, palette, scene, marks, looks }: Picture): void {
  context.fillStyle = palette.faint;
  for (let at = 0; at < scene.count; at++) {
    const { folded, kind } = looks[at];
    if (!folded || kind === TICK) continue;
    const place = at * STRIDE;
    const y = marks[place + 1] + (kind === BOX ? scene.boxHeight / 2 : marks[place + 5]) + 4;
    for (const shift of [-5, 0, 5]) context.fillRect(marks[place] + shift - 1, y, 2, 2);
  }
}

function paintDiscs({ context, palette, scene, marks, looks }: Picture): void {
  const groups: number[][] = Array.from({ length: STEPS + 1 }, () => []);
  for (let at = 0; at < scene.count; at++) {
    const y = marks[at * STRIDE + 1];
    if (looks[at].kind !== BOX && y > -20 && y < scene.height + 20) groups[looks[at].step].push(at);
  }
  for (const [step, group] of groups.entries()) {
    context.fillStyle = palette.strong[step];
    context.beginPath();
    for (const at of group) {
      const [x, y] = marks.subarray(at * STRIDE, at * STRIDE + 2);
      node(context, x, y, marks[at * STRIDE + 5], looks[at]);
    }
    context.fill();
  }
}

function node(context: OffscreenCanvasRenderingContext2D, x: number, y: number, radius: number, { shape }: Looks): void {
  const reach = Math.max(3, 1.25 * radius);
  if (shape === 0 && radius < SQUARE) context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
  else if (shape === 0) {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  } else if (shape === 3) {
    context.moveTo(x, y - reach);
    context.lineTo(x + reach, y);
    context.lineTo(x, y + reach);
    context.lineTo(x - reach, y);
  } else {
    const up = shape === 1 ? -reach : reach;
    context.moveTo(x, y + up);
    context.lineTo(x + reach, y - 0.8 * up);
    context.lineTo(x - reach, y - 0.8 * up);
  }
}

function paintBoxes({ context, palette, scene, marks, looks }: Picture): void {
  const { boxHeight: height, texts } = scene;
  context.textAlign = "center";
  context.textBaseline = "middle";
  let next = 0;
  for (let at = 0; at < scene.count; at++) {
    const { kind, pv, step, terminal } = looks[at];
    if (kind !== BOX) continue;
    const [title, visits, value] = texts.slice(next, (next += 3));
    const [x, y] = marks.subarray(at * STRIDE, at * STRIDE + 2);
    const width = marks[at * STRIDE + 6];
    if (y < -height || y > scene.height + height || x < -width || x > scene.width + width) continue;
    context.beginPath();
    context.roundRect(x - width / 2, y - height / 2, width, height, terminal ? 2 : 8);
    context.fillStyle = palette.pale[step];
    context.fill();
    context.strokeStyle = pv ? palette.line : palette.link;
    context.lineWidth = pv ? 2 : 1;
    context.stroke();
    context.fillStyle = palette.ink;
    context.font = `600 13px ${FONT}`;
    const high = height > 40;
    context.fillText(title, x, high ? y - 10 : height > 21 ? y - 7 : y + 0.5, width - 6);
    if (height <= 21) continue;
    context.font = `11px ${FONT}`;
    if (!high) context.fillText(visits, x, y + 8, width - 6);
    else if (width > ONE_LINE) context.fillText(`${visits}  ${value}`, x, y + 9, width - 6);
    else {
      context.fillText(visits, x, y + 4, width - 6);
      context.fillText(value, x, y + 15, width - 6);
    }
  }
}

function outline({ context, scene, marks, looks }: Picture, at: number, colour: string, width: number): void {
  const [x, y] = marks.subarray(at * STRIDE, at * STRIDE + 2);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  if (looks[at].kind === BOX) {
    const [wide, high] = [marks[at * STRIDE + 6] + 4, scene.boxHeight + 4];
    context.roundRect(x - wide / 2, y - high / 2, wide, high, 10);
  } else context.arc(x, y, marks[at * STRIDE + 5] + 4, 0, 2 * Math.PI);
  context.stroke();
}
