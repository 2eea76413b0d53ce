// What a plan does to the world, in the order in which a person has to know it.
import type { Briefing, EffectKind, StepBriefing, StepVerdict } from "../api/types";
import { count } from "./text";

export function changesSomething(kind: EffectKind): boolean {
  switch (kind) {
    case "unknown":
    case "destroys":
    case "changes":
    case "sends":
      return true;
    case "reads":
    case "nothing":
      return false;
  }
}

/** The shape and the word for each kind of effect: never a colour alone. */
export function effectMark(kind: EffectKind): { glyph: string; word: string } {
  switch (kind) {
    case "unknown":
      return { glyph: "?", word: "unknown effect" };
    case "destroys":
      return { glyph: "✎", word: "overwrites or deletes" };
    case "changes":
      return { glyph: "✎", word: "changes something" };
    case "sends":
      return { glyph: "➤", word: "sends something" };
    case "reads":
      return { glyph: "○", word: "only reads" };
    case "nothing":
      return { glyph: "·", word: "calls nothing" };
  }
}

export type Groups = { changing: StepBriefing[]; others: StepBriefing[] };

/** What changes something, has a warning, or holds a gate comes first and open; the rest is folded. */
export function groupSteps(briefing: Briefing): Groups {
  const changing: StepBriefing[] = [];
  const others: StepBriefing[] = [];
  for (const step of briefing.steps) (needsEyes(step) ? changing : others).push(step);
  return { changing, others };
}

function needsEyes(step: StepBriefing): boolean {
  return changesSomething(step.effect.kind) || step.warnings.length > 0 || step.steps.some(needsEyes);
}

/** One line on what approving would do. */
export function consequence(briefing: Briefing): string {
  const { steps, changing, withoutUndo } = briefing.counts;
  if (changing === 0) return steps === 1 ? "1 step, which changes nothing" : `${count(steps, "step")}, none changes anything`;
  const words = briefing.steps
    .filter((step) => changesSomething(step.effect.kind))
    .map((step) => step.effect.words.split(";")[0] ?? "");
  const shown = words.slice(0, 3).join(", ");
  const more = words.length > 3 ? ` and ${words.length - 3} more` : "";
  const undo = undoWords(changing, withoutUndo);
  // What cannot be taken back is said before a line could end.
  return `${changing} of ${count(steps, "step")} ${changing === 1 ? "changes" : "change"} something, ${undo}: ${shown}${more}`;
}

function undoWords(changing: number, withoutUndo: number): string {
  if (changing === 1) return withoutUndo === 0 ? "which can be undone" : "which cannot be undone";
  return withoutUndo === 0 ? "all can be undone" : `${withoutUndo} cannot be undone`;
}

export type LateStep = { step: string; tool: string; args: string[]; fallback: string; ask: boolean };

/**
 * The steps of which some arguments are only known later, and what holds for them unless the approver says
 * something else: a call that changes something is shown again once it is known.
 */
export function lateSteps(policy: StepVerdict[], briefing: Briefing): LateStep[] {
  const effects = new Map(briefing.steps.map((step) => [step.id, step]));
  return policy
    .filter((verdict) => (verdict.late ?? []).length > 0 && verdict.verdict === "ask")
    .map((verdict) => {
      const step = effects.get(verdict.step);
      const changes = step === undefined || changesSomething(step.effect.kind);
      return {
        step: verdict.step,
        tool: verdict.tool,
        args: verdict.late ?? [],
        fallback: verdict.lateChoice ?? "any",
        ask: changes && !step?.gate,
      };
    });
}

/** What the steps wait for, and what waits for them. */
export function edgesOf(steps: { id: string; after: string[] }[]): { from: string; to: string }[] {
  const known = new Set(steps.map((step) => step.id));
  return steps.flatMap((step) => step.after.filter((id) => known.has(id)).map((from) => ({ from, to: step.id })));
}
