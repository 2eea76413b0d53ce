import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { visible } from "../../src/model/text";
import { Bench, launch, until, visit } from "./bench";
import { PAYLOADS } from "./payloads";

let bench: Bench;
let browser: Browser;

beforeAll(async () => {
  bench = await Bench.start();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await bench?.stop();
});

/** So many payloads are in one plan. */
const PER_PLAN = 20;

async function open(page: Page, path: string): Promise<void> {
  await page.goto(bench.url + path);
  await page.locator("h1").first().waitFor();
}

it("100 hostile texts in every field run no script and ask no other origin", async () => {
  expect(PAYLOADS).toHaveLength(100);
  const { page, context, faults } = await visit(browser, bench, bench.ada);
  const hit = () => page.evaluate(() => (window as unknown as { hit?: number }).hit ?? null);
  for (let first = 0; first < PAYLOADS.length; first += PER_PLAN) {
    const some = PAYLOADS.slice(first, first + PER_PLAN);
    const id = `hostile-${first}`;
    const all = some.join(" \n ");
    const steps = some.map((payload, n) => ({ id: `s${n}`, title: payload, tool: "demo.echo", args: { value: { [payload]: payload, list: [payload] } }, labels: [payload], capabilityLabel: payload }));
    const schema = { type: "object", properties: Object.fromEntries(some.map((payload, n) => [`f${n}`, { type: "string", title: payload, description: payload }])) };
    const asks = { id: "ask", title: all, input: { message: all, schema } };
    const fails = { id: "fail", tool: "demo.fail", args: { message: all.slice(0, 4_000), retryable: false }, optional: true, critical: false };
    const plan = { id, title: all, goal: all, risks: some, successCriteria: some, context: { notes: all }, steps: [...steps, fails, asks] };
    await bench.propose(plan);
    for (const [n, payload] of some.entries()) {
      const comment = await bench.ask(bench.agent, "POST", `/plan/${id}/comments`, { text: payload, step: `s${n}` });
      expect(comment.status).toBe(201);
    }
    // Inbox and list, then every view of the review.
    await open(page, "/");
    await page.locator(".inbox-row").first().waitFor();
    await open(page, `/ui/plans/${id}`);
    await page.getByRole("button", { name: /Only reads/ }).waitFor();
    if ((await page.getByRole("button", { name: /Only reads/ }).getAttribute("aria-expanded")) === "false") await page.getByRole("button", { name: /Only reads/ }).click();
    // The texts are there, as texts.
    const cards = await until(async () => {
      const text = (await page.locator("article").allInnerTexts()).join("\n");
      return text.includes("s19") || text.includes("s0") ? text : null;
    }, "the steps are shown");
    const flat = (text: string) => text.replace(/\s+/g, " ");
    for (const payload of some) expect(flat(cards)).toContain(flat(visible(payload)));
    for (const tab of ["Edit", "Changes", /Comments/, /Runs/]) await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tab", { name: "Edit" }).click();
    await page.getByRole("button", { name: "Edit s0", exact: true }).click();
    // The run, with values, a question and a failure that say the same.
    await bench.approve(id);
    const run = await bench.run(id);
    await open(page, `/ui/plans/${id}/runs/${run}`);
    await page.getByRole("region", { name: "Step ask" }).waitFor();
    await page.getByRole("form", { name: "Answer" }).waitFor();
    for (const step of ["s0", "s7", "fail"]) {
      await page.locator(".timeline-row", { hasText: step }).first().click();
      await page.getByRole("region", { name: `Step ${step}` }).waitFor();
    }
    await page.getByRole("tab", { name: "Graph" }).click();
    await page.getByRole("tab", { name: "Log" }).click();
    const reject = await bench.ask(bench.ada, "POST", `/plan/${id}/cancel`, {});
    expect(reject.status).toBe(202);
    expect(await hit()).toBeNull();
    expect(faults, id).toEqual([]);
  }
  await open(page, "/ui/plans");
  await page.locator(".plan-row").first().waitFor();
  // Nothing that was written became an element of its kind.
  expect(await page.locator("iframe, object, embed, video, audio, marquee, base, img, form[action]").count()).toBe(0);
  expect(await hit()).toBeNull();
  expect(faults).toEqual([]);
  await context.close();
}, 180_000);
