import { expect, it } from "vitest";
import type { PlanLine } from "../api/types";
import { countedByDay, lastDays, plansByDay, topOf } from "./series";

const plan = (createdAt: string, status: string, updatedAt: string): PlanLine => ({ id: "p", title: "", version: 1, steps: 1, status, createdAt, updatedAt }) as PlanLine;

it("days follow each other, and the last one is today", () => {
  expect(lastDays(3, Date.parse("2026-03-01T12:00:00Z"))).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
});

it("plans are counted on the days they came and ended", () => {
  const days = lastDays(3, Date.parse("2026-03-03T00:00:00Z"));
  const plans = [plan("2026-03-01T08:00:00Z", "completed", "2026-03-02T08:00:00Z"), plan("2026-03-01T09:00:00Z", "proposed", "2026-03-01T09:00:00Z"), plan("2025-01-01T00:00:00Z", "failed", "2026-03-03T09:00:00Z")];
  expect(plansByDay(plans, days).series).toEqual([
    { name: "proposed", values: [2, 0, 0] },
    { name: "completed", values: [0, 1, 0] },
    { name: "failed", values: [0, 0, 1] },
  ]);
});

it("what was counted is drawn for each day, also for those that were left out", () => {
  const rows = [{ day: "2026-03-01", runs: 4, failures: 1 }, { day: "2026-03-03", runs: 2, failures: 0 }, { day: "2025-01-01", runs: 9, failures: 9 }];
  const plotted = countedByDay(rows, { runs: "runs", failures: "failed" }, ["2026-03-01", "2026-03-02", "2026-03-03"]);
  expect(plotted.series).toEqual([{ name: "runs", values: [4, 0, 2] }, { name: "failed", values: [1, 0, 0] }]);
});

it("a scale ends at a round number", () => {
  const top = (...values: number[]) => topOf({ days: [], series: [{ name: "n", values }] });
  expect([top(), top(3), top(12, 7), top(50), top(51)]).toEqual([1, 5, 20, 50, 100]);
});
