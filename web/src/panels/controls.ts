/** Start, pause, single simulations, the limit, and the numbers of the search as a whole. */

import { byId, h, setAttribute, setIcon, setNumber, setText } from "../dom";
import { bytes, compact, count, seconds, signed, verdict, type Format, type Value } from "../format";
import type { Frame } from "../protocol";
import type { Store } from "../store";

type Statistic = { name: string; title: string; format: Format; value: (status: Frame["status"]) => Value };

const STATISTICS: Statistic[] = [
  { name: "simulations", title: "Simulations", format: count, value: (status) => status.simulations },
  { name: "rate", title: "Per second", format: compact, value: (status) => status.rate },
  { name: "seconds", title: "Time", format: seconds, value: (status) => status.seconds },
  { name: "nodes", title: "Nodes", format: compact, value: (status) => status.nodes },
  { name: "bytes", title: "Memory", format: bytes, value: (status) => status.bytes },
  { name: "value", title: "Value", format: signed, value: (status) => status.value },
  { name: "depth", title: "Depth", format: (value) => value.toFixed(1), value: (status) => status.depth?.[0] },
  { name: "max-depth", title: "", format: (value) => `/ ${count(value)}`, value: (status) => status.depth?.[1] },
];

export class Controls {
  private readonly run = byId<HTMLButtonElement>("run");
  private readonly stepButton = byId<HTMLButtonElement>("step");
  private readonly saveButton = byId<HTMLButtonElement>("save");
  private readonly kind = byId<HTMLSelectElement>("limit-kind");
  private readonly limit = byId<HTMLInputElement>("limit");
  private readonly numbers = new Map<string, HTMLElement>();
  private readonly best = h("dd", { "data-testid": "status-best" });
  private readonly runText = h("span");

  constructor(
    private readonly store: Store,
    private readonly stepped: () => void,
    private readonly token: string,
  ) {
    this.run.append(this.runText);
    this.stepButton.append(h("span", {}, "Step"));
    setIcon(this.stepButton, "step");
    this.stepButton.title = "Run one simulation (S)";
    setIcon(this.saveButton, "save");
    setAttribute(this.saveButton, "aria-label", "Save tree");
    this.saveButton.title = "Save the tree to a file";
    const list = byId("statistics");
    list.append(h("div", {}, h("dt", {}, "Best"), this.best));
    for (const { name, title } of STATISTICS) {
      const cell = h("dd", { "data-testid": `status-${name}` });
      this.numbers.set(name, cell);
      if (title) list.append(h("div", { "data-statistic": name }, h("dt", {}, title), cell));
      else list.lastElementChild?.append(cell);
    }
    this.run.addEventListener("click", () => this.toggle());
    this.stepButton.addEventListener("click", () => void this.step());
    this.saveButton.addEventListener("click", () => void this.save());
    this.kind.addEventListener("change", () => {
      const usual = this.kind.value === "seconds" ? 5 : 10_000;
      this.limit.value = this.kind.value === "none" ? "" : String(usual);
      this.sendLimit();
    });
    this.limit.addEventListener("change", () => this.sendLimit());
    byId("limits").addEventListener("submit", (event) => event.preventDefault());
    store.on(["position"], () => this.showLimit());
    store.on(["frame", "position", "status", "hello"], () => this.update());
  }

  toggle(): void {
    if (this.run.disabled) return;
    void this.store.send({ type: this.store.running ? "pause" : "start" });
  }

  async step(): Promise<void> {
    if (this.stepButton.disabled) return;
    this.stepped();
    await this.store.send({ type: "step" });
  }

  async save(): Promise<void> {
    const name = crypto.randomUUID();
    if (!(await this.store.send({ type: "save", name }))) return;
    const link = h("a", { href: `tree?token=${encodeURIComponent(this.token)}&name=${name}`, download: "" });
    document.body.append(link);
    link.click();
    link.remove();
  }

  private sendLimit(): void {
    const number = Number(this.limit.value);
    const kind = this.kind.value;
    const isRight = kind === "none" || (kind === "seconds" ? number > 0 : number >= 1 && Number.isInteger(number));
    const right = kind === "seconds" ? "a number of seconds above 0" : "a whole number of simulations, 1 or more";
    this.limit.setCustomValidity(isRight ? "" : `The limit must be ${right}.`);
    setAttribute(this.limit, "aria-invalid", isRight ? null : "true");
    if (!this.limit.reportValidity()) return;
    const simulations = kind === "simulations" ? number : null;
    void this.store.send({ type: "settings", settings: { simulations, seconds: kind === "seconds" ? number : null } });
  }

  private showLimit(): void {
    const settings = this.store.settings;
    if (!settings || document.activeElement === this.limit) return;
    const { simulations, seconds: time } = settings;
    this.kind.value = simulations !== null ? "simulations" : time !== null ? "seconds" : "none";
    this.limit.value = String(simulations ?? time ?? "");
    this.limit.setCustomValidity("");
    setAttribute(this.limit, "aria-invalid", null);
    this.limit.hidden = this.kind.value === "none";
  }

  private update(): void {
    const { running, searchable, frame, hello, position } = this.store;
    const status = frame?.status;
    const solved = status && !running ? verdict(status.proven, status.distance) : "";
    const isSolved = solved !== "" && searchable;
    setText(this.runText, running ? "Pause" : isSolved ? `Solved: ${solved}` : status?.simulations ? "Continue" : "Start");
    setIcon(this.run, running ? "pause" : "play");
    setAttribute(this.run, "data-running", String(running));
    this.run.title = isSolved ? "The result is proven: there is nothing left to search" : `${running ? "Pause" : "Start"} (Space)`;
    this.run.disabled = !searchable || isSolved;
    this.stepButton.disabled = !searchable || running || isSolved;
    const cannotSave = !!hello?.read_only || !!position?.over || this.store.chance;
    this.saveButton.disabled = !frame || running || cannotSave || this.store.status.state !== "open";
    this.kind.disabled = this.limit.disabled = !!hello?.read_only;
    for (const { name, title, format, value } of STATISTICS) {
      const cell = this.numbers.get(name);
      if (!cell) continue;
      const shown = status ? value(status) : null;
      setNumber(cell, shown, format);
      // The largest depth stands beside the mean one.
      if (!title && (shown === null || shown === undefined)) setText(cell, "");
    }
    const best = status && status.best !== null ? this.store.moveText(status.best) : "";
    setText(this.best, best ? `${best}${solved && ` ${solved}`}` : "–");
    setAttribute(this.best, "title", best || null);
    setAttribute(this.best, "data-value", status && status.best !== null ? String(status.best) : "");
  }
}
