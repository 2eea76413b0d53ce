// A run as its events tell it: where each step stands, and when it began and ended.
import type { PlanEvent, RunResult, StepResult } from "../api/types";

export type StepLife = {
  id: string;
  state: string;
  since: string;
  startedAt: string | null;
  endedAt: string | null;
  attempt: number;
  note: string | null;
  progress: { done: number; total: number | null; message: string | null } | null;
  /** What its server logged while this page watched, the oldest first. */
  lines: readonly LogLine[];
};

export type LogLine = { level: string; text: string };

export type RunLife = {
  run: string;
  status: string | null;
  startedAt: string | null;
  endedAt: string | null;
  steps: ReadonlyMap<string, StepLife>;
  log: readonly PlanEvent[];
};

const ENDED = new Set(["completed", "failed", "skipped", "denied", "blocked", "cancelled", "undone", "outcome_unknown"]);
const MAX_LOG = 5_000;
const MAX_LINES = 200;

export function emptyRun(run: string): RunLife {
  return { run, status: null, startedAt: null, endedAt: null, steps: new Map(), log: [] };
}

/** Folds events into a run; those of other runs do not count. */
export function foldRun(life: RunLife, events: PlanEvent[]): RunLife {
  const ours = events.filter((event) => event.runId === life.run);
  if (ours.length === 0) return life;
  const steps = new Map(life.steps);
  let { status, startedAt, endedAt } = life;
  const log = [...life.log];
  for (const event of ours) {
    if (event.event === "plan.progress") {
      const step = event.step && steps.get(event.step.id);
      if (step) steps.set(step.id, { ...step, progress: { done: event.done ?? 0, total: event.total ?? null, message: event.message ?? null } });
      continue;
    }
    if (event.event === "plan.log") {
      const step = event.step && steps.get(event.step.id);
      const line = { level: event.level ?? "info", text: event.message ?? "" };
      if (step) steps.set(step.id, { ...step, lines: [...step.lines.slice(1 - MAX_LINES), line] });
      continue;
    }
    log.push(event);
    if (event.event === "plan.step" && event.step) steps.set(event.step.id, stepAfter(steps.get(event.step.id), event, event.step));
    else if (event.event === "run.started") startedAt = event.occurredAt;
    if (event.event.startsWith("run.")) {
      status = event.event.slice("run.".length);
      if (["completed", "failed", "cancelled"].includes(status)) endedAt = event.occurredAt;
    }
  }
  return { ...life, status, startedAt, endedAt, steps, log: log.slice(-MAX_LOG) };
}

function stepAfter(before: StepLife | undefined, event: PlanEvent, step: { id: string; state: string }): StepLife {
  const running = step.state === "running";
  const ended = ENDED.has(step.state);
  const error = typeof event.error === "string" ? event.error : event.error?.message;
  return {
    id: step.id,
    state: step.state,
    since: event.occurredAt,
    startedAt: running ? (before?.startedAt ?? event.occurredAt) : (before?.startedAt ?? null),
    endedAt: ended ? event.occurredAt : null,
    attempt: event.attempt ?? before?.attempt ?? 0,
    note: error ?? event.reason ?? null,
    progress: running ? (before?.progress ?? null) : null,
    lines: before?.lines ?? [],
  };
}

/** Told to those who watch at that moment, and kept nowhere: nothing that was read before is older now. */
export function isPassing(event: PlanEvent): boolean {
  return event.event === "plan.progress" || event.event === "plan.log";
}

export type StateWord = { glyph: string; word: string; tone: "quiet" | "active" | "ask" | "good" | "bad" };

