import { expect, it } from "vitest";
import { graphOf, levelsOf, MOST_NODES, type GraphStep } from "./graph";

const step = (id: string, ...after: string[]): GraphStep => ({ id, after, title: "", tool: "", state: "queued", mark: "" });
const chain = (length: number) => Array.from({ length }, (_, n) => step(`s${n}`, ...(n > 0 ? [`s${n - 1}`] : [])));

it("a level is the longest way to a step", () => {
  const levels = levelsOf([step("d", "b", "a"), step("a"), step("b", "a"), step("lost", "nowhere")]);
  expect([...levels].sort()).toEqual([["a", 0], ["b", 1], ["d", 2], ["lost", 0]]);
});

it("a circle is drawn flat", () => {
  expect([...levelsOf([step("a", "b"), step("b", "a"), step("c", "a")]).values()]).toEqual([0, 0, 0]);
});

it("small plans have a node for each step", () => {
  const graph = graphOf([step("a"), step("b", "a", "nowhere")]);
  expect(graph.grouped).toBe(false);
  expect(graph.edges).toEqual([{ from: "a", to: "b" }]);
});

it("large plans have a node for each level, deep ones for several", () => {
  const wide = graphOf([step("root"), ...Array.from({ length: 4_999 }, (_, n) => step(`s${n}`, "root"))]);
  expect(wide.nodes.map((node) => node.steps.length)).toEqual([1, 4_999]);
  expect(wide.edges).toEqual([{ from: "level-0", to: "level-1" }]);
  const deep = graphOf(chain(5_000));
  expect(deep.nodes.length).toBeLessThanOrEqual(MOST_NODES);
  expect(deep.nodes.at(-1)?.lastLevel).toBe(4_999);
  expect(deep.nodes.flatMap((node) => node.steps)).toHaveLength(5_000);
  expect(deep.edges).toHaveLength(deep.nodes.length - 1);
});
