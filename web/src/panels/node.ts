/** The selected node of the tree: its position, everything `pondertree.Node` tells, and its moves. */

import { parseBoard } from "../board/image";
import { byId, h, number } from "../dom";
import { count, general, percent, signed, verdict } from "../format";
import type { MoveRow, NodeDetails } from "../protocol";
import type { Store } from "../store";

export class NodePanel {
  private readonly box = h("div", { "data-testid": "node-panel" });

  constructor(private readonly store: Store) {
    byId("panel-node").append(this.box);
    store.on(["node"], () => this.show());
    this.show();
  }

  private show(): void {
    const { details } = this.store;
    if (!details) {
      this.box.replaceChildren(h("p", { class: "empty" }, "Select a node of the tree to see its position and its numbers."));
      return;
    }
    this.box.replaceChildren(
      h("p", { class: "path", "data-testid": "node-path" }, details.path.length ? details.path.join(" › ") : "root"),
      h("div", { class: "node" }, this.preview(details), h("div", {}, this.facts(details), this.moves(details.moves))),
    );
  }

  private preview({ board }: NodeDetails): HTMLElement {
    const svg = board.svg ? parseBoard(board.svg) : null;
    svg?.removeAttribute("width");
    svg?.removeAttribute("height");
    return h("div", { class: "preview" }, svg ?? h("pre", {}, board.text));
  }

  private facts({ node }: NodeDetails): HTMLElement {
    const entries = Object.entries(node).map(([name, value]) => {
      const shown = typeof value === "number"
        ? number(value, general, { "data-testid": `node-${name}` })
        : h("span", { "data-testid": `node-${name}`, "data-value": String(value ?? "") }, value === null ? "–" : value === true ? "yes" : value === false ? "no" : value);
      return h("div", {}, h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, shown));
    });
    return h("dl", { class: "facts" }, ...entries);
  }

  private moves(moves: MoveRow[]): HTMLElement | null {
    if (!moves.length) return null;
    const heads = ["Move", "Visits", "Share", "Q", "Prior", "Proof"].map((name, place) => h("th", { scope: "col", class: place ? "" : "text" }, name));
    const rows = moves.map((row) =>
      h("tr", { "data-action": row.action },
        h("td", { class: "move", title: row.text }, row.text),
        h("td", {}, number(row.visits, count)),
        h("td", {}, number(row.share, percent)),
        h("td", {}, number(row.q, signed)),
        h("td", {}, number(row.prior, percent)),
        h("td", { class: "verdict", "data-sign": row.proven }, verdict(row.proven, row.distance))));
    return h("div", { class: "table-wrap" },
      h("table", { "aria-label": "Moves of the node", "data-testid": "node-moves" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)));
  }
}
