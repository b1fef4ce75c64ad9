/** The preset, its parameters with help and bounds, and the seed. Changes are sent together. */

import { byId, h, setAttribute } from "../dom";
import type { Parameter, Preset, Settings } from "../protocol";
import type { Store } from "../store";

type Value = number | boolean | string | null;
type Field = HTMLInputElement | HTMLSelectElement;

export class SettingsPanel {
  private readonly form = h("form", { class: "settings", autocomplete: "off", "data-testid": "settings" });
  private readonly fields = new Map<string, Field>();
  private readonly seed = h("input", { type: "number", id: "seed", step: 1, min: 0, placeholder: "random", "data-testid": "seed" });
  private preset: HTMLSelectElement | null = null;
  private shown = "";

  constructor(private readonly store: Store) {
    byId("panel-settings").append(this.form);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.apply();
    });
    this.form.addEventListener("reset", (event) => {
      event.preventDefault();
      this.shown = "";
      this.update();
    });
    this.form.addEventListener("input", () => this.mark());
    store.on(["hello", "position"], () => this.update());
  }

  private get presets(): Preset[] {
    return this.store.hello?.presets ?? [];
  }

  /** Shows what the server has; unsent changes stay while the server's settings do. */
  private update(): void {
    const settings = this.store.settings;
    if (!settings) return;
    if (!this.presets.length) {
      this.form.replaceChildren(h("p", { class: "empty" }, "The file does not hold the settings of its search."));
      return;
    }
    const key = JSON.stringify([this.store.hello?.server, settings.preset, settings.parameters, settings.seed]);
    if (key === this.shown) return;
    this.shown = key;
    this.build(settings.preset, settings);
  }

  private build(name: string, settings: Settings): void {
    const preset = this.presets.find((candidate) => candidate.name === name) ?? this.presets[0];
    const choices = this.presets.map(({ name: value, title }) => h("option", { value, selected: value === preset.name }, title));
    this.preset = h("select", { id: "preset", "data-testid": "preset" }, ...choices);
    this.preset.addEventListener("change", () => this.build(this.preset?.value ?? name, { ...settings, parameters: {} }));
    this.fields.clear();
    const parameters = preset.parameters.map((parameter) => this.field(parameter, settings.parameters[parameter.name]));
    this.seed.value = settings.seed === null ? "" : String(settings.seed);
    const seed = h("div", { class: "field" }, h("label", { for: "seed" }, "Seed"), this.seed, h("small", {}, "The same seed builds the same tree."));
    const fixed = !!this.store.hello?.read_only;
    this.form.replaceChildren(
      h("div", { class: "fields" }, h("div", { class: "field" }, h("label", { for: "preset" }, "Search"), this.preset), seed),
      h("div", { class: "fields" }, ...parameters),
      h("div", { class: "actions" },
        h("button", { type: "submit", class: "primary", disabled: fixed, "data-testid": "apply" }, "Apply"),
        h("button", { type: "reset", disabled: fixed }, "Undo")),
    );
    this.mark();
  }

  private field(parameter: Parameter, given: Value | undefined): HTMLElement {
    const { name, type, help, least, above, most } = parameter;
    const value = given === undefined ? parameter.default : given;
    const id = `parameter-${name}`;
    const common = { id, "data-testid": id, "aria-describedby": `${id}-help` };
    let field: Field;
    if (type === "choice")
      field = h("select", common, ...(parameter.choices ?? []).map((choice) => h("option", { value: choice, selected: choice === value }, choice)));
    else if (type === "bool") field = h("input", { ...common, type: "checkbox", checked: value === true });
    else if (type === "text") field = h("input", { ...common, type: "text", value, spellcheck: "false" });
    else
      field = h("input", { ...common, type: "number", step: type === "int" ? 1 : "any", min: least ?? above, max: most, value, placeholder: parameter.default === null ? "none" : "" });
    this.fields.set(name, field);
    const bounds = above !== undefined ? `above ${above}` : least === undefined && most === undefined ? "" : `${least ?? "…"} to ${most ?? "…"}`;
    const label = h("label", { for: id }, type === "bool" && field, name.replaceAll("_", " "), bounds && h("span", { class: "bounds" }, bounds));
    const small = h("small", { id: `${id}-help` }, help);
    return h("div", { class: "field" }, label, type !== "bool" && field, small);
  }

  private read(parameter: Parameter): Value {
    const field = this.fields.get(parameter.name);
    if (!field) return parameter.default;
    if (field instanceof HTMLInputElement && field.type === "checkbox") return field.checked;
    if (parameter.type === "int" || parameter.type === "float") return field.value === "" ? parameter.default : Number(field.value);
    return field.value === "" && parameter.default === null ? null : field.value;
  }

  private get chosen(): Preset | undefined {
    return this.presets.find((preset) => preset.name === this.preset?.value);
  }

  /** Marks the parameters that differ from the preset's defaults. */
  private mark(): void {
    for (const parameter of this.chosen?.parameters ?? []) {
      const changed = this.read(parameter) !== parameter.default;
      this.fields.get(parameter.name)?.closest(".field")?.classList.toggle("changed", changed);
    }
  }

  private async apply(): Promise<void> {
    const preset = this.chosen;
    if (!preset) return;
    const parameters = Object.fromEntries(preset.parameters.map((parameter) => [parameter.name, this.read(parameter)]));
    const seed = this.seed.value === "" ? null : Number(this.seed.value);
    setAttribute(this.form, "aria-busy", "true");
    const isDone = await this.store.send({ type: "settings", settings: { preset: preset.name, parameters, seed } });
    if (isDone) {
      // Fields that were emptied show their defaults again.
      this.shown = "";
      this.update();
    }
    setAttribute(this.form, "aria-busy", null);
  }
}
