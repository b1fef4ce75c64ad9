/** What the page knows of the server's search, and who is told when it changes. */

import { RequestError, type Connection, type RequestBody, type Status } from "./connection";
import { ShareHistory } from "./history";
import type { Frame, Hello, MoveRow, NodeDetails, Position, ServerMessage, Settings, Solved, Step } from "./protocol";
import { schedule } from "./schedule";
import { TreeModel } from "./tree/model";

export type Topic =
  | "hello" | "position" | "frame" | "node" | "step" | "solved" | "status" | "hover" | "select" | "overlay" | "theme";
export type Overlay = "none" | "visits" | "prior" | "q";

export class Store {
  hello: Hello | null = null;
  position: Position | null = null;
  frame: Frame | null = null;
  details: NodeDetails | null = null;
  step: Step | null = null;
  solved = new Map<number, Solved["moves"][number]>();
  status: Status = { state: "connecting", retryAt: null };
  readonly tree = new TreeModel();
  readonly history = new ShareHistory();
  /** The move whose arrow is shown alone, and the selected node of the tree. */
  hover: number | null = null;
  selected = 0;
  overlay: Overlay = "visits";

  connection!: Connection;
  report: (message: string, kind?: string) => void = () => undefined;
  /** Called with the kind of a request that succeeded. */
  succeeded: (kind: string) => void = () => undefined;
  private readonly jobs = new Map<Topic, (() => void)[]>();

  /** Runs a job in the next frame after any of the topics changed. */
  on(topics: Topic[], job: () => void): void {
    for (const topic of topics) this.jobs.set(topic, [...(this.jobs.get(topic) ?? []), job]);
  }

  changed(topic: Topic): void {
    for (const job of this.jobs.get(topic) ?? []) schedule(job);
  }

  /** Sends a request and reports its failure; false if it failed. */
  async send(body: RequestBody): Promise<boolean> {
    try {
      await this.connection.request(body);
      this.succeeded(body.type);
      return true;
    } catch (error) {
      this.report(error instanceof RequestError ? error.message : String(error), body.type);
      return false;
    }
  }

  receive(message: ServerMessage): void {
    if (message.type === "hello") this.greet(message);
    else if (message.type === "position") this.place(message);
    else if (message.type === "done" || message.type === "error" || message.position !== this.position?.position) return;
    else if (message.type === "frame") this.advance(message);
    else if (message.type === "node") {
      this.details = message;
      this.changed("node");
    } else if (message.type === "step") {
      this.step = message;
      this.changed("step");
    } else if (message.type === "solved") {
      this.solved = new Map(message.moves.map((move) => [move.action, move]));
      this.changed("solved");
    }
  }

  private greet(hello: Hello): void {
    if (this.hello && this.hello.server !== hello.server)
      this.report("The server was restarted: the game and the tree before are gone, this is a new game.", "restart");
    this.hello = hello;
    this.position = null;
    this.forget();
    this.changed("hello");
  }

  private place(position: Position): void {
    if (position.position !== this.position?.position) this.forget();
    this.position = position;
    this.changed("position");
  }

  private forget(): void {
    this.frame = this.details = this.step = null;
    this.solved = new Map();
    this.hover = null;
    this.selected = 0;
    this.tree.clear();
    this.history.clear();
    for (const topic of ["frame", "node", "step", "solved", "select"] as const) this.changed(topic);
  }

  private advance(frame: Frame): void {
    this.frame = frame;
    this.tree.apply(frame.tree);
    this.history.add(frame.status.simulations, frame.shares);
    this.changed("frame");
  }

  // -------------------------------------------------------------- what more than one panel asks

  get settings(): Settings | null {
    return this.position?.settings ?? null;
  }

  get running(): boolean {
    return this.frame?.status.running ?? false;
  }

  get searchable(): boolean {
    return this.status.state === "open" && !this.hello?.read_only && this.position !== null && !this.position.over && !this.chance;
  }

  /** Whether chance is to move: there is nothing to search, and an outcome is to be played or drawn. */
  get chance(): boolean {
    return this.position !== null && !this.position.over && this.position.to_play < 0;
  }

  row(action: number): MoveRow | undefined {
    return this.frame?.moves.find((row) => row.action === action);
  }

  moveText(action: number): string {
    const legal = this.position?.legal.find((move) => move.action === action);
    return legal?.text ?? this.row(action)?.text ?? String(action);
  }

  player(index: number): string {
    return index < 0 ? "Chance" : this.hello?.game.players[index] ?? `Player ${index + 1}`;
  }

  setHover(action: number | null): void {
    if (this.hover === action) return;
    this.hover = action;
    this.changed("hover");
  }

  /** Selects a node of the tree and asks for its details. */
  select(id: number): void {
    this.selected = id;
    this.changed("select");
    void this.send({ type: "inspect", id });
  }
}
