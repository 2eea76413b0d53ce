// The list of plans: which of them are shown.
import type { PlanLine } from "../api/types";

export const STATUSES = [
  "draft",
  "proposed",
  "needs_review",
  "changes_requested",
  "rejected",
  "approved",
  "executing",
  "waiting",
  "paused",
  "stalled",
  "completed",
  "completed_with_failures",
  "failed",
  "cancelled",
  "expired",
] as const;

/** The plans in whose title or name every word occurs. */
export function searchPlans(plans: PlanLine[], query: string): PlanLine[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return plans;
  return plans.filter((plan) => {
    const text = `${plan.title} ${plan.id} ${plan.status}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
