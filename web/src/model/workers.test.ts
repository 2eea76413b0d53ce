import { expect, it } from "vitest";
import type { WorkerLine, WorkerList } from "../api/types";
import { stepsForWorkers, waitsForWorkers, workerWord } from "./workers";

const worker = (more: Partial<WorkerLine>): WorkerLine => ({
  id: "w-1",
  host: "here",
  pid: 1,
  version: "0.1.0",
  capabilities: ["gpu"],
  concurrency: 4,
  state: "idle",
  startedAt: "2026-01-01T00:00:00Z",
  seenAt: "2026-01-01T00:00:00Z",
  steps: [],
  runs: [],
  tools: ["demo.echo"],
  ...more,
});
const list = (workers: WorkerLine[], waiting = 1): WorkerList => ({ workers, waiting: waiting > 0 ? [{ capability: "gpu", steps: waiting, oldestSeconds: 3 }] : [], plans: {} });
const step = { id: "a", capability: "gpu", tool: "demo.echo" };
const words = (found: WorkerList) => waitsForWorkers("run-1", [step], found).map((wait) => [wait.words, wait.isStuck]);

it("says why no worker has a step", () => {
  expect(words(list([]))).toEqual([["Waits for a worker: there is none with the capability gpu.", true]]);
  expect(words(list([worker({ capabilities: ["mail"] })]))[0]?.[1]).toBe(true);
  expect(words(list([worker({ state: "draining" })]))[0]?.[1]).toBe(true);
  expect(words(list([worker({ tools: [] })]))).toEqual([["Waits for a worker: 1 worker with the capability gpu, and none has the tool demo.echo.", true]]);
  expect(words(list([worker({ state: "working" })]))[0]?.[1]).toBe(false);
});

it("says nothing about a step that a worker has, or that its run's own process carries out", () => {
  expect(words(list([worker({ steps: [{ run: "run-1", step: "a", attempt: 1 }] })]))).toEqual([]);
  expect(words(list([worker({ steps: [{ run: "run-2", step: "a", attempt: 1 }] })]))).toHaveLength(1);
  expect(words(list([], 0))).toEqual([]);
});

it("only steps that run and have a capability may wait for a worker", () => {
  const of = (id: string, status: string) => ({ id, status, tool: "demo.echo" }) as never;
  const capabilities = new Map([["a", "gpu"], ["b", "gpu"]]);
  const found = stepsForWorkers([of("a", "running"), of("b", "pending"), of("c", "running")], capabilities);
  expect(found.map(({ id }) => id)).toEqual(["a"]);
});

it("every state has a word", () => {
  expect(["working", "idle", "draining", "gone", "new"].map((state) => workerWord(worker({ state })).word)).toEqual(["working", "idle", "draining", "gone", "new"]);
});
