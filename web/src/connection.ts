/** The WebSocket to the server: numbered requests, their answers, and reconnection with back-off. */

import { VERSION, type Request, type ServerMessage } from "./protocol";

export type Status = { state: "connecting" | "open" | "waiting" | "refused"; retryAt: number | null };
type Body<T = Request> = T extends unknown ? Omit<T, "request"> : never;
export type RequestBody = Body;

const FIRST_DELAY = 250;
const LONGEST_DELAY = 5000;
const FORBIDDEN = 403;

/** Milliseconds before the n-th attempt; doubles, up to five seconds, with a random part so that pages spread out. */
export function backOff(attempt: number, random = Math.random()): number {
  const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** attempt);
  return delay * (0.75 + 0.25 * random);
}

export class RequestError extends Error {}

export class Connection {
  private socket: WebSocket | null = null;
  private attempt = 0;
  private timer = 0;
  private next = 1;
  private readonly pending = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();

  constructor(
    private readonly url: string,
    /** The address of the page, which the server refuses as it does the socket: a browser does not tell why that fails. */
    private readonly page: string,
    private readonly receive: (message: ServerMessage) => void,
    private readonly changed: (status: Status) => void,
    private readonly failed: (message: string) => void,
  ) {}

  open(): void {
    clearTimeout(this.timer);
    this.socket?.close();
    this.changed({ state: "connecting", retryAt: null });
    const socket = (this.socket = new WebSocket(this.url));
    socket.onmessage = (event) => socket === this.socket && this.message(String(event.data));
    socket.onclose = () => socket === this.socket && this.closed();
  }

  get isOpen(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Sends a request; resolves when the server has done it, rejects with its error. */
  request(body: RequestBody): Promise<void> {
    const { socket } = this;
    if (!socket || socket.readyState !== WebSocket.OPEN)
      return Promise.reject(new RequestError("Not connected: the server does not answer."));
    const request = this.next++;
    socket.send(JSON.stringify({ ...body, request }));
    return new Promise((resolve, reject) => this.pending.set(request, { resolve, reject }));
  }

  private message(text: string): void {
    let message: ServerMessage;
    try {
      message = JSON.parse(text) as ServerMessage;
    } catch {
      this.failed("The server sent a message that is not JSON.");
      return;
    }
    if (message.type === "hello") {
      if (message.version !== VERSION) {
        this.failed(`The server speaks version ${message.version} of the protocol, this page ${VERSION}: reload it.`);
        return;
      }
      this.attempt = 0;
      this.changed({ state: "open", retryAt: null });
    }
    if (message.type === "done" || message.type === "error") {
      const waiting = message.request === null ? undefined : this.pending.get(message.request);
      if (message.request !== null) this.pending.delete(message.request);
      if (message.type === "done") waiting?.resolve();
      else if (waiting) waiting.reject(new RequestError(message.message));
      else this.failed(message.message);
      return;
    }
    this.receive(message);
  }

  private closed(): void {
    this.socket = null;
    for (const { reject } of this.pending.values()) reject(new RequestError("The connection was lost."));
    this.pending.clear();
    const delay = backOff(this.attempt++);
    this.changed({ state: "waiting", retryAt: performance.now() + delay });
    this.timer = window.setTimeout(() => this.open(), delay);
    if (this.attempt > 1) void this.check();
  }

  /** Gives up if the server is there but does not know the token: it was restarted. */
  private async check(): Promise<void> {
    const status = await fetch(this.page, { cache: "no-store" }).then((answer) => answer.status, () => null);
    if (status !== FORBIDDEN || this.isOpen) return;
    clearTimeout(this.timer);
    const { socket } = this;
    this.socket = null;
    socket?.close();
    this.changed({ state: "refused", retryAt: null });
  }
}
