/** Contrast of the colours of both themes, by the formula of WCAG 2. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { mix, parseColour } from "../src/tree/palette";

type Colours = Map<string, [number, number, number]>;
const css = readFileSync(new URL("../src/styles/theme.css", import.meta.url), "utf8");
const [light, dark] = css.split(":root[data-theme").map((part): Colours => new Map([...part.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, parseColour(value)])));

function luminance(colour: [number, number, number]): number {
  const [red, green, blue] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a: [number, number, number], b: [number, number, number]): number {
  const [dim, bright] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (bright + 0.05) / (dim + 0.05);
}

for (const [name, colours] of [["light", light], ["dark", dark]] as const) {
  const of = (key: string): [number, number, number] => {
    const colour = colours.get(key);
    assert.ok(colour, `${name} has no --${key}`);
    return colour;
  };
  test(`texts of the ${name} theme have a contrast of at least 4.5`, () => {
    for (const text of ["ink", "soft", "accent", "danger"])
      for (const paper of ["panel", "page", "raised"])
        assert.ok(contrast(of(text), of(paper)) >= 4.5, `${text} on ${paper}: ${contrast(of(text), of(paper)).toFixed(2)}`);
    for (const paper of ["accent-soft", "best-soft"]) assert.ok(contrast(of("ink"), of(paper)) >= 4.5, paper);
    assert.ok(contrast(of("accent-ink"), of("accent")) >= 4.5, "primary button");
    for (const value of ["win", "loss"]) {
      assert.ok(contrast(of(value), of("panel")) >= 4.5, `${value}: ${contrast(of(value), of("panel")).toFixed(2)}`);
      assert.ok(contrast(of("ink"), mix(of("panel"), of(value), 0.3)) >= 4.5, `box of ${value}`);
    }
    assert.ok(contrast(mix(of("best"), of("ink"), 0.4), of("panel")) >= 4.5, "the best move");
  });
  test(`signs of the ${name} theme have a contrast of at least 3`, () => {
    const signs = ["faint", "accent", "best", "win", "loss", ...[1, 2, 3, 4, 5, 6, 7, 8].map((place) => `series-${place}`)];
    for (const sign of signs) assert.ok(contrast(of(sign), of("panel")) >= 3, `${sign}: ${contrast(of(sign), of("panel")).toFixed(2)}`);
  });
}
