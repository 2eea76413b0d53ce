import { expect, it } from "vitest";
import { parseRoute, pathOf, signInCode, type Route } from "./route";

it("every page has an address that leads back to it", () => {
  const routes: Route[] = [
    { page: "inbox" },
    { page: "plans" },
    { page: "new" },
    { page: "tools" },
    { page: "stats" },
    { page: "chat" },
    { page: "settings" },
    { page: "review", plan: "a/b c" },
    { page: "run", plan: "tidy", run: "run_1" },
    { page: "run", plan: "tidy", run: "run_1", step: "a:b[0]" },
  ];
  for (const route of routes) {
    const [path = "", hash] = pathOf(route).split("#");
    expect(parseRoute(path, hash ? `#${hash}` : "")).toEqual(route);
  }
});

it("addresses that are no page say so", () => {
  for (const path of ["/plan/x", "/ui/nothing", "/ui/plans/a/b", "/ui/plans/a/runs", "/ui/plans/a/runs/b/c", "/ui/tools/x"]) {
    expect(parseRoute(path).page).toBe("missing");
  }
  expect(parseRoute("/ui/plans/%E0%A4%A").page).toBe("review");
});

it("only what looks like a code signs in", () => {
  expect(signInCode("#sign-in=abcDEF_123-xyz")).toBe("abcDEF_123-xyz");
  for (const hash of ["", "#", "#sign-in=", "#sign-in=<script>", "#other=abcdefgh"]) expect(signInCode(hash)).toBeNull();
});
