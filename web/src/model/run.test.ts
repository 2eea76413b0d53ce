import { describe, expect, it } from "vitest";
import type { PlanEvent, RunResult } from "../api/types";
import { graphOf, levelsOf, MOST_NODES } from "./graph";
import { actionsFor, emptyRun, foldRun, mergeSteps, stateWord, timeline } from "./run";

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
    const progress: PlanEvent = { ...event(2, "running"), event: "plan.progress", done: 3, total: 9 };
    const running = foldRun(emptyRun("run_1"), [event(1, "running"), progress]);
    expect(running.steps.get("a")?.progress).toEqual({ done: 3, total: 9 });
    expect(foldRun(running, [event(3, "completed")]).steps.get("a")?.progress).toBeNull();
  });

  it("believes the document where the events are behind", () => {
    const result = { steps: [{ id: "a", status: "completed" }] } as unknown as RunResult;
    expect(mergeSteps(result, foldRun(emptyRun("run_1"), [event(1, "running")]))[0]?.status).toBe("completed");
    const earlier = { steps: [{ id: "a", status: "pending" }] } as unknown as RunResult;
    expect(mergeSteps(earlier, foldRun(emptyRun("run_1"), [event(1, "running")]))[0]?.status).toBe("running");
  });

  it("lies in time where it was", () => {
    const life = foldRun(emptyRun("run_1"), [of("run.started", 0), event(2, "running"), event(5, "completed"), of("run.completed", 10)]);
    const { bars, length } = timeline(life, ["a", "b"], ["a"], Date.parse(at(50)));
    expect(length).toBe(10_000);
    expect(bars[0]).toEqual({ id: "a", from: 0.2, to: 0.5, state: "completed", critical: true });
    expect(bars[1]).toMatchObject({ from: 1, to: 1 });
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

describe("a graph", () => {
  const step = (id: string, after: string[]) => ({ id, after, title: "", tool: "t", state: "queued", mark: "·" });

  it("has levels by the longest way", () => {
    expect([...levelsOf([step("d", ["a", "c"]), step("a", []), step("b", ["a"]), step("c", ["b"])]).entries()].sort()).toEqual([["a", 0], ["b", 1], ["c", 2], ["d", 3]]);
  });

  it("survives a circle", () => {
    expect(levelsOf([step("a", ["b"]), step("b", ["a"])]).size).toBe(2);
  });

  it("is drawn by level when there are too many steps", () => {
    const many = Array.from({ length: MOST_NODES + 1 }, (_, n) => step(`s${n}`, n < 10 ? [] : [`s${n % 10}`]));
    const graph = graphOf(many);
    expect(graph).toMatchObject({ grouped: true, edges: [{ from: "level-0", to: "level-1" }] });
    expect(graph.nodes.map((node) => node.steps.length)).toEqual([10, MOST_NODES - 9]);
  });
});
