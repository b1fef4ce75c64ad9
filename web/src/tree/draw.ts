/** Paints the chosen marks on the canvas: bands, then discs by colour, then boxes with numbers. */

import { compact, signed, text, verdictSign } from "../format";
import type { Layout } from "./layout";
import { BOX_ROWS, BOX_WIDTH, DISC_WIDTH, type Camera, type Marks } from "./marks";
import { UNPROVEN, type TreeModel } from "./model";
import { STEPS, stepOf, type Palette } from "./palette";

const BANDS = [0.6, 1, 1.6, 2.4, 3.6, 5.5, 8, 12];
const WIDEST_BOX = 92;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

export interface Highlight {
  selected: number;
  hover: number;
  /** Slots of the last single simulation. */
  path: number[];
}

interface Picture {
  context: CanvasRenderingContext2D;
  model: TreeModel;
  layout: Layout;
  camera: Camera;
  palette: Palette;
}

type Kind = 0 | 1 | 2;
const TICK = 0;
const DISC = 1;
const BOX = 2;

const xOf = ({ layout, camera }: Picture, slot: number): number =>
  (layout.left[slot] + layout.width[slot] / 2) * camera.scale + camera.x0;
const yOf = ({ model, camera }: Picture, slot: number): number => model.depth[slot] * camera.row + camera.y0;

export function kindOf({ layout, camera }: Pick<Picture, "layout" | "camera">, slot: number): Kind {
  const pixels = layout.width[slot] * camera.scale;
  if (pixels >= BOX_WIDTH && camera.row >= BOX_ROWS[0]) return BOX;
  return pixels >= DISC_WIDTH ? DISC : TICK;
}

function boxSize({ layout, camera }: Picture, slot: number): [number, number] {
  const height = camera.row >= BOX_ROWS[2] ? 44 : camera.row >= BOX_ROWS[1] ? 32 : 21;
  return [Math.min(height > 21 ? WIDEST_BOX : 64, layout.width[slot] * camera.scale - 5), height];
}

function radius({ layout, camera, model }: Picture, slot: number): number {
  const share = model.visits[slot] / Math.max(1, model.visits[model.root]);
  const room = Math.min(camera.row / 3.2, (layout.width[slot] * camera.scale) / 2);
  return Math.max(1.5, Math.min(room, 3 + 12 * Math.sqrt(share)));
}

export function paint(picture: Picture, marks: Marks, highlight: Highlight): void {
  const { context, camera, model } = picture;
  context.clearRect(0, 0, camera.width, camera.height);
  if (model.root < 0) return;
  paintBands(picture, marks);
  paintPath(picture, marks, highlight.path);
  paintFolds(picture, marks);
  paintDiscs(picture, marks);
  paintBoxes(picture, marks);
  for (const slot of highlight.path) if (marks.has(slot)) outline(picture, slot, picture.palette.accent, 1.5);
  if (highlight.hover >= 0 && marks.has(highlight.hover)) outline(picture, highlight.hover, picture.palette.faint, 1.5);
  if (highlight.selected >= 0 && marks.has(highlight.selected)) outline(picture, highlight.selected, picture.palette.ink, 2);
}

function band(picture: Picture, slot: number): void {
  const { context, model, camera } = picture;
  const parent = model.parent[slot];
  const fromX = xOf(picture, parent);
  const fromY = yOf(picture, parent);
  const toX = xOf(picture, slot);
  const toY = fromY + camera.row;
  context.moveTo(fromX, fromY);
  if (Math.abs(toX - fromX) < 3) context.lineTo(toX, toY);
  else context.bezierCurveTo(fromX, fromY + 0.55 * camera.row, toX, toY - 0.55 * camera.row, toX, toY);
}

let buckets = new Uint8Array(0);

function paintBands(picture: Picture, marks: Marks): void {
  const { context, model, palette, camera } = picture;
  if (buckets.length < marks.slots.length) buckets = new Uint8Array(marks.slots.length);
  const total = Math.max(1, model.visits[model.root]);
  for (let at = 1; at < marks.count; at++) {
    const slot = marks.slots[at];
    const wanted = 0.6 + 11.4 * Math.sqrt(model.visits[slot] / total);
    let bucket = 0;
    while (bucket < BANDS.length - 1 && BANDS[bucket + 1] <= wanted) bucket++;
    const y = yOf(picture, slot);
    buckets[at] = y < -camera.row || y - camera.row > camera.height ? 255 : model.pv[slot] ? bucket + 100 : bucket;
  }
  context.lineCap = "round";
  for (const [colour, offset] of [[palette.link, 0], [palette.line, 100]] as const) {
    context.strokeStyle = colour;
    for (let bucket = 0; bucket < BANDS.length; bucket++) {
      let any = false;
      for (let at = 1; at < marks.count; at++) {
        if (buckets[at] !== bucket + offset) continue;
        if (!any) context.beginPath();
        any = true;
        band(picture, marks.slots[at]);
      }
      if (!any) continue;
      context.lineWidth = Math.max(BANDS[bucket], offset ? 2 : 0);
      context.stroke();
    }
  }
}

