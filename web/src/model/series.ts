// Figures over time: one number per day and name.
import type { PlanLine } from "../api/types";

export type Series = { name: string; values: number[] };
/** Days in order, without gaps, as `2026-01-31`; every series has a value for each. */
export type Plotted = { days: string[]; series: Series[] };

const DAY_MS = 86_400_000;

export function dayOf(at: string | number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** The days up to now. */
export function lastDays(count: number, now: number): string[] {
  return Array.from({ length: count }, (_, n) => dayOf(now - (count - 1 - n) * DAY_MS));
}

const ENDS: Record<string, string> = { completed: "completed", completed_with_failures: "failed", failed: "failed", cancelled: "failed", rejected: "rejected" };

/** How many plans came, and how many came to which end, day by day. */
export function plansByDay(plans: PlanLine[], days: string[]): Plotted {
  const names = ["proposed", "completed", "failed", "rejected"];
  const place = new Map(days.map((day, index) => [day, index]));
  const series = names.map((name): Series => ({ name, values: days.map(() => 0) }));
  const add = (name: string, at: string) => {
    const values = series.find((other) => other.name === name)?.values;
    const index = place.get(dayOf(at));
    if (values && index !== undefined) values[index] = (values[index] ?? 0) + 1;
  };
  for (const plan of plans) {
    add("proposed", plan.createdAt);
    const end = ENDS[plan.status];
    if (end !== undefined) add(end, plan.updatedAt);
  }
  return { days, series: series.filter((other, index) => index < 2 || other.values.some((n) => n > 0)) };
}

/** What the service counted by day, under the names that are drawn. Days that it left out had nothing. */
export function countedByDay<Row extends { day: string }>(rows: Row[], names: Partial<Record<keyof Row & string, string>>, days: string[]): Plotted {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  const valueOf = (day: string, key: keyof Row): number => {
    const value = byDay.get(day)?.[key];
    return typeof value === "number" ? value : 0;
  };
  const series = Object.entries<string | undefined>(names).map(([key, name]): Series => ({ name: name ?? key, values: days.map((day) => valueOf(day, key as keyof Row)) }));
  return { days, series };
}

/** A round number that is not below any value: the top of a scale. */
export function topOf(plotted: Plotted): number {
  const most = Math.max(1, ...plotted.series.flatMap((series) => series.values));
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((n) => n * unit).find((top) => top >= most) ?? most;
}
