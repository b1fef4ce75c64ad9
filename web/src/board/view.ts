/** The playable board: cells to click, moves as text, buttons for what has no cell, and what the search thinks. */

import { byId, h, setIcon, setText, svg } from "../dom";
import { verdict } from "../format";
import type { LegalMove } from "../protocol";
import type { Overlay, Store } from "../store";
import { flip, parseBoard } from "./image";
import { drawOverlay, entries } from "./overlay";
import { Squares, type Point } from "./squares";

/** The place of a promotion among those of a pawn: the queen is the usual choice. Other moves keep their order. */
const promotion = (move: LegalMove): number => "QRBN".indexOf(/=([QRBN])/.exec(move.text)?.[1] ?? "");

export class BoardView {
  private readonly box = byId("board");
  private readonly chooser = byId("chooser");
  private readonly buttons = byId("move-buttons");
  private readonly turn = byId("turn");
  private readonly flipButton = byId<HTMLButtonElement>("flip");
  private readonly text = byId<HTMLInputElement>("move-text");
  private readonly playButton = byId<HTMLButtonElement>("play");
  private board: SVGSVGElement | null = null;
  private content: SVGGElement | null = null;
  private readonly overlay = svg("g", { class: "overlay" });
  private readonly hits = svg("g", { class: "cells" });
  private squares = new Squares([]);
  private from: string | null = null;
  private source = "";
  private flipped = false;

