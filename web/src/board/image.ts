/** The server's drawing of a board as elements of the page: nothing in it can run or load anything. */

const ALLOWED = new Set(["svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "title", "desc"]);
const SVG = "http://www.w3.org/2000/svg";

/** Parses an SVG document; null if it is not one. Elements and attributes that boards do not need are left out. */
export function parseBoard(source: string): SVGSVGElement | null {
  const parsed = new DOMParser().parseFromString(source, "image/svg+xml");
  const root = parsed.documentElement;
  if (root.namespaceURI !== SVG || root.localName !== "svg" || parsed.querySelector("parsererror")) return null;
  for (const element of [...root.querySelectorAll("*")])
    if (element.namespaceURI !== SVG || !ALLOWED.has(element.localName)) element.remove();
  for (const element of [root, ...root.querySelectorAll("*")])
    for (const { name, value } of [...element.attributes])
      if (/^on|href|^style$/i.test(name) || (/url\(/i.test(value) && name !== "aria-label")) element.removeAttribute(name);
  return document.importNode(root, true) as unknown as SVGSVGElement;
}

/** Splits texts that place many glyphs, so that each can be turned upright on a flipped board. */
function splitTexts(board: SVGSVGElement): SVGTextElement[] {
  const single: SVGTextElement[] = [];
  for (const element of [...board.querySelectorAll("text")]) {
    const xs = (element.getAttribute("x") ?? "").trim().split(/[\s,]+/);
    const ys = (element.getAttribute("y") ?? "").trim().split(/[\s,]+/);
    const glyphs = [...(element.textContent ?? "")];
    if (xs.length < 2 || glyphs.length !== xs.length) {
      single.push(element);
      continue;
    }
    for (const [place, glyph] of glyphs.entries()) {
      const part = element.cloneNode(false) as SVGTextElement;
      part.setAttribute("x", xs[place]);
      part.setAttribute("y", ys[Math.min(place, ys.length - 1)]);
      part.textContent = glyph;
      element.before(part);
      single.push(part);
    }
    element.remove();
  }
  return single;
}

/** A piece in a path: it begins at its centre, and all that follows is relative. */
const PIECE = /M(-?[\d.]+)[ ,](-?[\d.]+)(m[^M]*)/g;

/** Splits a path of pieces, each with its centre; null for other paths. */
export function splitPieces(path: string): { x: number; y: number; path: string }[] | null {
  const pieces = [...path.matchAll(PIECE)].map(([part, x, y]) => ({ x: Number(x), y: Number(y), path: part }));
  return pieces.length && pieces.map((piece) => piece.path).join("") === path ? pieces : null;
}

/** Turns a board by 180 degrees about its middle; its texts and pieces stay upright. */
export function flip(board: SVGSVGElement, content: SVGGElement): void {
  const box = board.viewBox.baseVal;
  content.setAttribute("transform", `rotate(180 ${box.x + box.width / 2} ${box.y + box.height / 2})`);
  for (const element of splitTexts(board)) {
    const { x, y, width, height } = element.getBBox();
    element.setAttribute("transform", `rotate(180 ${x + width / 2} ${y + height / 2})`);
  }
  for (const element of [...content.querySelectorAll("path")]) {
    const pieces = splitPieces(element.getAttribute("d") ?? "");
    for (const { x, y, path } of pieces ?? []) {
      const piece = element.cloneNode(false) as SVGPathElement;
      piece.setAttribute("d", path);
      piece.setAttribute("transform", `rotate(180 ${x} ${y})`);
      element.before(piece);
    }
    if (pieces) element.remove();
  }
}
