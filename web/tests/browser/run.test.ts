import { expect, it } from "vitest";
import { readAll, until } from "./bench";
import { setStage } from "./stage";

const stage = setStage();

it("a call whose arguments came late is shown as it is sent; one is approved, one is denied", async () => {
  const steps = [
    { id: "say", tool: "demo.echo", args: { value: "the real text" } },
    { id: "keep", tool: "local.append_file", args: { path: "kept.txt", content: "${say}" } },
    { id: "drop", tool: "local.append_file", args: { path: "dropped.txt", content: "${say}" }, optional: true, critical: false },
  ];
  await stage.bench.propose({ id: "gated", title: "Gated", steps });
  await stage.bench.approve("gated", { keep: "ask", drop: "ask" });
  const run = await stage.bench.run("gated");
  const { page } = await stage.visit(stage.bench.ada);
  await page.getByRole("link", { name: /Approve a call Gated, step keep/ }).click();
  const keep = page.getByRole("region", { name: "Step keep" });
  await keep.getByText("the real text").waitFor();
  await keep.getByRole("button", { name: /Approve this call/ }).click();
  await until(async () => stage.bench.read("kept.txt"), "the approved call is made");
  await page.goto(`${stage.bench.url}/ui/plans/gated/runs/${run}#step=drop`);
  const drop = page.getByRole("region", { name: "Step drop" });
  await drop.getByRole("button", { name: "Deny …" }).click();
  await drop.getByLabel("Why not?").fill("not this one");
  await drop.getByRole("button", { name: "Deny this call" }).click();
  await drop.getByText("denied", { exact: false }).first().waitFor();
  expect(stage.bench.read("kept.txt")).toBe("the real text");
  expect(stage.bench.read("dropped.txt")).toBeNull();
});

it("a question is answered in a form of its schema", async () => {
  const schema = { type: "object", properties: { name: { type: "string", title: "Name" }, copies: { type: "integer", minimum: 1, maximum: 3 }, urgent: { type: "boolean" } }, required: ["name"] };
  const steps = [
    { id: "who", input: { message: "Who signs?", schema } },
    { id: "sign", tool: "demo.echo", args: { value: "signed by ${who.name}, ${who.copies} times" } },
  ];
  await stage.bench.propose({ id: "asks", title: "Asks", steps });
  await stage.bench.approve("asks");
  const run = await stage.bench.run("asks");
  const { page } = await stage.visit(stage.bench.ada);
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
  const result = (await stage.bench.ask(stage.bench.ada, "GET", `/plan/asks/runs/${run}`)).body;
  expect(result.steps[1].value).toBe("signed by Grace, 2 times");
});

it("arguments that are too large for the answer are approved once all of them were shown", async () => {
  const { bench } = stage;
  bench.write("large.txt", "a line of the file\n".repeat(70_000));
  const steps = [
    { id: "read", tool: "local.read_file", args: { path: "large.txt" } },
    { id: "keep", tool: "local.append_file", args: { path: "copy.txt", content: "${read}" } },
  ];
  await bench.propose({ id: "large", title: "Large", steps });
  await bench.approve("large", { keep: "ask" });
  const run = await bench.run("large");
  const { page } = await stage.visit(bench.ada, `/ui/plans/large/runs/${run}#step=keep`);
  const keep = page.getByRole("region", { name: "Step keep" });
  const approve = keep.getByRole("button", { name: /Approve this call/ });
  await approve.waitFor();
  expect(await approve.isDisabled()).toBe(true);
  await keep.getByRole("button", { name: /Show all \d+ KB/ }).click();
  expect(await approve.isDisabled()).toBe(true);
  await keep.getByRole("button", { name: /left out here. Show all/ }).click();
  await approve.click();
  await until(async () => bench.read("copy.txt")?.length === bench.read("large.txt")?.length, "the call is made");
});

