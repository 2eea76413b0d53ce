import { expect, it } from "vitest";
import type { Whoami } from "../api/types";
import { may, whyNot } from "./access";
import { searchPlans } from "./plans";

it("finds plans in which every word occurs", () => {
  const plan = (id: string, title: string) => ({ id, title, status: "proposed" as const, version: 1, steps: 1, createdAt: "", updatedAt: "" });
  const plans = [plan("tidy", "Tidy the notes"), plan("ship", "Ship it")];
  expect(searchPlans(plans, "NOTES tidy").map((one) => one.id)).toEqual(["tidy"]);
  expect(searchPlans(plans, " ")).toHaveLength(2);
});

it("offers no caller what their role or kind does not allow", () => {
  const who = (role: Whoami["role"], kind: Whoami["kind"] = "person") => ({ kind, name: "x", role, assurance: "token" });
  expect(may(who("approver"), "approve")).toBe(true);
  expect(may(who("admin", "agent"), "approve")).toBe(false);
  expect(may(who("viewer"), "comment")).toBe(false);
  expect(may(undefined, "run")).toBe(false);
  expect(whyNot(who("author"), "approve")).toContain("needs an approver");
});
