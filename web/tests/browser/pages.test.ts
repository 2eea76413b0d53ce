import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Bench, launch, PROGRAM, readAll, until, visit } from "./bench";

let bench: Bench;
let browser: Browser;
const shots = process.env["PLANWRIGHT_SHOTS"] ?? new URL("shots", import.meta.url).pathname;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

beforeAll(async () => {
  mkdirSync(shots, { recursive: true });
  bench = await Bench.start();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await bench?.stop();
});

type Finding = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] };

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe: checker } = window as unknown as { axe: { run: (where: Document, options: object) => Promise<{ violations: Finding[] }> } };
    return (await checker.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] })).violations;
  });
  return found.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" | ")} ${nodes[0]?.failureSummary}`);
}

async function prepare(): Promise<string> {
  bench.write("release/notes.md", "# Release 1.4\n\n- old entry\n- faster start\n");
  bench.write("changes/sign-in.txt", "passkeys\n");
  bench.write("changes/billing.txt", "invoices by mail\n");
  const notes = {
    id: "notes",
    title: "Write the release notes",
    tool: "local.write_file",
    args: { path: "release/notes.md", content: "# Release 1.5\n\n- passkeys for sign-in\n- invoices by mail\n- faster start\n" },
    dependsOn: ["signin", "billing"],
    undo: { tool: "local.write_file", args: { path: "release/notes.md", content: "# Release 1.4\n\n- old entry\n- faster start\n" } },
  };
  const steps = [
    { id: "signin", title: "Read what changed in sign-in", tool: "local.read_file", args: { path: "changes/sign-in.txt" } },
    { id: "billing", title: "Read what changed in billing", tool: "local.read_file", args: { path: "changes/billing.txt" } },
    { id: "build", title: "Wait for the build", tool: "demo.sleep", args: { ms: 900 } },
    notes,
    { id: "announce", title: "Tell the team", tool: "local.append_file", args: { path: "outbox/team.txt", content: "Released: ${signin}" }, dependsOn: ["notes", "build"] },
    { id: "who", title: "Ask who signs", input: { message: "Who signs the release?", schema: { type: "object", properties: { name: { type: "string", title: "Name" }, urgent: { type: "boolean", title: "Urgent" } }, required: ["name"] } }, dependsOn: ["notes"] },
    { id: "sign", title: "Sign it", tool: "demo.echo", args: { value: "signed by ${who.name}" }, dependsOn: ["who"] },
  ];
  const plan = { title: "Tidy the release notes", goal: "Collect what changed, write the release notes, and tell the team", risks: ["the notes are public at once"], steps };
  await bench.propose({ ...plan, id: "running" });
  await bench.approve("running", { announce: "ask" });
  const run = await bench.run("running");
  for (const [n, title] of ["Rotate the logs", "Count the licences", "Publish the price list"].entries()) {
    await bench.propose({ id: `done-${n}`, title, steps: [{ id: "look", tool: "local.list_dir", args: {} }, { id: "say", tool: "demo.echo", args: { value: n } }] });
    await bench.approve(`done-${n}`);
    await bench.run(`done-${n}`);
  }
  await bench.propose({ id: "broken", title: "Sync the calendar", steps: [{ id: "sync", tool: "demo.fail", args: { message: "the calendar does not answer", retryable: false } }] });
  await bench.approve("broken");
  await bench.run("broken");
  await until(async () => (await bench.ask(bench.ada, "GET", "/plan/running")).body.status === "waiting", "the run waits");
  bench.write("release/notes.md", "# Release 1.4\n\n- old entry\n- faster start\n");
  await bench.propose({ ...plan, id: "tidy" });
  await bench.ask(bench.bob, "POST", "/plan/tidy/comments", { step: "notes", text: "Is the price list public yet?" });
  return run;
}

it("every page is accessible in both themes, and is photographed at two widths", async () => {
  const run = await prepare();
  const { page, context, faults } = await visit(browser, bench, bench.ada);
  const pages: { name: string; path: string; ready: string; then?: (page: Page) => Promise<void> }[] = [
    { name: "inbox", path: "/", ready: ".inbox-row" },
    { name: "review", path: "/ui/plans/tidy", ready: ".react-flow__node" },
    { name: "edit", path: "/ui/plans/tidy", ready: ".card", then: async () => page.getByRole("tab", { name: "Edit" }).click().then(() => page.getByRole("button", { name: "Edit notes" }).click()) },
    { name: "changes", path: "/ui/plans/tidy", ready: ".card", then: async () => page.getByRole("tab", { name: "Changes" }).click() },
    {
      name: "approve",
      path: "/ui/plans/tidy",
      ready: ".card",
      then: async () => {
        await readAll(page);
        await page.getByRole("button", { name: /^Approve/ }).click();
        await page.getByRole("dialog").waitFor();
      },
    },
    { name: "run", path: `/ui/plans/running/runs/${run}#step=announce`, ready: ".asked" },
    { name: "answer", path: `/ui/plans/running/runs/${run}#step=who`, ready: ".asked" },
    { name: "graph", path: `/ui/plans/running/runs/${run}`, ready: ".timeline-row", then: async () => page.getByRole("tab", { name: "Graph" }).click().then(() => page.locator(".react-flow__node").first().waitFor()) },
    { name: "plans", path: "/ui/plans", ready: ".plan-row" },
    { name: "new", path: "/ui/new", ready: "textarea" },
    { name: "tools", path: "/ui/tools", ready: ".tool-card" },
    { name: "stats", path: "/ui/stats", ready: "table" },
    { name: "chat", path: "/ui/chat", ready: "textarea" },
    { name: "settings", path: "/ui/settings", ready: "fieldset" },
  ];
  const wrong: string[] = [];
  for (const { name, path, ready, then } of pages) {
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.emulateMedia({ colorScheme: "light" });
    // Another document, also where only the part behind # differs.
    await page.goto(`${bench.url}/healthz`);
    await page.goto(bench.url + path);
    await page.locator(ready).first().waitFor();
    await then?.(page);
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const [width, size] of [[1280, "desktop"], [390, "phone"]] as const) {
        await page.setViewportSize({ width, height: width === 390 ? 780 : 860 });
        await page.waitForTimeout(50);
        await page.screenshot({ path: `${shots}/${name}-${size}-${scheme}.png` });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) wrong.push(`${name} ${size}: ${wide} pixels too wide`);
        // Both themes and both widths, but not each with each: a look takes a second.
        if ((scheme === "light") === (size === "desktop")) wrong.push(...(await findings(page)).map((finding) => `${name} ${scheme} ${size}: ${finding}`));
      }
    }
    await page.setViewportSize({ width: 320, height: 640 });
    const narrow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (narrow > 0) wrong.push(`${name} at 320: ${narrow} pixels too wide`);
  }
  expect(wrong).toEqual([]);
  expect(faults).toEqual([]);
  await context.close();
}, 170_000);

