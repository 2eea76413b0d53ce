import { describe, expect, it } from "vitest";
import type { Edit, PlanStep } from "../api/types";
import { addEdit, applyEdits, moveProblem, moveTo, neededBy, needs, stepField } from "./edits";

const STEPS: PlanStep[] = [
  { id: "a", tool: "demo.echo", args: { value: 1 } },
  { id: "b", tool: "demo.echo", args: { value: "${a}" } },
  { id: "c", tool: "demo.echo", args: { value: 2 } },
  { id: "d", tool: "demo.echo", args: { value: 3 }, dependsOn: ["b"], when: "c > 1" },
];
const ids = (steps: PlanStep[]) => steps.map((step) => step.id).join("");

describe("edits", () => {
  it("show what the service will make of them", () => {
    const edits: Edit[] = [
      { op: "skip", step: "c" },
      { op: "add", step: { id: "x", tool: "demo.echo" }, after: "a" },
      { op: "set", path: stepField("a", "args"), value: { value: 9 } },
      { op: "remove", steps: ["d"] },
      { op: "move", step: "c", before: "a" },
    ];
    const after = applyEdits(STEPS, edits);
    expect(ids(after)).toBe("caxb");
    expect(after[0]?.skip).toBe(true);
    expect(after[1]?.args).toEqual({ value: 9 });
    expect(ids(STEPS)).toBe("abcd");
  });

  it("find what a step needs: named, referred to, or in its condition", () => {
    const known = new Set(["a", "b", "c", "d"]);
    expect(needs(STEPS[1] as PlanStep, known)).toEqual(new Set(["a"]));
    expect(needs(STEPS[3] as PlanStep, known)).toEqual(new Set(["b", "c"]));
    expect(neededBy(STEPS).get("b")).toEqual(["d"]);
  });

  it("never move a step before what it needs or after what needs it", () => {
    expect(moveProblem(STEPS, "b", 0)).toBe("b needs a, so it comes after it");
    expect(moveProblem(STEPS, "a", 1)).toBe("b needs a, so it comes after it");
    expect(moveProblem(STEPS, "c", 0)).toBeNull();
    expect(moveProblem(STEPS, "c", 9)).toBe("there is no such place");
  });

  it("put a step at every place it may have", () => {
    for (let to = 0; to < 3; to += 1) {
      const edit = moveTo(STEPS, "c", to);
      expect(edit && applyEdits(STEPS, [edit])[to]?.id).toBe("c");
    }
    expect(moveTo([{ id: "only" }], "only", 0)).toBeNull();
  });

  it("keep only the last value of a field", () => {
    const path = stepField("a", "args");
    const edits = addEdit(addEdit([], { op: "set", path, value: { value: 1 } }), { op: "set", path, value: { value: 2 } });
    expect(edits).toEqual([{ op: "set", path, value: { value: 2 } }]);
    expect(addEdit([{ op: "skip", step: "a" }], { op: "unskip", step: "a" })).toEqual([{ op: "unskip", step: "a" }]);
  });

  it("quote names that are no plain words", () => {
    expect(stepField("odd.id", "args")).toBe('steps."odd.id".args');
  });
});
