// The script that a browser loads before it shows anything stays below this, compressed.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 300 * 1024;
const dist = new URL("../dist/", import.meta.url);
const page = readFileSync(new URL("index.html", dist), "utf8");
const scripts = [...page.matchAll(/(?:src|href)="\/ui\/([^"]+\.js)"/g)].map((match) => match[1]);
const bytes = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(new URL(name, dist))).length, 0);
console.log(`initial JavaScript: ${(bytes / 1024).toFixed(1)} KB gzipped in ${scripts.length} files`);
if (scripts.length === 0 || bytes > LIMIT) {
  console.error(`at most ${LIMIT / 1024} KB are allowed`);
  process.exit(1);
}
