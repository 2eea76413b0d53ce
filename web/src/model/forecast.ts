// What is expected of a run, in words.
import { duration } from "./time";

type Expected = { predictedMs?: number | undefined; predictedCostUsd?: number | undefined };

/** Says how long a run should take and what its models should cost, as far as that is known. */
export function forecast({ predictedMs, predictedCostUsd }: Expected): string | null {
  const parts: string[] = [];
  if (predictedMs !== undefined) parts.push(`about ${duration(predictedMs)}`);
  if (predictedCostUsd !== undefined) parts.push(`${dollars(predictedCostUsd)} for models`);
  return parts.length === 0 ? null : parts.join(", ");
}

function dollars(amount: number): string {
  return amount < 0.01 ? "less than $0.01" : `about $${amount.toFixed(2)}`;
}
