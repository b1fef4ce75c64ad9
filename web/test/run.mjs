/** Bundles the tests and runs them with Node's test runner. */

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "..", "out");
const tests = readdirSync(HERE).filter((name) => name.endsWith(".test.ts"));
rmSync(OUT, { recursive: true, force: true });
await build({
  entryPoints: tests.map((name) => join(HERE, name)),
  outdir: OUT,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  logLevel: "warning",
});
const files = tests.map((name) => join(OUT, name.replace(/\.ts$/, ".mjs")));
process.exit(spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1);
