/** Builds the page into python/pondertree/view/static; fails where it grows beyond its limit. */

import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const MOST_BYTES = 150_000;
const WEB = dirname(fileURLToPath(import.meta.url));
const OUT = join(WEB, "..", "python", "pondertree", "view", "static");
/** Packages whose code is in the bundle. */
const BUNDLED = ["uplot"];

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
await build({
  absWorkingDir: WEB,
  entryPoints: { app: "src/main.ts", painter: "src/tree/painter.ts", "app-css": "src/styles/app.css" },
  outdir: OUT,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome111", "firefox115", "safari16.4"],
  entryNames: "[name]",
  legalComments: "none",
  logLevel: "warning",
});
copyFileSync(join(OUT, "app-css.css"), join(OUT, "app.css"));
rmSync(join(OUT, "app-css.css"));
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(WEB, "src", name), join(OUT, name));

const licences = BUNDLED.map((name) => {
  const folder = join(WEB, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
});
writeFileSync(join(OUT, "LICENSES.txt"), `The page contains these packages.\n\n${licences.join("\n---\n\n")}`);

let total = 0;
for (const name of ["index.html", "app.js", "painter.js", "app.css", "icon.svg"]) {
  const size = gzipSync(readFileSync(join(OUT, name)), { level: 9 }).length;
  total += size;
  console.log(`${name.padEnd(12)} ${size.toLocaleString("en-US").padStart(8)} bytes gzipped`);
}
console.log(`${"total".padEnd(12)} ${total.toLocaleString("en-US").padStart(8)} of ${MOST_BYTES.toLocaleString("en-US")}`);
if (total > MOST_BYTES) {
  console.error("The page is larger than its limit.");
  process.exit(1);
}