it("people sign in with a token, and a wrong one is refused in words", async () => {
  const { page, context, faults } = await visit(browser, bench, null, "/ui/plans");
  await page.getByLabel("Your token").fill("pwt_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    expect(await findings(page)).toEqual([]);
  }
  await page.screenshot({ path: `${shots}/sign-in-desktop-light.png` });
  await page.getByLabel("Your token").fill(bench.ada);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Plans" }).waitFor();
  // The token is in no address and no cookie, and another tab does not have it.
  expect(page.url()).not.toContain("pwt_");
  expect(await context.cookies()).toEqual([]);
  const other = await context.newPage();
  await other.goto(bench.url);
  await other.getByLabel("Your token").waitFor();
  await page.getByRole("button", { name: "Sign out" }).first().click();
  await page.getByLabel("Your token").waitFor();
  expect(faults).toEqual([]);
  await context.close();
});

it("the link of the terminal signs in once, and leaves no code behind", async () => {
  // `script` gives the program a terminal, which is where it prints the link.
  const own = await Bench.start();
  await own.kill();
  const terminal = spawn("script", ["-qfec", `${PROGRAM} serve --listen 127.0.0.1:0`, "/dev/null"], { cwd: own.workspace, env: { ...own.environment(), TERM: "xterm" }, stdio: ["pipe", "pipe", "ignore"], detached: true });
  try {
    let text = "";
    terminal.stdout.on("data", (data: Buffer) => (text += data.toString()));
    const link = await until(async () => /http:\/\/\S+#sign-in=[A-Za-z0-9_-]+/.exec(text)?.[0], "the link is printed");
    own.url = new URL(link).origin;
    const { page, context, faults } = await visit(browser, own, null, link.slice(own.url.length));
    await page.getByRole("heading", { name: /Waiting for you/ }).waitFor();
    expect(page.url()).toBe(`${own.url}/`);
    await context.close();
    const second = await visit(browser, own, null, link.slice(own.url.length));
    await second.page.getByText("was used", { exact: false }).waitFor();
    expect([...faults, ...second.faults]).toEqual([]);
    await second.context.close();
  } finally {
    if (terminal.pid !== undefined) process.kill(-terminal.pid, "SIGKILL");
    await own.stop();
  }
});

it("keys move and open, and are listed", async () => {
  const { page, context, faults } = await visit(browser, bench, bench.ada);
  await page.locator(".inbox-row").first().waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).getByText("next in the inbox").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Tidy the release notes" }).waitFor();
  await page.keyboard.press("2");
  await page.getByRole("heading", { name: "Plans" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("calendar");
  await until(async () => (await page.locator(".plan-row").count()) === 1, "the search finds one plan");
  expect(faults).toEqual([]);
  await context.close();
});
