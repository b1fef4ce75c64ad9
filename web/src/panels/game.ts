/** The game: moves played, going through them, whose turn the search takes, new games and set-up. */

import { byId, h, icon, setAttribute, setText } from "../dom";
import type { Position } from "../protocol";
import type { Store } from "../store";
import { dialog } from "./dialogs";

const NAVIGATION: [string, string, ((ply: number, most: number) => number) | null][] = [
  ["first", "First position (Home)", () => 0],
  ["back", "Take back (←); against the search its reply, too", null],
  ["forward", "Forward (→)", (ply) => ply + 1],
  ["last", "Last position (End)", (_, most) => most],
];

const SIDES = "pondertree-sides";

export const lastPly = (position: Position): number => position.first + position.moves.length;

export class GamePanel {
  private readonly list = byId("game-moves");
  private readonly sides = byId<HTMLSelectElement>("sides");
  private readonly reply = byId<HTMLButtonElement>("reply");
  private readonly newButton = byId<HTMLButtonElement>("new");
  private readonly setupButton = byId<HTMLButtonElement>("setup");
  private readonly buttons: HTMLButtonElement[] = [];
  private busy = false;
  private isGreeted = false;

  constructor(private readonly store: Store) {
    for (const [name, label, to] of NAVIGATION) {
      const button = h("button", { type: "button", class: "quiet", title: label, "aria-label": label, "data-testid": `go-${name}` }, icon(name));
      button.addEventListener("click", () => {
        const { position } = this.store;
        if (!to) this.back(-1);
        else if (position) this.jump(to(position.ply, lastPly(position)));
      });
      this.buttons.push(button);
      byId("navigation").append(button);
    }
    this.sides.addEventListener("change", () => {
      this.keepSides();
      void this.answer();
    });
    this.reply.addEventListener("click", () => void this.move());
    this.newButton.title = "Begin again from the first position of this game: that of Set up… or of the command (N)";
    this.newButton.addEventListener("click", () => void this.begin());
    this.setupButton.addEventListener("click", () => this.setUp());
    store.on(["hello"], () => this.showSides());
    store.on(["position", "status", "frame"], () => this.enable());
    store.on(["position"], () => this.showMoves());
    store.on(["position"], () => this.resume());
  }

  private async begin(): Promise<void> {
    if (await this.store.send({ type: "new" })) await this.answer();
  }

  /** Plays a move of the user; the search answers if it has the other side. */
  async play(move: { action?: number; text?: string }): Promise<void> {
    const { position } = this.store;
    if (!position || this.store.hello?.read_only || this.busy) return;
    const reply = this.sides.value !== "all" && this.sides.value !== "none";
    this.busy = true;
    try {
      await this.store.send({ type: "play", ...move, ...(reply ? { reply } : {}) });
    } finally {
      this.busy = false;
    }
    await this.answer();
  }

