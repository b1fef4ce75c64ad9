/** One simulation with every term of each choice. */

import { byId, h, number } from "../dom";
import { NONE, general, signed } from "../format";
import type { Step } from "../protocol";
import type { Store } from "../store";

type Choice = Step["choices"][number];
type Compared = Choice["compared"][number];

/** A term with its value in full precision; absent ones are empty. */
function term(name: string, value: number | boolean | string | null | undefined): HTMLElement {
  if (typeof value === "number") return number(value, general, { "data-term": name });
  const text = value === null ? NONE : value === undefined ? "" : value === true ? "yes" : value === false ? "no" : value;
  return h("span", { "data-term": name, "data-value": String(value ?? "") }, text);
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
      this.box.replaceChildren(
        h("p", { class: "empty" }, "Run one simulation (S) to see which moves were compared at each node, with every term of their scores, and the value that was backed up."),
      );
      return;
    }
    const values = step.values.map((value, player) =>
      h("div", {}, h("dt", {}, this.store.player(player)), h("dd", {}, number(value, signed, { "data-testid": `step-value-${player}` }))));
    this.box.replaceChildren(
      h("h2", {}, "Simulation ", number(step.simulation, general, { "data-testid": "step-simulation" })),
      ...step.choices.map((choice, depth) => this.choice(choice, depth)),
      h("h3", {}, "Value backed up"),
      h("dl", { class: "facts" }, ...values),
    );
  }

  private choice(choice: Choice, depth: number): HTMLElement {
    const { player, text, how, compared } = choice;
    const title = h("h3", {}, `${depth + 1}. ${this.store.player(player)}: ${text} `, h("small", {}, how));
    const section = h("section", { class: "choice", "data-testid": `choice-${depth}`, "data-chosen": choice.chosen }, title);
    if (choice.shared.length) section.append(h("dl", { class: "shared" }, ...choice.shared.flatMap(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, term(name, value))])));
    if (compared.length) section.append(h("div", { class: "table-wrap" }, this.table(choice, depth)));
    return section;
  }

  private table({ compared, chosen }: Choice, depth: number): HTMLElement {
    const names = [...new Set(compared.flatMap(({ terms }) => terms.map(([name]) => name)))];
    const heads = ["Move", ...names.map((name) => name.replaceAll("_", " ")), "Score"].map((name, place) => h("th", { scope: "col", class: place ? "" : "text" }, name));
    const rows = compared.map((entry) => this.row(entry, names, entry.action === chosen));
    return h("table", { "aria-label": `Moves compared at depth ${depth + 1}` }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
  }

  private row({ action, text, terms, score }: Compared, names: string[], chosen: boolean): HTMLElement {
    const byName = new Map(terms);
    const cells = names.map((name) => {
      return h("td", {}, term(name, byName.get(name)));
    });
    const attributes = { class: chosen ? "chosen" : "", "data-action": action, "aria-current": chosen ? "true" : null };
    return h("tr", attributes, h("td", { class: "move" }, chosen ? `→ ${text}` : text), ...cells, h("td", {}, number(score, general, { "data-term": "score" })));
  }
}
