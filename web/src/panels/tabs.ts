/** The tabs of the panels. On wide screens the tree has a place of its own, and its tab is hidden by the style sheet. */

import { byId, h, setAttribute } from "../dom";

export type Tab = "tree" | "moves" | "shares" | "step" | "node" | "settings";
const TABS: [Tab, string][] = [
  ["moves", "Moves"],
  ["tree", "Tree"],
  ["shares", "Shares"],
  ["step", "Simulation"],
  ["node", "Node"],
  ["settings", "Settings"],
];

export class Tabs {
  private readonly buttons = new Map<Tab, HTMLButtonElement>();

  constructor(private readonly shown: (tab: Tab) => void) {
    const list = byId("tabs");
    for (const [tab, title] of TABS) {
      const button = h("button", {
        type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": `panel-${tab}`, "data-testid": `tab-${tab}`, onclick: () => this.show(tab),
      }, title);
      this.buttons.set(tab, button);
      list.append(button);
    }
    list.addEventListener("keydown", (event) => this.key(event));
    this.show("moves");
  }

  show(tab: Tab, focus = false): void {
    for (const [name, button] of this.buttons) {
      setAttribute(button, "aria-selected", String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
      byId(`panel-${name}`).classList.toggle("shown", name === tab);
    }
    if (focus) this.buttons.get(tab)?.focus();
    this.shown(tab);
  }

  private key(event: KeyboardEvent): void {
    const visible = TABS.map(([tab]) => tab).filter((tab) => this.buttons.get(tab)?.offsetParent);
    const place = visible.findIndex((tab) => this.buttons.get(tab)?.getAttribute("aria-selected") === "true");
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: visible.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(visible[(to + visible.length) % visible.length], true);
  }
}