it("a value is shown as what it is: a table, a patch, or by its parts", async () => {
  const { bench } = stage;
  const parts = { report: { pages: Array.from({ length: 300 }, (_, n) => ({ n, words: ["one", "two"] })) } };
  const patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old line\n+new line\n";
  const echo = (id: string, value: unknown) => ({ id, tool: "demo.echo", args: { value } });
  await bench.propose({ id: "values", title: "Values", steps: [echo("table", [{ a: 1, b: "x" }, { a: 2, b: "y" }]), echo("patch", patch), echo("parts", parts)] });
  await bench.approve("values");
  const run = await bench.run("values");
  const { page } = await stage.visit(bench.ada, `/ui/plans/values/runs/${run}#step=table`);
  await page.getByRole("table", { name: /table/ }).or(page.getByRole("region", { name: "Value as a table" })).first().waitFor();
  await page.getByRole("button", { name: /^.? ?patch/ }).click();
  await page.getByRole("group", { name: "Value as a patch" }).locator(".added", { hasText: "new line" }).waitFor();
  await page.getByRole("button", { name: /parts/ }).click();
  const panel = page.getByRole("region", { name: "Step parts" });
  await panel.getByText("pages:").click();
  await panel.getByText("{2 fields}").first().click();
  await panel.getByText("Show more of 300").waitFor();
  await panel.getByRole("button", { name: "As JSON" }).click();
  await panel.getByText("characters are left out here").first().waitFor();
});

