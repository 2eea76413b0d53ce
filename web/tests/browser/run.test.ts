import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Bench, launch, until, visit } from "./bench";

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

it("a call whose arguments came late is shown as it is sent; one is approved, one is denied", async () => {
  const steps = [
    { id: "say", tool: "demo.echo", args: { value: "the real text" } },
    { id: "keep", tool: "local.append_file", args: { path: "kept.txt", content: "${say}" } },
    { id: "drop", tool: "local.append_file", args: { path: "dropped.txt", content: "${say}" }, optional: true, critical: false },
  ];
  await bench.propose({ id: "gated", title: "Gated", steps });
  await bench.approve("gated", { keep: "ask", drop: "ask" });
  const run = await bench.run("gated");
  const { page, context, faults } = await visit(browser, bench, bench.ada);
  await page.getByRole("link", { name: /Approve a call Gated, step keep/ }).click();
  const keep = page.getByRole("region", { name: "Step keep" });
  await keep.getByText("the real text").waitFor();
  await keep.getByRole("button", { name: /Approve this call/ }).click();
  await until(async () => bench.read("kept.txt"), "the approved call is made");
  await page.goto(`${bench.url}/ui/plans/gated/runs/${run}#step=drop`);
  const drop = page.getByRole("region", { name: "Step drop" });
  await drop.getByRole("button", { name: "Deny …" }).click();
  await drop.getByLabel("Why not?").fill("not this one");
  await drop.getByRole("button", { name: "Deny this call" }).click();
  await drop.getByText("denied", { exact: false }).first().waitFor();
  expect(bench.read("kept.txt")).toBe("the real text");
  expect(bench.read("dropped.txt")).toBeNull();
  expect(faults).toEqual([]);
  await context.close();
});

it("a question is answered in a form of its schema", async () => {
  const schema = { type: "object", properties: { name: { type: "string", title: "Name" }, copies: { type: "integer", minimum: 1, maximum: 3 }, urgent: { type: "boolean" } }, required: ["name"] };
  const steps = [
    { id: "who", input: { message: "Who signs?", schema } },
    { id: "sign", tool: "demo.echo", args: { value: "signed by ${who.name}, ${who.copies} times" } },
  ];
  await bench.propose({ id: "asks", title: "Asks", steps });
  await bench.approve("asks");
  const run = await bench.run("asks");
  const { page, context, faults } = await visit(browser, bench, bench.ada);
  await page.getByRole("link", { name: /Answer Who signs\?/ }).click();
  const form = page.getByRole("form", { name: "Answer" });
  await form.getByLabel("Name").fill("Grace");
  await form.getByLabel(/copies/).fill("9");
  await form.getByRole("button", { name: "Answer" }).click();
  await form.getByText("copies has to be at most 3").waitFor();
  await form.getByLabel(/copies/).fill("2");
  await form.getByLabel(/urgent/).selectOption("true");
  await form.getByRole("button", { name: "Answer" }).click();
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
  const result = (await bench.ask(bench.ada, "GET", `/plan/asks/runs/${run}`)).body;
  expect(result.steps[1].value).toBe("signed by Grace, 2 times");
  expect(faults).toEqual([]);
  await context.close();
});

it("a run is paused, resumed and cancelled", async () => {
  const steps = [
    { id: "one", tool: "demo.sleep", args: { ms: 700 } },
    { id: "two", tool: "demo.sleep", args: { ms: 60_000 }, dependsOn: ["one"] },
  ];
  await bench.propose({ id: "paused", title: "Paused", steps });
  await bench.approve("paused");
  const run = await bench.run("paused");
  const { page, context, faults } = await visit(browser, bench, bench.ada, `/ui/plans/paused/runs/${run}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: /two.*running/ }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".meta .state", { hasText: "cancelled" }).waitFor();
  expect(faults).toEqual([]);
  await context.close();
});

it("a step that failed is tried again in a run of its own, and a run is undone by the calls that were shown", async () => {
  const undo = { tool: "local.write_file", args: { path: "made.txt", content: "taken back" } };
  await bench.propose({ id: "undone", title: "Undone", steps: [{ id: "make", tool: "local.write_file", args: { path: "made.txt", content: "made" }, undo }] });
  await bench.approve("undone");
  const run = await bench.run("undone");
  const { page, context, faults } = await visit(browser, bench, bench.ada, `/ui/plans/undone/runs/${run}`);
  await page.getByRole("button", { name: "Undo …" }).click();
  await page.getByRole("dialog").getByText("taken back").waitFor();
  await page.getByRole("button", { name: /Make these calls/ }).click();
  await until(async () => bench.read("made.txt") === "taken back", "the undo call is made");

  await bench.propose({ id: "fails", title: "Fails", steps: [{ id: "no", tool: "demo.fail", args: { message: "not today", retryable: false } }] });
  await bench.approve("fails");
  const failed = await bench.run("fails");
  await page.goto(`${bench.url}/ui/plans/fails/runs/${failed}`);
  const step = page.getByRole("region", { name: "Step no" });
  await step.getByText("not today").first().waitFor();
  await step.getByRole("button", { name: "Retry" }).click();
  // It is a run like any other: it begins, or says that it needs an approval.
  await until(async () => !page.url().includes(failed) || (await step.getByRole("alert").count()) > 0, "the retry begins or is refused in words");
  expect(faults).toEqual([]);
  await context.close();
});

it("a call that was interrupted is a person's to decide", async () => {
  const steps = [
    { id: "pay", title: "Pay the bill", tool: "local.run_command", args: { command: "sleep", args: ["30"] } },
    { id: "note", tool: "local.write_file", args: { path: "paid.txt", content: "paid" }, dependsOn: ["pay"] },
  ];
  await bench.propose({ id: "interrupted", title: "Interrupted", steps });
  await bench.approve("interrupted");
  const run = await bench.run("interrupted");
  const step = async () => (await bench.ask(bench.ada, "GET", `/plan/interrupted/runs/${run}`)).body.steps[0].status;
  await until(async () => (await step()) === "running", "the call is in flight");
  await bench.kill();
  await bench.serve();
  await until(async () => (await step()) === "outcome_unknown", "its outcome is unknown");
  const { page, context, faults } = await visit(browser, bench, bench.ada);
  await page.getByRole("link", { name: /Decide Did it happen\? Interrupted, step pay/ }).click();
  await page.getByRole("button", { name: "It happened" }).click();
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
  expect(bench.read("paid.txt")).toBe("paid");
  expect(faults).toEqual([]);
  await context.close();
});

it("the page comes back by itself when the service was killed and started again", async () => {
  const steps = [
    { id: "one", tool: "demo.sleep", args: { ms: 2_500 } },
    { id: "two", tool: "local.write_file", args: { path: "survived.txt", content: "yes" }, dependsOn: ["one"] },
  ];
  await bench.propose({ id: "killed", title: "Killed", steps });
  await bench.approve("killed");
  const run = await bench.run("killed");
  const { page, context, faults } = await visit(browser, bench, bench.ada, `/ui/plans/killed/runs/${run}`);
  await page.locator(".live", { hasText: /live$/ }).waitFor();
  await bench.kill();
  await page.getByText("connection lost, trying again").waitFor();
  await bench.serve();
  await page.locator(".live", { hasText: /live$/ }).waitFor();
  await page.locator(".meta .state", { hasText: "completed" }).waitFor({ timeout: 30_000 });
  expect(bench.read("survived.txt")).toBe("yes");
  expect(faults).toEqual([]);
  await context.close();
});