  /** Lets the search play while it is to move on a side that the user did not take. */
  async answer(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      // A move that was paused is not played, and not asked for again: only a new position is.
      for (let last = -1; this.isSearchToMove() && last !== this.store.position?.position; ) {
        last = this.store.position?.position ?? -1;
        if (!(await this.store.send({ type: "move" }))) break;
      }
    } finally {
      this.busy = false;
    }
  }

  async move(): Promise<void> {
    if (this.busy || !(this.store.searchable || this.store.chance)) return;
    await this.store.send({ type: "move" });
    await this.answer();
  }

  jump(ply: number): void {
    const { position } = this.store;
    if (!position || ply < 0 || ply > lastPly(position) || ply === position.ply) return;
    void this.store.send({ type: "goto", ply });
  }

  back(by: number): void {
    const { position } = this.store;
    if (position) this.jump(by < 0 ? this.before(position) : position.ply + by);
  }

  /** The ply before the shown one; against the search the last one at which the user was to move, if there is one. */
  private before(position: Position): number {
    const side = Number(this.sides.value);
    const mover = (ply: number): number | undefined => position.moves[ply - position.first]?.player;
    let ply = position.ply - 1;
    while (!Number.isNaN(side) && ply > position.first && mover(ply) !== side) ply--;
    return Number.isNaN(side) || mover(ply) === side ? ply : position.ply - 1;
  }

  private isSearchToMove(): boolean {
    const { position, searchable } = this.store;
    if (!position || !searchable || this.sides.value === "all") return false;
    return this.sides.value === "none" || position.to_play !== Number(this.sides.value);
  }

  private showSides(): void {
    const players = this.store.hello?.game.players ?? [];
    const chosen = this.keptSides();
    this.isGreeted = true;
    const options: [string, string][] = [["all", players.length > 1 ? "all sides" : "yourself"], ...players.map((name, place): [string, string] => [String(place), name]), ["none", "nobody: watch"]];
    this.sides.replaceChildren(...options.filter(([value]) => players.length > 1 || Number.isNaN(Number(value))).map(([value, title]) => h("option", { value }, title)));
    this.sides.value = [...this.sides.options].some((option) => option.value === chosen) ? chosen : "all";
  }

  private keptSides(): string {
    try {
      return sessionStorage.getItem(`${SIDES}-${this.store.hello?.game.name}`) ?? "all";
    } catch {
      return this.sides.value || "all";
    }
  }

  private keepSides(): void {
    try {
      sessionStorage.setItem(`${SIDES}-${this.store.hello?.game.name}`, this.sides.value);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  }

  /** After a reload the search goes on playing, unless moves were taken back. */
  private resume(): void {
    const { position } = this.store;
    if (!this.isGreeted || !position) return;
    this.isGreeted = false;
    if (position.ply === lastPly(position)) void this.answer();
  }

  private enable(): void {
    const { position, hello, searchable, status } = this.store;
    const fixed = !!hello?.read_only || status.state !== "open";
    const [ply, most] = [position?.ply ?? 0, position ? lastPly(position) : 0];
    for (const [place, button] of this.buttons.entries()) button.disabled = fixed || (place < 2 ? ply === 0 : ply === most);
    const draws = this.store.chance && !fixed;
    this.reply.disabled = !searchable && !draws;
    setText(this.reply, draws ? "Draw an outcome" : "Let it move");
    this.sides.disabled = this.newButton.disabled = this.setupButton.disabled = fixed;
  }

  private showMoves(): void {
    const { position } = this.store;
    if (!position) return;
    const items: HTMLElement[] = [];
    const start = position.moves[0]?.player ?? 0;
    const offset = (start + position.first) % 2;
    const pairs = this.store.hello?.game.players.length === 2 && !this.store.hello.game.chance;
    for (const [place, move] of position.moves.entries()) {
      const ply = position.first + place + 1;
      const first = !pairs || (ply - 1 + offset) % 2 === 0 || place === 0;
      const label = pairs ? Math.floor((ply - 1 + offset) / 2) + 1 : ply;
      if (first) items.push(h("span", { class: "turn-number" }, `${label}.`));
      if (place === 0 && pairs && (ply - 1 + offset) % 2 === 1) items.push(h("span", {}, "…"));
      const button = h("button", {
        type: "button", title: move.text, "data-ply": ply, class: ply > position.ply ? "future" : "", "aria-current": ply === position.ply ? "step" : null,
        "aria-label": `${label}. ${this.store.player(move.player)} ${move.text}`, onclick: () => this.jump(ply),
      }, move.text);
      if (!pairs) button.style.gridColumn = "2 / 4";
      items.push(button);
    }
    this.list.replaceChildren(h("li", {}, ...items));
    setAttribute(this.list, "data-ply", String(position.ply));
    const current = this.list.querySelector("[aria-current]");
    if (current) this.list.scrollTop = (current as HTMLElement).offsetTop - this.list.offsetTop - this.list.clientHeight / 2;
  }

  private setUp(): void {
    const { hello, position } = this.store;
    if (!hello || !position) return;
    const entry = (name: string, value: string, placeholder = ""): HTMLInputElement =>
      h("input", { type: "text", name, value, placeholder, spellcheck: "false", "aria-describedby": `${name}-error`, "data-testid": `setup-${name}` });
    const played = position.moves.slice(0, position.ply - position.first).map((move) => move.text).join(" ");
    const fen = entry("fen", "", position.fen ?? "");
    const moves = entry("moves", hello.game.fen ? "" : played);
    const errors = { fen: setupError("fen"), moves: setupError("moves") };
    const fill = (): void => {
      fen.value = position.fen ?? "";
      fen.focus();
    };
    const fields = [
      hello.game.fen && h("label", {}, "Position as FEN; empty for the start position", fen, errors.fen),
      hello.game.fen && h("button", { type: "button", onclick: fill, "data-testid": "setup-shown" }, "Use the position shown"),
      h("label", {}, hello.game.fen ? "Moves, played from that position" : "Moves from the start", moves, errors.moves),
    ];
    dialog("Set up a position", fields, "Set up", async () => {
      const body = hello.game.fen && fen.value.trim() ? { fen: fen.value.trim() } : {};
      for (const [name, field] of [["fen", fen], ["moves", moves]] as const) {
        setText(errors[name], "");
        setAttribute(field, "aria-invalid", null);
      }
      try {
        await this.store.connection.request({ type: "setup", ...body, moves: moves.value.trim() });
        void this.answer();
        return true;
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        const name = message.startsWith("--fen") ? "fen" : "moves";
        // The server names the option of the command line.
        setText(errors[name], message.replace(/^--(fen|moves)(: |, )?/, "").replace(/^./, (first) => first.toUpperCase()));
        const field = name === "fen" ? fen : moves;
        setAttribute(field, "aria-invalid", "true");
        field.focus();
        return false;
      }
    });
  }
}

const setupError = (name: string): HTMLElement =>
  h("small", { id: `${name}-error`, class: "error", role: "alert", "data-testid": `setup-${name}-error` });
