import { describe, expect, it } from "vitest";
import type { PlanEvent, RunResult } from "../api/types";
import { actionsFor, emptyRun, foldRun, logLines, mergeSteps, stateWord, timeline } from "./run";

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000Z`;
const event = (second: number, state: string, id = "a", run = "run_1"): PlanEvent => ({ event: "plan.step", planId: "p", runId: run, occurredAt: at(second), step: { id, state } });
const of = (name: string, second: number): PlanEvent => ({ event: name, planId: "p", runId: "run_1", occurredAt: at(second) });

describe("a run", () => {
  it("is folded from its events, alike in any pieces", () => {
    const events = [of("run.started", 0), event(0, "queued"), event(1, "running"), event(2, "retry_due"), event(3, "running"), event(5, "completed"), of("run.completed", 6)];
    const whole = foldRun(emptyRun("run_1"), events);
    expect(whole.steps.get("a")).toMatchObject({ state: "completed", startedAt: at(1), endedAt: at(5) });
    expect([whole.status, whole.startedAt, whole.endedAt]).toEqual(["completed", at(0), at(6)]);
    for (let cut = 0; cut <= events.length; cut += 1) {
      expect(foldRun(foldRun(emptyRun("run_1"), events.slice(0, cut)), events.slice(cut))).toEqual(whole);
    }
  });

  it("knows nothing of other runs", () => {
    const life = emptyRun("run_1");
    expect(foldRun(life, [event(1, "running", "a", "run_2")])).toBe(life);
  });

  it("shows progress while a step runs, and forgets it then", () => {
    const progress: PlanEvent = { ...event(2, "running"), event: "plan.progress", done: 3, total: 9, message: "half of it" };
    const running = foldRun(emptyRun("run_1"), [event(1, "running"), progress]);
    expect(running.steps.get("a")?.progress).toEqual({ done: 3, total: 9, message: "half of it" });
    expect(foldRun(running, [event(3, "completed")]).steps.get("a")?.progress).toBeNull();
  });

  it("keeps what a server logged with its step, and only so much of it", () => {
    const line = (text: string): PlanEvent => ({ ...event(2, "running"), event: "plan.log", level: "error", message: text });
    const running = foldRun(emptyRun("run_1"), [event(1, "running"), line("one"), line("two")]);
    expect(running.steps.get("a")?.lines).toEqual([
      { level: "error", text: "one" },
      { level: "error", text: "two" },
    ]);
    expect(running.log).toHaveLength(1);
    const many = foldRun(running, Array.from({ length: 500 }, (_, index) => line(`line ${index}`)));
    expect(many.steps.get("a")?.lines).toHaveLength(200);
    expect(foldRun(many, [event(3, "completed")]).steps.get("a")?.lines.at(-1)?.text).toBe("line 499");
  });

  it("shows what a server logged before this page watched", () => {
    const kept = { steps: [{ id: "a", status: "running", log: [{ at: "", level: "info", message: "kept" }] }] } as unknown as RunResult;
    const line = (text: string): PlanEvent => ({ ...event(2, "running"), event: "plan.log", level: "error", message: text });
    const shown = (events: PlanEvent[]) => mergeSteps(kept, foldRun(emptyRun("run_1"), events)).flatMap(logLines);
    expect(shown([])).toEqual([{ level: "info", text: "kept" }]);
    const told = shown([event(1, "running"), line("one"), line("two")]);
    expect(told.map((line) => line.text)).toEqual(["one", "two"]);
  });

  it("believes the document where the events are behind", () => {
    const result = { steps: [{ id: "a", status: "completed" }] } as unknown as RunResult;
    expect(mergeSteps(result, foldRun(emptyRun("run_1"), [event(1, "running")]))[0]?.status).toBe("completed");
    const earlier = { steps: [{ id: "a", status: "pending" }] } as unknown as RunResult;
    expect(mergeSteps(earlier, foldRun(emptyRun("run_1"), [event(1, "running")]))[0]?.status).toBe("running");
  });

  it("lies in time where it was", () => {
    const life = foldRun(emptyRun("run_1"), [of("run.started", 0), event(2, "running"), event(5, "completed"), of("run.completed", 10)]);
    const { barOf, length } = timeline(life, new Set(["a"]), Date.parse(at(50)));
    expect(length).toBe(10_000);
    expect(barOf("a")).toEqual({ id: "a", from: 0.2, to: 0.5, state: "completed", critical: true });
    expect(barOf("b")).toMatchObject({ from: 1, to: 1 });
  });

  it("offers on a step what a person can do with it", () => {
    expect(actionsFor("awaiting_approval", "waiting")).toEqual(["approve", "deny"]);
    expect(actionsFor("failed", "failed")).toEqual(["retry", "fork"]);
    expect(actionsFor("failed", "executing")).toEqual([]);
    expect(actionsFor("outcome_unknown", "waiting")).toEqual(["resolve"]);
  });

  it("has a shape and a word for every state", () => {
    for (const state of ["queued", "running", "awaiting_approval", "approved", "awaiting_input", "awaiting_plan", "retry_due", "completed", "failed", "skipped", "denied", "blocked", "cancelled", "outcome_unknown", "undone"]) {
      const { glyph, word } = stateWord(state);
      expect(glyph).not.toBe("");
      expect(word).not.toContain("_");
    }
  });
});
