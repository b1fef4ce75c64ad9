/** One simulation with every term of each choice. */

import { byId, h, number } from "../dom";
import { NONE, general, signed } from "../format";
import type { Step } from "../protocol";
import type { Store } from "../store";

type Choice = Step["choices"][number];
type Term = number | boolean | string | null;

const HOW: Record<string, string> = {
  score: "by the highest score",
  forced: "by forced playouts",
  halving: "by sequential halving",
  untried: "opened: not tried before",
};

/** A term with its value in full precision. */
function term(name: string, value: Term | undefined): HTMLElement {
  if (typeof value === "number") return number(value, general, { "data-term": name });
  const text = value === null ? NONE : value === undefined ? "" : value === true ? "yes" : value === false ? "no" : value;
  return h("span", { "data-term": name, "data-value": String(value ?? "") }, text);
}

const title = (name: string): string => name.replaceAll("_", " ");

/** Splits the terms of compared moves into those that differ, and those that all moves have in common. */
export function splitTerms(compared: Choice["compared"]): { differing: string[]; common: [string, Term][] } {
  const columns = compared.map(({ terms }) => new Map<string, Term>(terms));
  const names = [...new Set(compared.flatMap(({ terms }) => terms.map(([name]) => name)))];
  const isCommon = (name: string): boolean =>
    compared.length > 1 && columns.every((column) => column.has(name) && column.get(name) === columns[0].get(name));
  const common = names.filter(isCommon).map((name): [string, Term] => [name, columns[0].get(name) ?? null]);
  return { differing: names.filter((name) => !isCommon(name)), common };
}

export class StepPanel {
  private readonly box = h("div", { "data-testid": "step-panel" });

  constructor(private readonly store: Store) {
    byId("panel-step").append(this.box);
    store.on(["step"], () => this.show());
    this.show();
  }

  private show(): void {
    const { step } = this.store;
    if (!step) {
      const hint = "Run one simulation (S) to see which moves were compared at each node, with every term of their scores, and the value that was backed up.";
      this.box.replaceChildren(h("p", { class: "empty" }, hint));
      return;
    }
    const values = step.values.map((value, player) =>
      h("div", {}, h("dt", {}, this.store.player(player)), h("dd", {}, number(value, signed, { "data-testid": `step-value-${player}` }))));
    this.box.replaceChildren(
      h("h2", {}, "Simulation ", number(step.simulation + 1, general, { "data-testid": "step-simulation" })),
      ...step.choices.map((choice, depth) => this.choice(choice, depth)),
      h("h3", {}, "Value backed up"),
      h("dl", { class: "facts" }, ...values),
    );
  }

  private choice(choice: Choice, depth: number): HTMLElement {
    const { player, text, how, compared, shared, chosen } = choice;
    const heading = h("h3", {}, `${depth + 1}. ${this.store.player(player)}: ${text} `, h("small", {}, HOW[how] ?? how));
    const section = h("section", { class: "choice", "data-testid": `choice-${depth}`, "data-chosen": chosen, "data-how": how }, heading);
    const { differing, common } = splitTerms(compared);
    section.append(this.terms("shared", "The node", shared));
    if (common.length) section.append(this.terms("common", "All moves", common));
    if (compared.length) section.append(h("div", { class: "table-wrap" }, this.table(choice, differing, depth)));
    return section;
  }

  private terms(kind: string, label: string, terms: [string, Term][]): HTMLElement {
    const items = terms.flatMap(([name, value]) => [h("dt", {}, title(name)), h("dd", {}, term(name, value))]);
    return h("dl", { class: "terms", "data-kind": kind, "aria-label": label }, h("dt", { class: "kind" }, label), ...items);
  }

  private table({ compared, chosen }: Choice, names: string[], depth: number): HTMLElement {
    const heads = ["Move", ...names.map(title), "score"].map((name, place) => h("th", { scope: "col", class: place ? "" : "text" }, name));
    const sorted = [...compared].sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity) || Number(b.action === chosen) - Number(a.action === chosen));
    const rows = sorted.map(({ action, text, terms, score }) => {
      const byName = new Map<string, Term>(terms);
      const isChosen = action === chosen;
      return h("tr", { class: isChosen ? "chosen" : "", "data-action": action, "aria-current": isChosen ? "true" : null },
        h("td", { class: "move", title: text }, isChosen ? `→ ${text}` : text),
        ...names.map((name) => h("td", {}, term(name, byName.get(name)))),
        h("td", {}, term("score", score)));
    });
    return h("table", { "aria-label": `Moves compared at depth ${depth + 1}` }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
  }
}
