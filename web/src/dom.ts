/** Small helpers to build and change elements. */

import { text, type Format, type Value } from "./format";

type Child = Node | string | null | undefined | false;
type Listener = { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };
type Attributes = { [name: string]: unknown } & Listener;

/** Creates an element. `on...` are listeners, `class` and `data-...` attributes; false and null are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) if (child) element.append(child);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** The element of the page with an id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element #${id}`);
  return element as T;
}

/** Writes a text only where it changes. */
export function setText(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

export function setAttribute(element: Element, name: string, value: string | null): void {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** Shows a number; `data-value` holds it in full precision. */
export function setNumber(element: Element, value: Value, format: Format): void {
  setText(element, text(value, format));
  setAttribute(element, "data-value", value === null || value === undefined ? "" : String(value));
}

export function number(value: Value, format: Format, attributes: Attributes = {}): HTMLSpanElement {
  const element = h("span", attributes);
  setNumber(element, value, format);
  return element;
}

/** Moves the focus among items with arrow keys: only one item of the list can be reached with Tab. */
export function rove(items: HTMLElement[], current: HTMLElement | null): void {
  for (const item of items) item.tabIndex = item === (current ?? items[0]) ? 0 : -1;
}

const ICONS: Record<string, string> = {
  play: "M7 4.5v15l12-7.5z",
  pause: "M6.5 5h4v14h-4zM13.5 5h4v14h-4z",
  step: "M5 5v14l9-7zM16 5h3v14h-3z",
  save: "M12 3v11m0 0l-4.5-4.5M12 14l4.5-4.5M4 17v3h16v-3",
  flip: "M7 4v14m0-14l-3 3.5M7 4l3 3.5M17 20V6m0 14l-3-3.5M17 20l3-3.5",
  first: "M6 5v14M18 5l-8 7 8 7z",
  back: "M15.5 5l-8 7 8 7z",
  forward: "M8.5 5l8 7-8 7z",
  last: "M18 5v14M6 5l8 7-8 7z",
  sun: "M12 7.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.600 17.600L19 19M19 5l-1.4 1.4M6.4 17.600L5 19",
  moon: "M20 14.5A8.5 8.5 0 019.5 4a8.5 8.5 0 1010.5 10.5z",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  only: "M12 4l2.4 5 5.600.700-4.100 3.800 1 5.5-4.900-2.700L7.100 19l1-5.5L4 9.700 9.600 9z",
  exclude: "M12 4a8 8 0 100 16 8 8 0 000-16zM6.5 6.5l11 11",
  close: "M6 6l12 12M18 6L6 18",
};
const FILLED = new Set(["play", "pause", "step", "back", "forward"]);

/** A drawn sign, hidden from screen readers: the button that holds it has the name. */
export function icon(name: string): SVGElement {
  const path = svg("path", { d: ICONS[name] ?? "" });
  const kind = FILLED.has(name) ? "icon filled" : "icon";
  return svg("svg", { viewBox: "0 0 24 24", class: kind, "aria-hidden": "true", focusable: "false" }, path);
}

export function setIcon(element: Element, name: string): void {
  if (element.getAttribute("data-icon") === name) return;
  element.setAttribute("data-icon", name);
  element.querySelector("svg")?.remove();
  element.prepend(icon(name));
}