function paintPath(picture: Picture, marks: Marks, path: number[]): void {
  const { context, model, palette } = picture;
  context.strokeStyle = palette.accent;
  context.lineWidth = 3;
  context.setLineDash([2, 6]);
  context.beginPath();
  for (const slot of path) if (model.parent[slot] >= 0 && marks.has(slot)) band(picture, slot);
  context.stroke();
  context.setLineDash([]);
}

/** Three dots under nodes with children that are not drawn. */
function paintFolds(picture: Picture, marks: Marks): void {
  const { context, model, palette } = picture;
  context.fillStyle = palette.faint;
  const dots = (slot: number): void => {
    const kind = kindOf(picture, slot);
    if (kind === TICK) return;
    const y = yOf(picture, slot) + (kind === BOX ? boxSize(picture, slot)[1] / 2 : radius(picture, slot)) + 4;
    const x = xOf(picture, slot);
    for (const shift of [-5, 0, 5]) context.fillRect(x + shift - 1, y, 2, 2);
  };
  for (let at = 0; at < marks.foldedCount; at++) dots(marks.folded[at]);
  for (let at = 0; at < marks.count; at++) if (model.hidden[marks.slots[at]]) dots(marks.slots[at]);
}

function paintDiscs(picture: Picture, marks: Marks): void {
  const { context, model, palette, camera } = picture;
  for (let at = 0; at < marks.count; at++) {
    const slot = marks.slots[at];
    const y = yOf(picture, slot);
    const shown = y > -20 && y < camera.height + 20 && kindOf(picture, slot) !== BOX;
    buckets[at] = shown ? stepOf(model.rootValue(slot)) : 255;
  }
  for (let step = 0; step <= STEPS; step++) {
    let any = false;
    for (let at = 0; at < marks.count; at++) {
      if (buckets[at] !== step) continue;
      if (!any) {
        context.beginPath();
        context.fillStyle = palette.strong[step];
        any = true;
      }
      const slot = marks.slots[at];
      shape(picture, slot, radius(picture, slot));
    }
    if (any) context.fill();
  }
}

/** Adds the shape of a node to the path: its result is told by the shape, not by the colour alone. */
function shape(picture: Picture, slot: number, size: number): void {
  const { context, model } = picture;
  const x = xOf(picture, slot);
  const y = yOf(picture, slot);
  const proven = model.proven[slot];
  if (proven === UNPROVEN) {
    if (size < 2.5) context.rect(x - size, y - size, 2 * size, 2 * size);
    else {
      context.moveTo(x + size, y);
      context.arc(x, y, size, 0, 2 * Math.PI);
    }
    return;
  }
  const reach = Math.max(3, 1.25 * size);
  if (proven === 0) {
    context.moveTo(x, y - reach);
    context.lineTo(x + reach, y);
    context.lineTo(x, y + reach);
    context.lineTo(x - reach, y);
  } else {
    const up = proven > 0 ? -1 : 1;
    context.moveTo(x, y + up * reach);
    context.lineTo(x + reach, y - up * 0.8 * reach);
    context.lineTo(x - reach, y - up * 0.8 * reach);
  }
  context.closePath();
}

function paintBoxes(picture: Picture, marks: Marks): void {
  const { context, model, palette, camera } = picture;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let at = 0; at < marks.count; at++) {
    const slot = marks.slots[at];
    const y = yOf(picture, slot);
    if (y < -40 || y > camera.height + 40 || kindOf(picture, slot) !== BOX) continue;
    const x = xOf(picture, slot);
    if (x < -WIDEST_BOX || x > camera.width + WIDEST_BOX) continue;
    const [width, height] = boxSize(picture, slot);
    context.beginPath();
    context.roundRect(x - width / 2, y - height / 2, width, height, model.terminal[slot] ? 2 : 8);
    context.fillStyle = palette.pale[stepOf(model.rootValue(slot))];
    context.fill();
    context.strokeStyle = model.pv[slot] ? palette.line : palette.link;
    context.lineWidth = model.pv[slot] ? 2 : 1;
    context.stroke();
    const proven = model.proven[slot];
    const sign = proven === UNPROVEN ? "" : `${verdictSign(proven)} `;
    context.fillStyle = palette.ink;
    context.font = `600 13px ${FONT}`;
    const title = `${sign}${model.root === slot ? model.text[slot] || "root" : model.text[slot]}`;
    const high = height > 40;
    context.fillText(title, x, high ? y - 10 : height > 21 ? y - 7 : y + 0.5, width - 6);
    if (height <= 21) continue;
    context.font = `11px ${FONT}`;
    const visits = compact(model.visits[slot]);
    const value = text(model.q[slot], signed);
    if (high) {
      context.fillText(width > 78 ? `${visits}  ${value}` : visits, x, y + (width > 78 ? 9 : 4), width - 6);
      if (width <= 78) context.fillText(value, x, y + 15, width - 6);
    } else context.fillText(visits, x, y + 8, width - 6);
  }
}

function outline(picture: Picture, slot: number, colour: string, width: number): void {
  const { context } = picture;
  const x = xOf(picture, slot);
  const y = yOf(picture, slot);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  if (kindOf(picture, slot) === BOX) {
    const [wide, high] = boxSize(picture, slot);
    context.roundRect(x - wide / 2 - 2, y - high / 2 - 2, wide + 4, high + 4, 10);
  } else context.arc(x, y, radius(picture, slot) + 4, 0, 2 * Math.PI);
  context.stroke();
}
