// What every suite begins and ends with: the program, a browser, and a look at what its pages did.
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { Bench, launch, openPage, type Settings, type Visitor } from "./bench";

export type Stage = {
  readonly bench: Bench;
  readonly browser: Browser;
  /** Opens the page as the owner of this token. After the test it is closed, and what it must never do fails the test. */
  visit: (token: string | null, path?: string, options?: VisitOptions) => Promise<Visitor>;
};

type VisitOptions = { width?: number; height?: number; bench?: Bench };

/** A suite that has something of its own to start first hands in how. */
export function setStage(settings: Settings | (() => Promise<Settings>) = {}): Stage {
  let bench: Bench | null = null;
  let browser: Browser | null = null;
  let visitors: Visitor[] = [];
  beforeAll(async () => {
    bench = await Bench.start(typeof settings === "function" ? await settings() : settings);
    browser = await launch();
  });
  afterEach(async () => {
    const ended = visitors;
    visitors = [];
    for (const { context } of ended) await context.close();
    expect(ended.flatMap(({ faults }) => faults)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await bench?.stop();
  });
  const present = <Thing>(thing: Thing | null): Thing => {
    if (thing === null) throw new Error("the suite has not begun");
    return thing;
  };
  return {
    get bench() {
      return present(bench);
    },
    get browser() {
      return present(browser);
    },
    visit: async (token, path = "/", options = {}) => {
      const visitor = await openPage(present(browser), options.bench ?? present(bench), token, path, options);
      visitors.push(visitor);
      return visitor;
    },
  };
}
