// Changes to a plan that are not stored yet: what the list shows, and what is sent to the service.
import type { Edit, Json, JsonObject, PlanStep } from "../api/types";

/** Applies changes as the service does, as far as the list has to show them. */
export function applyEdits(steps: PlanStep[], edits: Edit[]): PlanStep[] {
  return edits.reduce(applyEdit, steps);
}

function applyEdit(steps: PlanStep[], edit: Edit): PlanStep[] {
  switch (edit.op) {
    case "skip":
    case "unskip":
      return steps.map((step) => (step.id === edit.step ? { ...step, skip: edit.op === "skip" } : step));
    case "remove":
      return steps.filter((step) => !edit.steps.includes(step.id));
    case "add":
      return insert(steps, edit.step, edit);
    case "move": {
      const moved = steps.find((step) => step.id === edit.step);
      return moved ? insert(steps.filter((step) => step !== moved), moved, edit) : steps;
    }
    case "set":
    case "unset":
      return steps.map((step) => setField(step, edit.path, edit.op === "set" ? edit.value : undefined));
  }
}

function insert(steps: PlanStep[], step: PlanStep, place: { before?: string; after?: string }): PlanStep[] {
  const before = steps.findIndex((other) => other.id === place.before);
  const after = steps.findIndex((other) => other.id === place.after);
  const index = before >= 0 ? before : after >= 0 ? after + 1 : steps.length;
  return [...steps.slice(0, index), step, ...steps.slice(index)];
}

function setField(step: PlanStep, path: string, value: Json | undefined): PlanStep {
  if (path === stepField(step.id, "args")) return { ...step, args: (value as JsonObject | undefined) ?? {} };
  if (path === stepField(step.id, "title")) return { ...step, title: (value as string | undefined) ?? null };
  return step;
}

/** The path of a field of a step; ids that are no plain words are quoted. */
export function stepField(step: string, field: string): string {
  const id = /^[A-Za-z0-9_-]+$/.test(step) ? step : JSON.stringify(step);
  return `steps.${id}.${field}`;
}

/** The steps that a step waits for, as far as the document says so: named, or by a reference in its arguments. */
export function needs(step: PlanStep, ids: ReadonlySet<string>): Set<string> {
  const found = new Set((step.dependsOn ?? []).filter((id) => ids.has(id)));
  const text = JSON.stringify([step.args ?? {}, step.think ?? null, step.agent ?? null, step.plan ?? null]);
  for (const match of text.matchAll(/\$\{\s*([A-Za-z0-9_-]+)/g)) {
    const id = match[1];
    if (id !== undefined && ids.has(id) && id !== step.id) found.add(id);
  }
  for (const word of (step.when ?? "").match(/[A-Za-z0-9_-]+/g) ?? []) if (ids.has(word) && word !== step.id) found.add(word);
  return found;
}

/** Says why a step cannot stand at a place, or `null` if it can: never before what it needs, nor after what needs it. */
export function moveProblem(steps: PlanStep[], id: string, to: number): string | null {
  const from = steps.findIndex((step) => step.id === id);
  const moved = steps[from];
  if (moved === undefined || to < 0 || to >= steps.length) return "there is no such place";
  const ids = new Set(steps.map((step) => step.id));
  const rest = steps.filter((step) => step !== moved);
  const needed = needs(moved, ids);
  const late = rest.slice(to).find((step) => needed.has(step.id));
  if (late) return `${id} needs ${late.id}, so it comes after it`;
  const early = rest.slice(0, to).find((step) => needs(step, ids).has(id));
  return early ? `${early.id} needs ${id}, so it comes after it` : null;
}

/** The change that puts a step at a place. */
export function moveTo(steps: PlanStep[], id: string, to: number): Edit | null {
  const rest = steps.filter((step) => step.id !== id);
  const before = rest[to];
  if (before) return { op: "move", step: id, before: before.id };
  const last = rest.at(-1);
  return last ? { op: "move", step: id, after: last.id } : null;
}

/** For each step those that need it: it cannot be removed before them. */
export function neededBy(steps: PlanStep[]): Map<string, string[]> {
  const ids = new Set(steps.map((step) => step.id));
  const needing = new Map<string, string[]>();
  for (const step of steps) {
    for (const id of needs(step, ids)) {
      const others = needing.get(id);
      if (others) others.push(step.id);
      else needing.set(id, [step.id]);
    }
  }
  return needing;
}

/** Adds a change, leaving out what it makes void: only the last value of a field counts. */
export function addEdit(edits: Edit[], edit: Edit): Edit[] {
  const same = (other: Edit): boolean => {
    if (edit.op === "set" || edit.op === "unset") return (other.op === "set" || other.op === "unset") && other.path === edit.path;
    if (edit.op === "skip" || edit.op === "unskip") return (other.op === "skip" || other.op === "unskip") && other.step === edit.step;
    return false;
  };
  return [...edits.filter((other) => !same(other)), edit];
}

/** A change in words. */
export function describeEdit(edit: Edit): string {
  switch (edit.op) {
    case "set":
      return `set ${edit.path}`;
    case "unset":
      return `remove ${edit.path}`;
    case "skip":
      return `skip ${edit.step}`;
    case "unskip":
      return `do not skip ${edit.step}`;
    case "add":
      return `add ${edit.step.id}`;
    case "move":
      return `move ${edit.step} ${edit.before ? `before ${edit.before}` : `after ${edit.after ?? "the last"}`}`;
    case "remove":
      return `remove ${edit.steps.join(", ")}`;
  }
}
