import { expect, it } from "vitest";
import { baseOf, withoutBase } from "./base";

it("the base is what comes before the page's own scripts", () => {
  expect(baseOf("http://127.0.0.1:7526/ui/assets/index-abc.js")).toBe("");
  expect(baseOf("https://example.org/team/pw/ui/assets/index-abc.js")).toBe("/team/pw");
  expect(baseOf("http://localhost:5173/src/api/base.ts")).toBe("");
});

it("a base is taken off whole", () => {
  expect(withoutBase("/pw/plan", "/pw")).toBe("/plan");
  expect(withoutBase("/pwned", "/pw")).toBe("/pwned");
  expect(withoutBase("/plan", "")).toBe("/plan");
});
