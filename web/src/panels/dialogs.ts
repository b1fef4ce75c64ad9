/** Dialogs, and messages of errors that can be dismissed. */

import { byId, h, icon } from "../dom";

type Child = Node | string | false | null;

/** Shows a dialog; with `confirm`, its button submits a form and calls `act`, which tells whether the dialog may close. */
export function dialog(title: string, content: Child[], confirm?: string, act?: () => Promise<boolean>): HTMLDialogElement {
  const close = h("button", { type: "button", onclick: () => box.close() }, confirm ? "Cancel" : "Close");
  const foot = h("div", { class: "dialog-foot" }, close, confirm ? h("button", { type: "submit", class: "primary" }, confirm) : null);
  const form = h("form", { autocomplete: "off" }, ...content, foot);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void act?.().then((done) => done && box.close());
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

const MOST_TOASTS = 2;
const TOAST_SECONDS = 8;
const MOST_CHARACTERS = 300;

/**
 * Shows an error for a while, longer under the pointer or with the focus; the same message is shown once.
 * `kind` is that of the request that failed: its next success takes the message away.
 */
export function toast(message: string, kind = ""): void {
  const box = byId("toasts");
  if ([...box.children].some((shown) => shown.getAttribute("data-message") === message)) return;
  const cut = message.length > MOST_CHARACTERS;
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: () => shown.remove() }, icon("close"));
  const text = h("p", { title: cut && message }, cut ? `${message.slice(0, MOST_CHARACTERS)}…` : message);
  const shown: HTMLElement = h("div", { class: "toast", "data-message": message, "data-kind": kind, "data-testid": "toast" }, text, close);
  let timer = 0;
  const hold = (): void => clearTimeout(timer);
  const wait = (): void => {
    hold();
    if (!shown.matches(":hover, :focus-within")) timer = window.setTimeout(() => shown.remove(), 1000 * TOAST_SECONDS);
  };
  for (const name of ["pointerenter", "focusin"]) shown.addEventListener(name, hold);
  for (const name of ["pointerleave", "focusout"]) shown.addEventListener(name, wait);
  box.append(shown);
  wait();
  while (box.children.length > MOST_TOASTS) box.firstElementChild?.remove();
}

/** Takes the errors of a kind of request away. */
export function clearToasts(kind: string): void {
  for (const shown of [...byId("toasts").children]) if (shown.getAttribute("data-kind") === kind) shown.remove();
}