it("a run is paused, resumed and cancelled", async () => {
  const steps = [
    { id: "one", tool: "demo.sleep", args: { ms: 700 } },
    { id: "two", tool: "demo.sleep", args: { ms: 60_000 }, dependsOn: ["one"] },
  ];
  await stage.bench.propose({ id: "paused", title: "Paused", steps });
  await stage.bench.approve("paused");
  const run = await stage.bench.run("paused");
  const { page } = await stage.visit(stage.bench.ada, `/ui/plans/paused/runs/${run}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: /two.*running/ }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".meta .state", { hasText: "cancelled" }).waitFor();
});

it("a step that failed is tried again in a run of its own, and a run is undone by the calls that were shown", async () => {
  const undo = { tool: "local.write_file", args: { path: "made.txt", content: "taken back" } };
  await stage.bench.propose({ id: "undone", title: "Undone", steps: [{ id: "make", tool: "local.write_file", args: { path: "made.txt", content: "made" }, undo }] });
  await stage.bench.approve("undone");
  const run = await stage.bench.run("undone");
  const { page } = await stage.visit(stage.bench.ada, `/ui/plans/undone/runs/${run}`);
  await page.getByRole("button", { name: "Undo …" }).click();
  await page.getByRole("dialog").getByText("taken back").waitFor();
  await page.getByRole("button", { name: /Make these calls/ }).click();
  await until(async () => stage.bench.read("made.txt") === "taken back", "the undo call is made");

  await stage.bench.propose({ id: "fails", title: "Fails", steps: [{ id: "no", tool: "demo.fail", args: { message: "not today", retryable: false } }] });
  await stage.bench.approve("fails");
  const failed = await stage.bench.run("fails");
  await page.goto(`${stage.bench.url}/ui/plans/fails/runs/${failed}`);
  const step = page.getByRole("region", { name: "Step no" });
  await step.getByText("not today").first().waitFor();
  await step.getByRole("button", { name: "Retry" }).click();
  // It is a run like any other: it begins, or says that it needs an approval.
  await until(async () => !page.url().includes(failed) || (await step.getByRole("alert").count()) > 0, "the retry begins or is refused in words");
});

it("a step that failed is changed, and what is left is run with what was done", async () => {
  const { bench } = stage;
  const steps = [
    { id: "once", tool: "local.append_file", args: { path: "once.txt", content: "once" } },
    { id: "look", tool: "local.read_file", args: { path: "nowhere.txt" }, dependsOn: ["once"] },
  ];
  bench.write("here.txt", "here");
  await bench.propose({ id: "changed", title: "Changed", steps });
  await bench.approve("changed");
  const failed = await bench.run("changed");
  const { page } = await stage.visit(bench.ada, `/ui/plans/changed/runs/${failed}`);
  const step = page.getByRole("region", { name: "Step look" });
  await step.getByRole("button", { name: "Change the step …" }).click();
  await page.getByLabel("path").fill("here.txt");
  await page.getByRole("button", { name: "Save as version 2" }).click();
  await page.locator(".meta", { hasText: "version 2" }).waitFor();
  await readAll(page);
  await page.getByRole("button", { name: /^Approve/ }).click();
  expect(await page.getByRole("checkbox", { name: "Run it right away" }).isChecked()).toBe(false);
  await page.getByRole("dialog").getByRole("button", { name: /^Approve/ }).click();
  await page.getByRole("button", { name: "Run what is left" }).click();
  await page.waitForURL((url) => url.pathname.includes("/runs/"));
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
  expect(bench.read("once.txt")).toBe("once");

  // A run that is over begins again at any of its steps, once that was approved.
  const fork = page.getByRole("region", { name: "Step once" }).getByRole("button", { name: "Fork from here" });
  const whole = new URL(page.url()).pathname;
  await page.getByRole("button", { name: /once/ }).click();
  await fork.click();
  await page.getByRole("link", { name: "Look at the plan, and approve it again" }).click();
  await readAll(page);
  await page.getByRole("button", { name: "Approve again …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Approve/ }).click();
  await page.getByRole("button", { name: "Run", exact: true }).waitFor();
  await page.goto(`${bench.url}${whole}#step=once`);
  await fork.click();
  await page.waitForURL((url) => url.pathname.includes("/runs/") && url.pathname !== whole);
  await until(async () => bench.read("once.txt") === "onceonce", "the step is run again");
});

it("a call that was interrupted is a person's to decide", async () => {
  const steps = [
    { id: "pay", title: "Pay the bill", tool: "local.run_command", args: { command: "sleep", args: ["30"] } },
    { id: "note", tool: "local.write_file", args: { path: "paid.txt", content: "paid" }, dependsOn: ["pay"] },
  ];
  await stage.bench.propose({ id: "interrupted", title: "Interrupted", steps });
  await stage.bench.approve("interrupted");
  const run = await stage.bench.run("interrupted");
  const step = async () => (await stage.bench.ask(stage.bench.ada, "GET", `/plan/interrupted/runs/${run}`)).body.steps[0].status;
  await until(async () => (await step()) === "running", "the call is in flight");
  await stage.bench.kill();
  await stage.bench.serve();
  await until(async () => (await step()) === "outcome_unknown", "its outcome is unknown");
  const { page } = await stage.visit(stage.bench.ada);
  await page.getByRole("link", { name: /Decide Did it happen\? Interrupted, step pay/ }).click();
  await page.getByRole("button", { name: "It happened" }).click();
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
  expect(stage.bench.read("paid.txt")).toBe("paid");
});

it("the page comes back by itself when the service was killed and started again", async () => {
  const steps = [
    { id: "one", tool: "demo.sleep", args: { ms: 2_500 } },
    { id: "two", tool: "local.write_file", args: { path: "survived.txt", content: "yes" }, dependsOn: ["one"] },
  ];
  await stage.bench.propose({ id: "killed", title: "Killed", steps });
  await stage.bench.approve("killed");
  const run = await stage.bench.run("killed");
  const { page } = await stage.visit(stage.bench.ada, `/ui/plans/killed/runs/${run}`);
  await page.locator(".live", { hasText: /live$/ }).waitFor();
  await stage.bench.kill();
  await page.getByText("connection lost, trying again").waitFor();
  await stage.bench.serve();
  await page.locator(".live", { hasText: /live$/ }).waitFor();
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
  expect(stage.bench.read("survived.txt")).toBe("yes");
});