/** Shape, word and tone of a state: never a colour alone. */
export function stateWord(state: string): StateWord {
  switch (state) {
    case "completed":
      return { glyph: "✓", word: "completed", tone: "good" };
    case "completed_with_failures":
      return { glyph: "✓", word: "completed with failures", tone: "bad" };
    case "approved":
      return { glyph: "✓", word: "approved", tone: "good" };
    case "running":
    case "executing":
    case "started":
    case "resumed":
      return { glyph: "▶", word: state === "running" ? "running" : "executing", tone: "active" };
    case "failed":
      return { glyph: "✗", word: "failed", tone: "bad" };
    case "denied":
      return { glyph: "⊘", word: "denied", tone: "bad" };
    case "rejected":
      return { glyph: "✗", word: "rejected", tone: "bad" };
    case "outcome_unknown":
      return { glyph: "?", word: "outcome unknown", tone: "bad" };
    case "stalled":
      return { glyph: "!", word: "stalled", tone: "bad" };
    case "awaiting_approval":
      return { glyph: "◇", word: "waits for approval", tone: "ask" };
    case "awaiting_input":
      return { glyph: "◇", word: "waits for an answer", tone: "ask" };
    case "waiting":
      return { glyph: "◇", word: "waits for a person", tone: "ask" };
    case "proposed":
      return { glyph: "◇", word: "waits for a decision", tone: "ask" };
    case "needs_review":
      return { glyph: "◇", word: "needs a person", tone: "ask" };
    case "awaiting_plan":
      return { glyph: "▷", word: "waits for its sub-plan", tone: "active" };
    case "retry_due":
      return { glyph: "↻", word: "tries again soon", tone: "active" };
    case "paused":
      return { glyph: "‖", word: "paused", tone: "ask" };
    case "changes_requested":
      return { glyph: "↩", word: "changes requested", tone: "ask" };
    case "adjusted":
      return { glyph: "↪", word: "adjusted, continues in another run", tone: "quiet" };
    case "skipped":
      return { glyph: "↷", word: "skipped", tone: "quiet" };
    case "undone":
      return { glyph: "↶", word: "undone", tone: "quiet" };
    case "undoing":
      return { glyph: "↶", word: "undoing", tone: "active" };
    case "pending":
      return { glyph: "·", word: "queued", tone: "quiet" };
    default:
      return { glyph: "·", word: state.replaceAll("_", " "), tone: "quiet" };
  }
}

export function isOver(status: string | null): boolean {
  return status !== null && ["completed", "completed_with_failures", "failed", "cancelled", "adjusted"].includes(status);
}

/** The steps of a run with the newest of what both sources say about each. */
export function mergeSteps(result: RunResult, life: RunLife): (StepResult & { life: StepLife | null })[] {
  return result.steps.map((step) => {
    const of = life.steps.get(step.id) ?? null;
    return { ...step, status: of && !isStale(step, of) ? of.state : step.status, life: of };
  });
}

/** What the server of a step logged: as it was kept, or as it was told while this page watched, whichever is more. */
export function logLines(step: StepResult & { life: StepLife | null }): readonly LogLine[] {
  const kept = step.log ?? [];
  const told = step.life?.lines ?? [];
  return told.length > kept.length ? told : kept.map((line) => ({ level: line.level, text: line.message }));
}

/** The document has it ended while the events that were read say that it goes on: they are behind. */
function isStale(step: StepResult, life: StepLife): boolean {
  return ENDED.has(step.status) && !ENDED.has(life.state);
}

export type Bar = { id: string; from: number; to: number; state: string; critical: boolean };

/** Where a step lies in the time of the run, as parts of its length: asked only of those that are on screen. */
export function timeline(life: RunLife, critical: ReadonlySet<string>, now: number): { barOf: (id: string) => Bar; length: number } {
  const start = life.startedAt ? Date.parse(life.startedAt) : now;
  const end = life.endedAt ? Date.parse(life.endedAt) : now;
  const length = Math.max(end - start, 1);
  const part = (at: number) => Math.min(1, Math.max(0, (at - start) / length));
  const barOf = (id: string): Bar => {
    const step = life.steps.get(id);
    const from = step?.startedAt ?? (step && step.state !== "queued" ? step.since : null);
    const to = step?.endedAt ? Date.parse(step.endedAt) : now;
    return {
      id,
      from: from ? part(Date.parse(from)) : 1,
      to: from ? part(Math.min(to, end)) : 1,
      state: step?.state ?? "queued",
      critical: critical.has(id),
    };
  };
  return { barOf, length };
}

export function doneCount(steps: { status: string }[]): number {
  return steps.filter((step) => ENDED.has(step.status) && step.status !== "outcome_unknown").length;
}

export type StepAction = "approve" | "deny" | "answer" | "resolve" | "skip" | "retry" | "fork";

/** What a person can do with a step now. */
export function actionsFor(state: string, runStatus: string): StepAction[] {
  const over = isOver(runStatus);
  switch (state) {
    case "awaiting_approval":
      return ["approve", "deny"];
    case "awaiting_input":
      return ["answer", "skip"];
    case "outcome_unknown":
      return over ? ["fork"] : ["resolve"];
    case "failed":
    case "blocked":
    case "denied":
    case "skipped":
    case "cancelled":
      return over ? ["retry", "fork"] : [];
    case "completed":
      return over ? ["fork"] : [];
    case "pending":
    case "queued":
      return over ? [] : ["skip"];
    default:
      return [];
  }
}
