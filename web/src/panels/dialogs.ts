/** Dialogs, and messages of errors that can be dismissed. */

import { byId, h, icon } from "../dom";

type Child = Node | string | false | null;

/** Shows a dialog; with `confirm`, its button submits a form and calls `act`. */
export function dialog(title: string, content: Child[], confirm?: string, act?: () => void): HTMLDialogElement {
  const close = h("button", { type: "button", onclick: () => box.close() }, confirm ? "Cancel" : "Close");
  const foot = h("div", { class: "dialog-foot" }, close, confirm ? h("button", { type: "submit", class: "primary" }, confirm) : null);
  const form = h("form", { autocomplete: "off" }, ...content, foot);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    box.close();
    act?.();
  });
  const heading = h("h2", { id: "dialog-title" }, title);
  const box: HTMLDialogElement = h("dialog", { "aria-labelledby": "dialog-title" }, heading, form);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

export const SHORTCUTS: [string, string][] = [
  ["Space", "start or pause the search"],
  ["S", "one simulation, with every term"],
  ["M", "let the search play a move"],
  ["T", "type a move"],
  ["← →", "take back and forward"],
  ["Home End", "first and last position"],
  ["N", "new game"],
  ["F", "flip the board"],
  ["B", "go to the board; arrow keys move, Enter chooses"],
  ["G", "go to the tree"],
  ["L", "go to the table of moves"],
  ["D", "light or dark"],
  ["?", "this list"],
];

export const TREE_SHORTCUTS: [string, string][] = [
  ["↑ ↓ ← →", "parent, most visited reply, neighbours"],
  ["Enter", "fold or unfold"],
  ["+ − 0", "zoom, whole tree"],
  ["End", "end of the best line"],
  ["B", "follow the best line"],
  ["Wheel", "zoom; Shift scrolls, Alt changes the height of rows"],
];

export const TABLE_SHORTCUTS: [string, string][] = [
  ["↑ ↓", "go through the moves; the board shows them"],
  ["Enter", "play the move"],
  ["X", "exclude it from the search"],
  ["O", "search only this move"],
];

export function showShortcuts(): void {
  const list = (entries: [string, string][]): HTMLElement =>
    h("dl", { class: "shortcuts" }, ...entries.flatMap(([keys, help]) => [
      h("dt", {}, ...keys.split(" ").map((key) => h("kbd", {}, key))),
      h("dd", {}, help),
    ]));
  dialog("Keyboard", [list(SHORTCUTS), h("h3", {}, "In the tree"), list(TREE_SHORTCUTS), h("h3", {}, "In the table of moves"), list(TABLE_SHORTCUTS)]);
}

const MOST_TOASTS = 4;

/** Shows an error; the same message is shown once. */
export function toast(message: string): void {
  const box = byId("toasts");
  if ([...box.children].some((shown) => shown.getAttribute("data-message") === message)) return;
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: () => shown.remove() }, icon("close"));
  const shown: HTMLElement = h("div", { class: "toast", "data-message": message, "data-testid": "toast" }, h("p", {}, message), close);
  box.append(shown);
  while (box.children.length > MOST_TOASTS) box.firstElementChild?.remove();
}
