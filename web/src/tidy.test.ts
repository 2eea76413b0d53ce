import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = new URL(".", import.meta.url).pathname;
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".test.ts") && !name.endsWith("schema.d.ts"));

it("no text becomes HTML, a script or a request to another origin", () => {
  const forbidden = /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcDoc|<iframe|https?:\/\//;
  for (const name of files) expect(readFileSync(join(root, name), "utf8").match(forbidden), name).toBeNull();
  // Pictures are drawn in one place, which looks at their bytes first.
  for (const name of files) if (name !== "ui/Picture.tsx") expect(readFileSync(join(root, name), "utf8").match(/<img/), name).toBeNull();
});

// The one link elsewhere: a person asks for it, and the service made the address.
const SIGN_IN = "ui/SignInToServer.tsx {address}";

it("links lead to pages of this one only", () => {
  for (const name of files) {
    for (const [, target] of readFileSync(join(root, name), "utf8").matchAll(/href=(\{[^}]*\}|"[^"]*")/g)) {
      if (`${name} ${target}` !== SIGN_IN) expect(target, name).toMatch(/^("#main"|\{BASE \+ pathOf\(to\)\}|\{`\$\{BASE\})/);
    }
  }
});

it("models know no browser and no component", () => {
  for (const name of files.filter((file) => file.startsWith("model/"))) {
    expect(readFileSync(join(root, name), "utf8").match(/from "react"|\bdocument\.|\bwindow\.|\bfetch\(/), name).toBeNull();
  }
});
