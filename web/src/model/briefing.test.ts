import { describe, expect, it } from "vitest";
import type { Briefing, EffectKind, StepBriefing, StepVerdict, Waiting } from "../api/types";
import { consequence, groupSteps, lateSteps } from "./briefing";
import { inboxRow } from "./inbox";
import { noteSeen, NOTHING_SEEN, progress } from "./seen";

function step(id: string, kind: EffectKind, more: Partial<StepBriefing> = {}): StepBriefing {
  return {
    id,
    effect: { kind, words: `${kind} ${id}; no way back` },
    action: { kind: "call", tool: "local.x", args: { path: id }, late: [] },
    verdict: "ask",
    reason: "",
    warnings: [],
    after: [],
    gate: false,
    constraints: [],
    retries: 0,
    secrets: [],
    steps: [],
    ...more,
  };
}

function briefing(steps: StepBriefing[]): Briefing {
  const changing = steps.filter((one) => !["reads", "nothing"].includes(one.effect.kind)).length;
  return { plan: "p", version: 1, digest: "sha256:1", risks: [], counts: { steps: steps.length, changing, withoutUndo: changing }, steps };
}

describe("a briefing", () => {
  it("puts first what changes something, warns, or hides a change in a sub-plan", () => {
    const of = briefing([step("r", "reads"), step("w", "destroys"), step("n", "reads", { warnings: ["odd"] }), step("s", "nothing", { steps: [step("i", "sends")] })]);
    expect(groupSteps(of).changing.map((one) => one.id)).toEqual(["w", "n", "s"]);
    expect(groupSteps(of).others.map((one) => one.id)).toEqual(["r"]);
  });

  it("takes an unknown effect for a change", () => {
    expect(groupSteps(briefing([step("u", "unknown")])).changing).toHaveLength(1);
  });

  it("says the consequence in one line", () => {
    expect(consequence(briefing([step("r", "reads")]))).toBe("1 step, which changes nothing");
    expect(consequence(briefing([step("w", "destroys"), step("r", "reads")]))).toBe("1 of 2 steps changes something, which cannot be undone: destroys w");
    expect(consequence(briefing(["a", "b", "c", "d"].map((id) => step(id, "sends"))))).toMatch(/^4 of 4 steps change something, 4 cannot be undone: .* and 1 more$/);
  });

  it("asks again about late values of what changes something, unless it asks anyway", () => {
    const policy = ["w", "r", "g"].map((id): StepVerdict => ({ step: id, tool: "t", verdict: "ask", reason: "", late: ["x"], lateChoice: "any" }));
    const late = lateSteps(policy, briefing([step("w", "changes"), step("r", "reads"), step("g", "changes", { gate: true })]));
    expect(late.map(({ step: id, ask }) => [id, ask])).toEqual([["w", true], ["r", false], ["g", false]]);
  });
});

describe("what was on screen", () => {
  const before = briefing([step("a", "reads"), step("b", "destroys")]);

  it("counts step by step until nothing is left", () => {
    let seen = NOTHING_SEEN;
    expect(progress(seen, before)).toEqual({ seen: 0, total: 2, next: "a", changed: [] });
    for (const one of before.steps) seen = noteSeen(seen, one);
    expect(progress(seen, before)).toEqual({ seen: 2, total: 2, next: null, changed: [] });
  });

  it("does not count for a step that is another one now", () => {
    let seen = NOTHING_SEEN;
    for (const one of before.steps) seen = noteSeen(seen, one);
    const after = briefing([step("a", "reads"), step("b", "destroys", { action: { kind: "call", tool: "local.x", args: { path: "/etc" }, late: [] } })]);
    expect(progress(seen, after)).toEqual({ seen: 1, total: 2, next: "b", changed: ["b"] });
  });

  it("notices a change anywhere in a step", () => {
    const one = step("a", "reads");
    const seen = noteSeen(NOTHING_SEEN, one);
    for (const more of [{ when: "x" }, { gate: true }, { verdict: "allow" }, { retries: 1 }, { secrets: ["k"] }, { undo: { tool: "t", args: {}, late: [] } }] as Partial<StepBriefing>[]) {
      expect(progress(seen, briefing([step("a", "reads", more)])).next).toBe("a");
    }
  });
});

describe("the inbox", () => {
  const base: Waiting = { kind: "plan", planId: "p", title: "", version: 1, digest: "d", since: "2026-01-01T00:00:00Z" };

  it("says the kind of decision, and leads to where it is made", () => {
    const row = inboxRow({ ...base, briefing: { ...briefing([step("w", "sends")]), goal: "Ship it" } });
    expect([row.word, row.title, row.route]).toEqual(["Approve", "Ship it", { page: "review", plan: "p" }]);
    const at = { ...base, runId: "run_1", step: "s" };
    expect(inboxRow({ ...at, kind: "input", questions: [{ key: "k", message: "Who?", schema: {} }] })).toMatchObject({ kind: "answer", title: "Who?", route: { page: "run", run: "run_1", step: "s" } });
    expect(inboxRow({ ...at, kind: "outcome", reason: "interrupted" })).toMatchObject({ kind: "decide", consequence: "interrupted" });
    expect(inboxRow({ ...at, kind: "step", call: { tool: "bank.pay", args: { to: "x\ny" }, digest: "d", reason: "" } }).consequence).toBe('bank.pay · to: "x\\ny"');
  });
});
