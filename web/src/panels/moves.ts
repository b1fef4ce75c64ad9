/** The table of moves: sortable, with an arrow on the board for the row under the pointer or the focus. */

import { byId, h, icon, setAttribute, setNumber, setText } from "../dom";
import { count, fixed, percent, signed, verdict } from "../format";
import type { LegalMove, MoveRow } from "../protocol";
import type { Store } from "../store";
import { COLUMNS, sortRows, type Column, type Row } from "./columns";

/** Whether a cell says something; a prior without noise does only where it differs. */
const isTold = (name: string, row: Row, value: unknown): boolean =>
  value !== null && (name !== "clean_prior" || row.clean_prior !== row.prior);

const SOLVED = "pondertree-solved";

interface Cells {
  element: HTMLTableRowElement;
  cells: Map<string, HTMLElement>;
  fill: HTMLElement;
  exclude: HTMLButtonElement;
  force: HTMLButtonElement;
}

export class MovesPanel {
  private readonly head = h("tr");
  private readonly body = h("tbody");
  private readonly rows = new Map<number, Cells>();
  private readonly empty = h("p", { class: "empty" });
  private readonly solveButton = h("button", { type: "button", class: "below", "data-testid": "solve" });
  private solving = false;
  private readonly table: HTMLTableElement;
  private readonly headers = new Map<string, HTMLTableCellElement>();
  private sort: { column: string; descending: boolean } = { column: "rank", descending: true };
  private focused: number | null = null;
  private readonly visible = new Set<Element>();
  private readonly observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        if (isIntersecting) this.visible.add(target);
        else this.visible.delete(target);
    },
    { rootMargin: "60px" },
  );

  constructor(
    private readonly store: Store,
    private readonly play: (action: number) => void,
  ) {
    for (const column of COLUMNS) this.head.append(this.header(column));
    this.head.append(h("th", { scope: "col", "data-column": "toggles" }, h("span", { class: "hidden" }, "Exclude or force")));
    this.table = h("table", { class: "moves", "aria-label": "Moves", "data-testid": "moves" }, h("thead", {}, this.head), this.body);
    this.solveButton.addEventListener("click", () => void (this.solving ? store.send({ type: "cancel" }) : this.solve()));
    byId("panel-moves").append(h("div", { class: "table-wrap" }, this.table), this.empty, this.solveButton);
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.table.addEventListener("pointerleave", () => store.setHover(null));
    store.on(["hello", "position", "status"], () => this.enable());
    store.on(["position"], () => this.resume());
    store.on(["frame", "solved"], () => this.update());
    store.on(["position"], () => this.rebuild());
    store.on(["hover"], () => this.mark());
  }

  private async solve(): Promise<void> {
    this.solving = true;
    this.keep(this.place);
    this.enable();
    const isOpen = (): boolean => this.store.status.state === "open";
    // What a lost connection ends goes on in the server.
    if (!(await this.store.send({ type: "solve" })) && isOpen()) this.keep("");
    this.solving = false;
    this.enable();
  }

  /** The position, as no other one of this or another server is named. */
  private get place(): string {
    return `${this.store.hello?.server} ${this.store.position?.position}`;
  }

  private keep(place: string): void {
    try {
      sessionStorage.setItem(SOLVED, place);
    } catch {
      // Without storage the values are asked for again by hand.
    }
  }

  /** Asks for the values again after a reload: the server has them, or goes on solving. */
  private resume(): void {
    const { solving, store } = this;
    try {
      if (!solving && !store.solved.size && store.position && sessionStorage.getItem(SOLVED) === this.place) void this.solve();
    } catch {
      // Without storage nothing is asked for.
    }
  }

  private enable(): void {
    const { hello, position, status } = this.store;
    this.solveButton.hidden = !hello?.game.solver;
    this.solveButton.disabled = status.state !== "open" || !position || position.over || (!this.solving && position.unsolvable !== "");
    this.solveButton.title = this.solving ? "" : position?.unsolvable || "Exact value of every move; given up after 20 s";
    setText(this.solveButton, this.solving ? "Solving… Cancel" : "Solve exactly");
  }

  private header(column: Column): HTMLTableCellElement {
    const button = h("button", { type: "button", title: column.help }, column.title);
    const cell = h("th", { scope: "col", class: column.text ? "text" : "", "data-column": column.name }, button);
    button.addEventListener("click", () => {
      const same = this.sort.column === column.name;
      this.sort = { column: column.name, descending: same ? !this.sort.descending : !column.text };
      this.update();
    });
    this.headers.set(column.name, cell);
    return cell;
  }

  private rebuild(): void {
    this.rows.clear();
    this.visible.clear();
    this.observer.disconnect();
    this.body.replaceChildren();
    this.focused = null;
    this.update();
  }

  /** The rows of the search, then the legal moves that it does not tell of. */
  private collect(): Row[] {
    const { position, frame, solved } = this.store;
    const moves = [...(frame?.moves ?? [])];
    if (position && moves.every((row) => row.visits === 0 && row.proven === null)) {
      // There is no best move yet: the game's own order is the one to read.
      const places = new Map(position.legal.map((move, place) => [move.action, place]));
      const place = (row: MoveRow): number => places.get(row.action) ?? moves.length;
      moves.sort((a, b) => place(a) - place(b));
    }
    const found: Row[] = moves.map((row, rank) => ({ ...row, rank, solved: solved.get(row.action) ?? null }));
    if (!position || this.store.hello?.game.num_actions === undefined) return found;
    const told = new Set(found.map((row) => row.action));
    const rest = position.legal.filter((move) => !told.has(move.action));
    return [...found, ...rest.map((move, place) => this.untold(move, found.length + place))];
  }

  private untold(move: LegalMove, rank: number): Row {
    const none: Omit<MoveRow, "action" | "text" | "visits" | "share" | "line"> = {
      prior: null, clean_prior: null, network: null, q: null, u: null, score: null, proven: null, distance: null,
    };
    const { action, text } = move;
    return { ...none, action, text, visits: 0, share: 0, line: [], rank, solved: this.store.solved.get(action) ?? null };
  }

  private update(): void {
    if (!byId("panel-moves").classList.contains("shown")) return;
    const rows = this.collect();
    this.empty.hidden = rows.length > 0;
    setText(this.empty, this.store.position?.over ? "The game is over." : "Start the search to see what it thinks of each move.");
    this.table.hidden = !rows.length;
    sortRows(rows, this.sort.column, this.sort.descending);
    for (const column of COLUMNS) {
      const used = !column.optional || rows.some((row) => isTold(column.name, row, column.value(row)));
      this.table.classList.toggle(`no-${column.name}`, !used);
      const header = this.headers.get(column.name);
      if (!header) continue;
      header.hidden = !used;
      setAttribute(header, "aria-sort", this.sort.column !== column.name ? null : this.sort.descending ? "descending" : "ascending");
    }
    const best = this.store.frame?.moves[0]?.action;
    let before: Element | null = null;
    for (const row of rows) {
      const cells = this.rows.get(row.action) ?? this.add(row);
      // While the search runs, only the rows in view follow it.
      if (!this.store.running || this.visible.has(cells.element)) this.fill(cells, row, row.action === best && (row.visits > 0 || row.proven === 1));
      const place: Element | null = before ? before.nextElementSibling : this.body.firstElementChild;
      if (place !== cells.element) {
        if (before) before.after(cells.element);
        else this.body.prepend(cells.element);
      }
      before = cells.element;
    }
    const shown = new Set(rows.map((row) => row.action));
    for (const [action, cells] of this.rows)
      if (!shown.has(action)) {
        cells.element.remove();
        this.observer.unobserve(cells.element);
        this.visible.delete(cells.element);
        this.rows.delete(action);
      }
    const current = this.focused !== null && this.rows.has(this.focused) ? this.focused : rows[0]?.action;
    for (const [action, { element }] of this.rows) element.tabIndex = action === current ? 0 : -1;
  }

  private add(row: Row): Cells {
    const { action } = row;
    const element = h("tr", { "data-action": action, "data-testid": `move-${action}` });
    const cells = new Map<string, HTMLElement>();
    const fill = h("span", { class: "fill" });
    for (const column of COLUMNS) {
      const cell = h("td", { class: `${column.name}${column.text ? " text" : ""}`, "data-column": column.name });
      const inner = column.name === "share" ? h("span") : cell;
      if (column.name === "share") cell.append(h("span", { class: "track" }, fill), inner);
      cells.set(column.name, inner);
      element.append(cell);
    }
    const exclude = this.toggle("exclude", action, "Exclude from the search");
    const force = this.toggle("only", action, "Search only this move and others marked so");
    element.append(h("td", { class: "toggles" }, force, exclude));
    element.addEventListener("pointerenter", () => this.store.setHover(action));
    element.addEventListener("focus", () => {
      this.focused = action;
      this.store.setHover(action);
    });
    element.addEventListener("blur", () => this.store.setHover(null));
    element.addEventListener("dblclick", () => this.play(action));
    const made = { element, cells, fill, exclude, force };
    this.fill(made, row, false);
    this.observer.observe(element);
    this.rows.set(action, made);
    return made;
  }

  private toggle(name: "exclude" | "only", action: number, label: string): HTMLButtonElement {
    const field = name === "only" ? "force" : "exclude";
    const change = (): void => {
      const now = this.store.settings?.[field] ?? [];
      const next = now.includes(action) ? now.filter((other) => other !== action) : [...now, action];
      // A move is either excluded or forced.
      const other = field === "force" ? "exclude" : "force";
      const rest = (this.store.settings?.[other] ?? []).filter((one) => one !== action);
      void this.store.send({ type: "settings", settings: { [field]: next, [other]: rest } });
    };
    const attributes = { type: "button", class: "quiet", title: label, "data-toggle": field, onclick: change };
    return h("button", attributes, icon(name));
  }

  private fill({ element, cells, fill, exclude, force }: Cells, row: Row, best: boolean): void {
    for (const column of COLUMNS) {
      const cell = cells.get(column.name);
      if (!cell) continue;
      const hidden = this.table.classList.contains(`no-${column.name}`);
      const outer = column.name === "share" ? cell.parentElement : cell;
      if (outer) outer.hidden = hidden;
      if (hidden) continue;
      this.show(cell, column.name, row);
    }
    fill.style.transform = `scaleX(${row.share.toFixed(3)})`;
    const settings = this.store.settings;
    const out = !!settings?.exclude.includes(row.action) || (!!settings?.force.length && !settings.force.includes(row.action));
    element.classList.toggle("best", best);
    element.classList.toggle("out", out);
    setAttribute(exclude, "aria-pressed", String(!!settings?.exclude.includes(row.action)));
    setAttribute(force, "aria-pressed", String(!!settings?.force.includes(row.action)));
    setAttribute(exclude, "aria-label", `Exclude ${row.text}`);
    setAttribute(force, "aria-label", `Force ${row.text}`);
    exclude.disabled = force.disabled = !!this.store.hello?.read_only;
  }

  private show(cell: HTMLElement, name: string, row: Row): void {
    if (name === "move" || name === "line") {
      const told = name === "move" ? row.text : row.line.slice(row.line[0] === row.text ? 1 : 0).join(" ");
      setText(cell, told);
      setAttribute(cell, "title", told || null);
    }
    else if (name === "visits") setNumber(cell, row.visits, count);
    else if (name === "share") setNumber(cell, row.share, percent);
    else if (name === "prior") setNumber(cell, row.prior, percent);
    else if (name === "clean_prior") setNumber(cell, row.clean_prior, percent);
    else if (name === "network") setNumber(cell, row.network, signed);
    else if (name === "q") setNumber(cell, row.q, signed);
    else if (name === "u") setNumber(cell, row.u, fixed);
    else if (name === "score") setNumber(cell, row.score, signed);
    else {
      const [value, distance] = name === "proven" ? [row.proven, row.distance] : [row.solved?.value, row.solved?.distance];
      setText(cell, verdict(value, distance));
      setAttribute(cell, "data-value", value === null || value === undefined ? "" : String(value));
      setAttribute(cell, "data-distance", distance === null || distance === undefined ? "" : String(distance));
      setAttribute(cell, "data-sign", value === null || value === undefined ? null : String(Math.sign(value)));
      cell.classList.add("verdict");
    }
  }

  private mark(): void {
    for (const [action, { element }] of this.rows) setAttribute(element, "aria-selected", action === this.store.hover ? "true" : null);
  }

  private key(event: KeyboardEvent): void {
    const rows = [...this.body.children] as HTMLElement[];
    const place = rows.findIndex((row) => row === document.activeElement);
    if (place < 0) return;
    const action = Number(rows[place].dataset.action);
    const cells = this.rows.get(action);
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined) rows[Math.max(0, Math.min(rows.length - 1, to))].focus();
    else if (event.key === "Enter") this.play(action);
    else if (event.key === "x") cells?.exclude.click();
    else if (event.key === "o") cells?.force.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
