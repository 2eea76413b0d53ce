import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { visible } from "../../src/model/text";
import { until } from "./bench";
import { setStage } from "./stage";
import { PAYLOADS } from "./payloads";
import { Provider } from "./provider";

const provider = new Provider();
const stage = setStage(async () => ({
  config: `${await provider.start()}[servers.hostile]\ncommand = "node"\nargs = ["hostile-server.mjs"]\n`,
  files: { "hostile-server.mjs": readFileSync(new URL("hostile-server.mjs", import.meta.url), "utf8"), "payloads.json": JSON.stringify(PAYLOADS) },
}));
afterAll(() => provider.stop());

/** So many payloads are in one plan. */
const PER_PLAN = 20;

async function open(page: Page, path: string): Promise<void> {
  await page.goto(stage.bench.url + path);
  await page.locator("h1").first().waitFor();
}

/** No script ran, and nothing that was written became an element of its kind. */
async function expectNoHit(page: Page): Promise<void> {
  expect(await page.evaluate(() => (window as unknown as { hit?: number }).hit ?? null)).toBeNull();
  expect(await page.locator("iframe, object, embed, video, audio, marquee, base, img, form[action]").count()).toBe(0);
}

const flat = (text: string) => text.replace(/\s+/g, " ").trim();

it("100 hostile texts in every field run no script and ask no other origin", async () => {
  expect(PAYLOADS).toHaveLength(100);
  const { page } = await stage.visit(stage.bench.ada);
  for (let first = 0; first < PAYLOADS.length; first += PER_PLAN) {
    const some = PAYLOADS.slice(first, first + PER_PLAN);
    const id = `hostile-${first}`;
    const all = some.join(" \n ");
    const steps = some.map((payload, n) => ({ id: `s${n}`, title: payload, tool: "demo.echo", args: { value: { [payload]: payload, list: [payload] } }, labels: [payload], capabilityLabel: payload }));
    const schema = { type: "object", properties: Object.fromEntries(some.map((payload, n) => [`f${n}`, { type: "string", title: payload, description: payload }])) };
    const asks = { id: "ask", title: all, input: { message: all, schema } };
    const fails = { id: "fail", tool: "demo.fail", args: { message: all.slice(0, 4_000), retryable: false }, optional: true, critical: false };
    const plan = { id, title: all, goal: all, risks: some, successCriteria: some, context: { notes: all }, steps: [...steps, fails, asks] };
    await stage.bench.propose(plan);
    for (const [n, payload] of some.entries()) {
      const comment = await stage.bench.ask(stage.bench.agent, "POST", `/plan/${id}/comments`, { text: payload, step: `s${n}` });
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
    for (const payload of some) expect(flat(cards)).toContain(flat(visible(payload)));
    for (const tab of ["Edit", "Changes", /Comments/, /Runs/]) await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tab", { name: "Edit" }).click();
    await page.getByRole("button", { name: "Edit s0", exact: true }).click();
    // The run, with values, a question and a failure that say the same.
    await stage.bench.approve(id);
    const run = await stage.bench.run(id);
    await open(page, `/ui/plans/${id}/runs/${run}`);
    await page.getByRole("region", { name: "Step ask" }).waitFor();
    await page.getByRole("form", { name: "Answer" }).waitFor();
    for (const step of ["s0", "s7", "fail"]) {
      await page.locator(".timeline-row", { hasText: step }).first().click();
      await page.getByRole("region", { name: `Step ${step}` }).waitFor();
    }
    await page.getByRole("tab", { name: "Graph" }).click();
    await page.getByRole("tab", { name: "Log" }).click();
    const reject = await stage.bench.ask(stage.bench.ada, "POST", `/plan/${id}/cancel`, {});
    expect(reject.status).toBe(202);
    await expectNoHit(page);
  }
  await open(page, "/ui/plans");
  await page.locator(".plan-row").first().waitFor();
  await expectNoHit(page);
});

it("hostile texts of servers, of answers and of models stay texts", async () => {
  const { bench } = stage;
  const { page } = await stage.visit(bench.ada, "/ui/tools");
  // Titles, descriptions, fields, choices and defaults. A name that is none is refused before it comes this far.
  await until(async () => (await page.locator(".tool-card").count()) >= PAYLOADS.length, "the tools are listed");
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  const listed = flat(await page.locator("main").innerText());
  for (const payload of PAYLOADS) expect(listed).toContain(flat(visible(payload)));
  const names = (await bench.ask(bench.ada, "GET", "/tools?limit=200")).body as { server: string; name: string }[];
  expect(names.filter(({ server, name }) => !/^[\w.-]+$/.test(server + name))).toEqual([]);
  await expectNoHit(page);

  // What the tools answer and fail with, a question, and its answer.
  const calls = PAYLOADS.map((payload, n) => ({ id: `s${n}`, tool: `hostile.t${n}`, args: { value: payload }, optional: true, critical: false }));
  const schema = { type: "object", properties: { words: { type: "string", enum: PAYLOADS.slice(0, 9), default: PAYLOADS[0] }, more: { type: "string" } } };
  await bench.propose({ id: "hostile-tools", title: "Hostile tools", steps: [...calls, { id: "ask", input: { message: "Which?", schema } }] });
  await open(page, "/ui/plans/hostile-tools");
  await page.getByRole("tab", { name: "Edit" }).click();
  await page.getByRole("button", { name: "Edit s0", exact: true }).click();
  await page.getByRole("button", { name: "Add a step" }).click();
  await page.getByLabel("Tool", { exact: true }).selectOption("hostile.t1");
  await bench.approve("hostile-tools");
  const run = await bench.run("hostile-tools");
  await open(page, `/ui/plans/hostile-tools/runs/${run}#step=ask`);
  const form = page.getByRole("form", { name: "Answer" });
  await form.getByLabel(/words/).selectOption({ index: 3 });
  await form.getByLabel(/more/).fill(PAYLOADS.slice(20, 60).join(" "));
  await form.getByRole("button", { name: "Answer" }).click();
  const plain = PAYLOADS.slice(20, 60).find((payload) => /^<[^"\\\s]+>$/.test(payload) && visible(payload) === payload) ?? "there is none";
  await page.getByRole("region", { name: "Step ask" }).getByText(plain).first().waitFor();
  for (const step of ["s0", "s1", "s2", "s30", "s31", "s32"]) {
    await page.goto(`${bench.url}/ui/plans/hostile-tools/runs/${run}#step=${step}`);
    const panel = page.getByRole("region", { name: `Step ${step}`, exact: true });
    await panel.waitFor();
    await until(async () => flat(await panel.innerText()).includes(flat(visible(PAYLOADS[Number(step.slice(1))] ?? ""))), `what ${step} was sent`);
  }
  await page.getByRole("tab", { name: "Log" }).click();
  await page.getByRole("tab", { name: "Graph" }).click();
  await expectNoHit(page);

  // What is said to a model, and what it says.
  await open(page, "/ui/chat");
  provider.script = function* (question) {
    for (const piece of question.split(" ")) yield `${piece} `;
  };
  for (let first = 0; first < PAYLOADS.length; first += 25) {
    const words = PAYLOADS.slice(first, first + 25).join(" \n ");
    await page.getByLabel("Message").fill(words);
    await page.getByRole("button", { name: "Send" }).click();
    const said = page.locator(".chat .assistant").last();
    await until(async () => flat(await said.innerText().catch(() => "")) === flat(`Model ${visible(words)}`), "the model says it again");
  }
  await expectNoHit(page);
});
