// Workers, what they do, and why a step waits for one.
import type { RunResult, WorkerLine, WorkerList } from "../api/types";
import type { StateWord } from "./run";
import { count } from "./text";

/** Shape, word and tone of what a worker does. */
export function workerWord(worker: WorkerLine): StateWord {
  switch (worker.state) {
    case "working":
      return { glyph: "▶", word: "working", tone: "active" };
    case "idle":
      return { glyph: "○", word: "idle", tone: "good" };
    case "draining":
      return { glyph: "↧", word: "draining", tone: "ask" };
    case "gone":
      return { glyph: "✗", word: "gone", tone: "bad" };
    default:
      return { glyph: "·", word: worker.state, tone: "quiet" };
  }
}

/** The workers that take steps with this capability. */
export function takersOf(list: WorkerList, capability: string): WorkerLine[] {
  return list.workers.filter((worker) => (worker.state === "idle" || worker.state === "working") && worker.capabilities.includes(capability));
}

/** A step that runs, as far as it matters who carries it out. */
export type RunningStep = { id: string; capability: string; tool: string };

/** The steps of a run that were started and may be with a worker, by the capabilities of the plan. */
export function stepsForWorkers(steps: RunResult["steps"], capabilityOf: ReadonlyMap<string, string>): RunningStep[] {
  return steps.flatMap((step) => {
    const capability = capabilityOf.get(step.id);
    return step.status === "running" && capability !== undefined ? [{ id: step.id, capability, tool: step.tool }] : [];
  });
}

export type Wait = { step: string; capability: string; words: string; isStuck: boolean };

/** The steps of a run that no worker has taken, and why: none can, or those that can are busy. */
export function waitsForWorkers(run: string, steps: RunningStep[], list: WorkerList): Wait[] {
  const taken = new Set(list.workers.flatMap((worker) => worker.steps.filter((step) => step.run === run).map((step) => step.step)));
  const waiting = new Set(list.waiting.map((line) => line.capability));
  return steps
    .filter((step) => waiting.has(step.capability) && !taken.has(step.id))
    .map(({ id, capability, tool }) => {
      const takers = takersOf(list, capability);
      const able = takers.filter((worker) => worker.tools.includes(tool));
      const wait = (words: string, isStuck: boolean): Wait => ({ step: id, capability, words, isStuck });
      if (takers.length === 0) return wait(`Waits for a worker: there is none with the capability ${capability}.`, true);
      if (able.length === 0) return wait(`Waits for a worker: ${count(takers.length, "worker")} with the capability ${capability}, and none has the tool ${tool}.`, true);
      return wait(`Waits for a worker: ${count(able.length, "worker")} with the capability ${capability} can take it.`, false);
    });
}