  constructor(
    private readonly store: Store,
    private readonly play: (move: { action?: number; text?: string }) => void,
  ) {
    this.flipButton.append("Flip");
    setIcon(this.flipButton, "flip");
    this.flipButton.addEventListener("click", () => this.turnBoard());
    byId("move-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.text.value.trim();
      this.text.value = "";
      if (text) this.play({ text });
    });
    const overlay = byId<HTMLSelectElement>("overlay");
    overlay.addEventListener("change", () => {
      store.overlay = overlay.value as Overlay;
      store.changed("overlay");
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
    store.on(["position"], () => this.show());
    store.on(["frame", "hover", "overlay"], () => this.drawOverlay());
    store.on(["frame", "position", "status"], () => this.describe());
  }

  turnBoard(): void {
    this.flipped = !this.flipped;
    this.show(true);
  }

  focus(): void {
    const target = this.hits.querySelector<SVGElement>('[tabindex="0"]') ?? this.buttons.querySelector("button") ?? this.text;
    target.focus();
  }

  private describe(): void {
    const { position, frame } = this.store;
    if (!position) return;
    const proven = frame && !position.over ? verdict(frame.status.proven, frame.status.distance) : "";
    const turn = position.over ? position.outcome || "The game is over." : `${this.store.player(position.to_play)} to move`;
    setText(this.turn, proven ? `${turn} · ${proven}` : turn);
    this.text.disabled = this.playButton.disabled = position.over || !!this.store.hello?.read_only;
  }

  private show(again = false): void {
    const { position } = this.store;
    if (!position) return;
    const { svg: source, text, flip: angle, cell } = position.board;
    this.squares = new Squares(position.legal);
    this.from = null;
    this.flipButton.hidden = !source || angle !== 180;
    if (!source) {
      if (this.source !== text || again) this.box.replaceChildren(h("pre", { "data-testid": "board-text" }, text));
      this.source = text;
      this.board = this.content = null;
    } else if (source !== this.source || again || !this.board) {
      this.source = source;
      this.draw(source);
    }
    this.addCells(cell || 20);
    this.addButtons();
    this.closeChooser();
    byId("move-list-texts").replaceChildren(...position.legal.slice(0, 300).map((move) => h("option", { value: move.text })));
    this.drawOverlay();
  }

  private draw(source: string): void {
    this.board = parseBoard(source);
    if (!this.board) {
      this.store.report("The board's drawing could not be read.");
      return;
    }
    this.content = svg("g", {}) as SVGGElement;
    this.content.append(...this.board.childNodes);
    this.board.append(this.content, this.hits, this.overlay);
    this.board.removeAttribute("width");
    this.board.removeAttribute("height");
    this.board.setAttribute("role", "group");
    this.board.addEventListener("click", (event) => this.clickBoard(event));
    this.box.replaceChildren(this.board);
    if (this.flips) flip(this.board, this.content);
  }

  private get flips(): boolean {
    return this.flipped && this.store.position?.board.flip === 180;
  }

  private readonly turned = (point: Point): Point => {
    if (!this.flips || !this.board) return point;
    const { x, y, width, height } = this.board.viewBox.baseVal;
    return [2 * x + width - point[0], 2 * y + height - point[1]];
  };

  private get size(): number {
    return this.store.position?.board.cell || 20;
  }

  private addCells(size: number): void {
    this.hits.replaceChildren();
    if (!this.board || this.store.hello?.read_only) return;
    const sources = this.squares.sources;
    const order = [...this.squares.cells.values()].map((cell) => ({ ...cell, at: this.turned(cell.point) }));
    order.sort((a, b) => a.at[1] - b.at[1] || a.at[0] - b.at[0]);
    for (const { key, at } of order) {
      const move = this.squares.between(key)[0];
      const cell = svg("rect", {
        x: at[0] - size / 2 + 0.5, y: at[1] - size / 2 + 0.5, width: size - 1, height: size - 1, rx: size * 0.12, class: "cell",
        role: "button", tabindex: -1, "data-cell": key, "aria-label": move ? move.text : this.cellName(key),
      });
      cell.addEventListener("click", (event) => {
        event.stopPropagation();
        this.clickCell(key);
      });
      this.hits.append(cell);
    }
    const first = [...this.hits.children].find((cell) => sources.has(cell.getAttribute("data-cell") ?? ""));
    first?.setAttribute("tabindex", "0");
  }

  /** The texts of the moves that begin or end on a cell: a board tells no names of its cells. */
  private cellName(key: string): string {
    const from = this.squares.targets(key);
    const texts = [...from].flatMap((to) => this.squares.between(key, to)).map((move) => move.text);
    return texts.length ? `from here: ${texts.slice(0, 6).join(", ")}` : "target";
  }

  /** A click beside the cells of moves counts for a column where each column has one move. */
  private clickBoard(event: MouseEvent): void {
    const matrix = this.board?.getScreenCTM();
    if (!matrix || this.squares.travels) return;
    const cells = [...this.squares.cells.values()];
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const near = cells.filter((cell) => Math.abs(this.turned(cell.point)[0] - point.x) <= this.size / 2);
    const columns = new Set(cells.map((cell) => cell.point[0]));
    if (near.length === 1 && columns.size === cells.length) this.clickCell(near[0].key);
  }

  private clickCell(key: string): void {
    this.closeChooser();
    const { from } = this;
    if (from !== null && from !== key) {
      const moves = this.squares.between(from, key);
      this.mark(null);
      if (moves.length) return this.choose(moves);
    } else if (from === key) return this.mark(null);
    const alone = this.squares.between(key);
    if (alone.length) this.choose(alone);
    else if (this.squares.sources.has(key)) this.mark(key);
  }

  private mark(from: string | null): void {
    this.from = from;
    const targets = from === null ? new Set<string>() : this.squares.targets(from);
    for (const cell of this.hits.children) {
      const key = cell.getAttribute("data-cell") ?? "";
      cell.classList.toggle("from", key === from);
      cell.classList.toggle("target", targets.has(key));
      if (targets.has(key) && from !== null)
        cell.setAttribute("aria-label", this.squares.between(from, key).map((move) => move.text).join(" or "));
    }
  }

  private choose(moves: LegalMove[]): void {
    if (moves.length === 1) return this.play({ action: moves[0].action });
    const buttons = [...moves].sort((a, b) => promotion(a) - promotion(b)).map((move) => this.moveButton(move));
    this.chooser.replaceChildren(...buttons);
    this.chooser.hidden = false;
    buttons[0].focus();
  }

  private closeChooser(): void {
    this.chooser.hidden = true;
    this.chooser.replaceChildren();
  }

  private moveButton(move: LegalMove): HTMLButtonElement {
    return h("button", { type: "button", title: move.text, "data-action": move.action, onclick: () => this.play({ action: move.action }) }, move.text);
  }

  private addButtons(): void {
    const position = this.store.position;
    const moves = this.board ? this.squares.unplaced : (position?.legal ?? []);
    this.buttons.hidden = !moves.length || !!this.store.hello?.read_only;
    this.buttons.replaceChildren(...moves.map((move) => this.moveButton(move)));
  }

  private drawOverlay(): void {
    const { position, frame, overlay, hover } = this.store;
    if (!position || !frame || !this.board) return this.overlay.replaceChildren();
    if (overlay === "none" && hover === null) return this.overlay.replaceChildren();
    this.overlay.replaceChildren(...drawOverlay(entries(position.legal, frame.moves, overlay, hover), this.size, this.turned));
  }

  /** Arrow keys go to the nearest cell in a direction; Enter and Space choose it, Escape lets go. */
  private key(event: KeyboardEvent): void {
    const cells = [...this.hits.children] as SVGRectElement[];
    const current = cells.find((cell) => cell === document.activeElement);
    if (event.key === "Escape") {
      this.mark(null);
      this.closeChooser();
      return;
    }
    if (!current) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      event.stopPropagation();
      this.clickCell(current.dataset.cell ?? "");
      return;
    }
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!direction) return;
    event.preventDefault();
    const centre = (cell: SVGRectElement): Point => [cell.x.baseVal.value, cell.y.baseVal.value];
    const [x, y] = centre(current);
    let best: SVGRectElement | null = null;
    let least = Infinity;
    for (const cell of cells) {
      const [dx, dy] = [centre(cell)[0] - x, centre(cell)[1] - y];
      const along = dx * direction[0] + dy * direction[1];
      const across = Math.abs(dx * direction[1]) + Math.abs(dy * direction[0]);
      if (along > 0.5 && along + 2.5 * across < least) [best, least] = [cell, along + 2.5 * across];
    }
    if (!best) return;
    for (const cell of cells) cell.setAttribute("tabindex", cell === best ? "0" : "-1");
    best.focus();
  }
}
