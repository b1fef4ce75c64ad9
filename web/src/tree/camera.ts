/** Zooming, panning and fitting of the tree; zooming stretches the width, and the height of rows within limits. */

import type { Camera } from "./marks";

export const MARGIN = 18;
const TOP = 34;
const LEAST_ROW = 26;
const MOST_ROW = 140;
const FIT_ROW = 74;
const LEAST_FIT_ROW = 39;
const MOST_ZOOM = 1e7;
const ROW_POWER = 0.35;

export function newCamera(): Camera {
  return { scale: 1, x0: MARGIN, row: FIT_ROW, y0: TOP, width: 1, height: 1 };
}

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));

/** Shows the whole width, and as many rows as fit. */
export function fit(camera: Camera, depth: number): void {
  camera.scale = Math.max(1, camera.width - 2 * MARGIN);
  camera.x0 = MARGIN;
  camera.y0 = TOP;
  const room = camera.height - 2 * TOP;
  camera.row = clamp(room / Math.max(1, depth), LEAST_FIT_ROW, FIT_ROW);
}

/** Stretches the tree around a point of the canvas; rows grow a little too, until boxes have room for their numbers. */
export function zoom(camera: Camera, factor: number, x: number, y = camera.height / 2): void {
  const base = camera.width - 2 * MARGIN;
  const scale = clamp(camera.scale * factor, base * 0.5, base * MOST_ZOOM);
  camera.x0 = x - ((x - camera.x0) * scale) / camera.scale;
  const row = clamp(camera.row * (scale / camera.scale) ** ROW_POWER, LEAST_FIT_ROW, Math.max(FIT_ROW, camera.row));
  camera.scale = scale;
  stretch(camera, row / camera.row, y);
}

/** Makes rows higher or lower around a point of the canvas. */
export function stretch(camera: Camera, factor: number, y: number): void {
  const row = clamp(camera.row * factor, LEAST_ROW, MOST_ROW);
  camera.y0 = y - ((y - camera.y0) * row) / camera.row;
  camera.row = row;
}

/** Moves the tree, but never out of sight. */
export function pan(camera: Camera, x: number, y: number, depth: number): void {
  camera.x0 = clamp(camera.x0 + x, camera.width / 2 - camera.scale, camera.width / 2);
  camera.y0 = clamp(camera.y0 + y, Math.min(TOP, camera.height - 3 * TOP - depth * camera.row), camera.height / 2);
}

/** Brings an interval of the layout at a depth into view, zooming in if it is narrower than `least` pixels. */
export function reveal(camera: Camera, left: number, width: number, depth: number, least: number): void {
  if (width > 0 && width * camera.scale < least) camera.scale = Math.min(least / width, camera.width * MOST_ZOOM);
  const from = left * camera.scale + camera.x0;
  const to = from + width * camera.scale;
  if (from < MARGIN || to > camera.width - MARGIN) camera.x0 = camera.width / 2 - (left + width / 2) * camera.scale;
  // A tree that is no wider than the canvas stays where fitting puts it.
  if (camera.scale <= camera.width - 2 * MARGIN) camera.x0 = MARGIN;
  const y = depth * camera.row + camera.y0;
  if (y < TOP) camera.y0 += TOP - y;
  if (y > camera.height - 2 * TOP) camera.y0 -= y - (camera.height - 2 * TOP);
}
