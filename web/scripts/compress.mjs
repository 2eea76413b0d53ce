// Beside each file that is worth it, the same file compressed: the service hands it to those who take it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url).pathname;
for (const name of readdirSync(dist, { recursive: true })) {
  if (!/\.(js|css|html)$/.test(name)) continue;
  writeFileSync(join(dist, `${name}.gz`), gzipSync(readFileSync(join(dist, name)), { level: 9 }));
}
