// What was on the screen. A step counts once its beginning and its end were, as it would be approved now.
import type { Briefing, DiffLine, StepBriefing } from "../api/types";
import { compareLines } from "./diff";

/** The exact content of every step that was on screen, by its id. */
export type Seen = ReadonlyMap<string, string>;

export const NOTHING_SEEN: Seen = new Map();

/** Written once per step: it is asked for each time that something was seen. */
const written = new WeakMap<StepBriefing, string>();

/** Everything that is shown of a step. Two steps with the same text are the same to a reader. */
export function contentOf(step: StepBriefing): string {
  const known = written.get(step);
  if (known !== undefined) return known;
  const content = JSON.stringify(step);
  written.set(step, content);
  return content;
}

/** What a reader saw of a step, compared with what it is. What a call finds in its file is compared elsewhere. */
export function changesOf(before: string, step: StepBriefing): DiffLine[] {
  const withoutFile = (name: string, value: unknown) => (name === "file" ? undefined : value);
  const text = (content: string) => JSON.stringify(JSON.parse(content, withoutFile), null, 2);
  return compareLines(text(before), text(contentOf(step)));
}

export function noteSeen(seen: Seen, step: StepBriefing): Seen {
  const content = contentOf(step);
  if (seen.get(step.id) === content) return seen;
  return new Map(seen).set(step.id, content);
}

export type Progress = { seen: number; total: number; next: string | null; changed: string[] };

/** How far the reader is: what is left, and which steps are others than those that were looked at. */
export function progress(seen: Seen, briefing: Briefing): Progress {
  const unseen = briefing.steps.filter((step) => seen.get(step.id) !== contentOf(step));
  return {
    seen: briefing.steps.length - unseen.length,
    total: briefing.steps.length,
    next: unseen[0]?.id ?? null,
    changed: unseen.filter((step) => seen.has(step.id)).map((step) => step.id),
  };
}
