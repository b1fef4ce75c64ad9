/** Composes the page. */

import { BoardView } from "./board/view";
import { Connection, type Status } from "./connection";
import { byId, setAttribute, setText } from "./dom";
import { EvaluationGraph, SharesPanel } from "./panels/charts";
import { Controls } from "./panels/controls";
import { clearToasts, showShortcuts, toast } from "./panels/dialogs";
import { GamePanel, lastPly } from "./panels/game";
import { MovesPanel } from "./panels/moves";
import { NodePanel } from "./panels/node";
import { SettingsPanel } from "./panels/settings";
import { StepPanel } from "./panels/step";
import { Tabs } from "./panels/tabs";
import { account } from "./schedule";
import { Store } from "./store";
import { initTheme } from "./theme";
import { TreeView } from "./tree/view";

const token = new URLSearchParams(location.search).get("token") ?? "";
const address = new URL("socket", location.href);
address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
address.search = location.search;

/** Whether the tree has a place of its own; see layout.css. */
const isWide = matchMedia("(min-width: 1000px)");
const store = new Store();
store.report = toast;
store.succeeded = clearToasts;
const toggleTheme = initTheme(() => store.changed("theme"));
const game = new GamePanel(store);
const play = (move: { action?: number; text?: string }): void => void game.play(move);
const board = new BoardView(store, play);
const tabs = new Tabs(() => store.changed("frame"));
const controls = new Controls(store, () => tabs.show("step"), token);
new TreeView(store);
new MovesPanel(store, (action) => play({ action }));
new SharesPanel(store);
new EvaluationGraph(store, (ply) => game.jump(ply));
new StepPanel(store);
new NodePanel(store);
new SettingsPanel(store);

const connection = byId("connection");
let countdown = 0;

function showStatus(status: Status): void {
  clearInterval(countdown);
  store.status = status;
  setAttribute(connection, "data-state", status.state);
  const text = (): string => {
    if (status.state === "open") return "Connected";
    if (status.state === "refused") return "The server was restarted with a new address: open the address it printed.";
    if (status.retryAt === null) return "Connecting…";
    const left = Math.ceil((status.retryAt - performance.now()) / 1000);
    return left > 1 ? `Disconnected, retrying in ${left} s` : "Disconnected, retrying…";
  };
  setText(connection, text());
  if (status.retryAt !== null) countdown = window.setInterval(() => setText(connection, text()), 500);
  store.changed("status");
}

store.connection = new Connection(address.href, location.href, (message) => account(() => store.receive(message)), showStatus, toast);
store.on(["hello"], () => {
  const { hello } = store;
  if (!hello) return;
  const title = hello.read_only ? `${hello.game.title}, saved tree` : hello.game.title;
  setText(byId("title"), title);
  setText(byId("notice"), hello.read_only ? `Read-only: ${hello.reason}. Nothing can be searched or played here.` : "");
  byId("notice").hidden = !hello.read_only;
  document.title = `${title} – Pondertree`;
});
store.on(["select"], () => {
  // On narrow screens this would hide the tree.
  if (store.selected && isWide.matches) tabs.show("node");
});
byId("help").addEventListener("click", showShortcuts);

const focusTab = (tab: "moves" | "tree", selector: string): void => {
  tabs.show(tab);
  document.querySelector<HTMLElement>(selector)?.focus();
};
const keys: Record<string, () => void> = {
  " ": () => controls.toggle(),
  s: () => void controls.step(),
  m: () => void game.move(),
  t: () => byId("move-text").focus(),
  ArrowLeft: () => game.back(-1),
  ArrowRight: () => game.back(1),
  Home: () => game.jump(0),
  End: () => store.position && game.jump(lastPly(store.position)),
  n: () => byId("new").click(),
  f: () => board.turnBoard(),
  b: () => board.focus(),
  g: () => {
    if (!isWide.matches) tabs.show("tree");
    byId("tree").focus();
  },
  l: () => focusTab("moves", '#panel-moves tr[tabindex="0"]'),
  d: toggleTheme,
  "?": showShortcuts,
};

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog")) return;
  if (target.closest("input, select, textarea")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  // Space and Enter act on the button that has the focus.
  if (event.key === " " && target.closest("button")) return;
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

store.connection.open();
