import { spawn } from "node:child_process";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findings, inspect, SCHEMES, shots } from "./appearance";
import { Bench, PROGRAM, readAll, until } from "./bench";
import { Provider } from "./provider";
import { setStage } from "./stage";

const provider = new Provider();
const stage = setStage(async () => ({ config: await provider.start() }));
afterAll(() => provider.stop());

async function prepare(): Promise<string> {
  stage.bench.write("release/notes.md", "# Release 1.4\n\n- old entry\n- faster start\n");
  stage.bench.write("changes/sign-in.txt", "passkeys\n");
  stage.bench.write("changes/billing.txt", "invoices by mail\n");
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
  await stage.bench.propose({ ...plan, id: "running" });
  await stage.bench.approve("running", { announce: "ask" });
  const run = await stage.bench.run("running");
  for (const [n, title] of ["Rotate the logs", "Count the licences", "Publish the price list"].entries()) {
    await stage.bench.propose({ id: `done-${n}`, title, steps: [{ id: "look", tool: "local.list_dir", args: {} }, { id: "say", tool: "demo.echo", args: { value: n } }] });
    await stage.bench.approve(`done-${n}`);
    await stage.bench.run(`done-${n}`);
  }
  await stage.bench.propose({ id: "broken", title: "Sync the calendar", steps: [{ id: "sync", tool: "demo.fail", args: { message: "the calendar does not answer", retryable: false } }] });
  await stage.bench.approve("broken");
  await stage.bench.run("broken");
  await until(async () => (await stage.bench.ask(stage.bench.ada, "GET", "/plan/running")).body.status === "waiting", "the run waits");
  stage.bench.write("release/notes.md", "# Release 1.4\n\n- old entry\n- faster start\n");
  await stage.bench.propose({ ...plan, id: "tidy" });
  const { etag } = await stage.bench.ask(stage.bench.agent, "GET", "/plan/tidy");
  const edits = [{ op: "set", path: "steps.notes.args.content", value: notes.args.content.replace("by mail", "by mail, as a table") }, { op: "set", path: "steps.announce.title", value: "Tell the team and support" }];
  expect((await stage.bench.ask(stage.bench.agent, "PATCH", "/plan/tidy", { edits }, { "if-match": etag ?? "" })).status).toBe(200);
  await stage.bench.ask(stage.bench.bob, "POST", "/plan/tidy/comments", { step: "notes", text: "Is the price list public yet?" });
  return run;
}

type Shown = { name: string; path: string; ready: string; then?: (page: Page) => Promise<void> };

/** The pages, after `prepare`. `RUN` stands for the run it returned. */
const PAGES: Shown[] = [
  { name: "inbox", path: "/", ready: ".inbox-row" },
  { name: "review", path: "/ui/plans/tidy", ready: ".react-flow__node" },
  { name: "edit", path: "/ui/plans/tidy", ready: ".card", then: async (page) => page.getByRole("tab", { name: "Edit" }).click().then(() => page.getByRole("button", { name: "Edit notes" }).click()) },
  { name: "changes", path: "/ui/plans/tidy", ready: ".card", then: async (page) => page.getByRole("tab", { name: "Changes" }).click().then(() => page.locator(".change").first().waitFor()) },
  {
    name: "approve",
    path: "/ui/plans/tidy",
    ready: ".card",
    then: async (page) => {
      await readAll(page);
      await page.getByRole("button", { name: /^Approve/ }).click();
      await page.getByRole("dialog").waitFor();
    },
  },
  { name: "run", path: "/ui/plans/running/runs/RUN#step=announce", ready: ".bar.good" },
  { name: "answer", path: "/ui/plans/running/runs/RUN#step=who", ready: ".asked" },
  { name: "graph", path: "/ui/plans/running/runs/RUN", ready: ".timeline-row", then: async (page) => page.getByRole("tab", { name: "Graph" }).click().then(() => page.locator(".react-flow__node").first().waitFor()) },
  { name: "plans", path: "/ui/plans", ready: ".plan-row" },
  { name: "new", path: "/ui/new", ready: "textarea" },
  { name: "tools", path: "/ui/tools", ready: ".tool-card" },
  { name: "stats", path: "/ui/stats", ready: ".plot" },
  {
    name: "chat",
    path: "/ui/chat",
    ready: "textarea",
    then: async (page) => {
      provider.script = () => ["Two of them: ", "release/notes.md says that invoices now come by mail, ", "and changes/billing.txt says since when."];
      await page.getByLabel("Message").fill("Which of the notes mention billing?");
      await page.getByRole("button", { name: "Send" }).click();
      await page.getByText("invoices now come by mail").waitFor();
    },
  },
  { name: "settings", path: "/ui/settings", ready: "fieldset" },
];

let run = "";
beforeAll(async () => {
  run = await prepare();
});

it.each(PAGES)("the page $name is accessible in both themes, and is photographed at two widths", async ({ name, path, ready, then }) => {
  const { page } = await stage.visit(stage.bench.ada);
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.emulateMedia({ colorScheme: "light" });
  // Another document, also where only the part behind # differs.
  await page.goto(`${stage.bench.url}/healthz`);
  await page.goto(stage.bench.url + path.replace("RUN", run));
  await page.locator(ready).first().waitFor();
  await then?.(page);
  expect(await inspect(page, name)).toEqual([]);
});

it("people sign in with a token, and a wrong one is refused in words", async () => {
  const { page, context } = await stage.visit(null, "/ui/plans");
  await page.getByLabel("Your token").fill("pwt_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  for (const scheme of SCHEMES) {
    await page.emulateMedia({ colorScheme: scheme });
    expect(await findings(page)).toEqual([]);
  }
  await page.screenshot({ path: `${shots}/sign-in-desktop-light.png` });
  await page.getByLabel("Your token").fill(stage.bench.ada);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Plans" }).waitFor();
  // The token is kept nowhere. The session is a cookie that no script reads, and another tab has it too.
  expect(page.url()).not.toContain("pwt_");
  expect(JSON.stringify(await context.storageState())).not.toContain("pwt_");
  const cookies = await context.cookies();
  expect(cookies.map(({ httpOnly, sameSite, path }) => ({ httpOnly, sameSite, path }))).toEqual([{ httpOnly: true, sameSite: "Strict", path: "/" }]);
  expect(await page.evaluate(() => document.cookie)).toBe("");
  const other = await context.newPage();
  await other.goto(stage.bench.url);
  await other.getByRole("heading", { name: /Waiting for you/ }).waitFor();
  // Signing out ends the session for both tabs, and for every copy of the cookie.
  await page.getByRole("button", { name: "Sign out" }).first().click();
  await page.getByLabel("Your token").waitFor();
  await other.getByLabel("Your token").waitFor();
  expect(await context.cookies()).toEqual([]);
});

it("an admin invites a person, whose link signs in once", async () => {
  const { page } = await stage.visit(stage.bench.ada, "/ui/settings");
  await page.getByLabel("Their name").fill("Grace");
  await page.getByLabel("Their role").selectOption("viewer");
  await page.getByRole("button", { name: "Make a link" }).click();
  const link = await page.getByLabel(/Signs Grace in once/).inputValue();
  const guest = await stage.visit(null, link.slice(stage.bench.url.length));
  await guest.page.getByText("Grace").first().waitFor();
  expect(guest.page.url()).toBe(`${stage.bench.url}/`);
  // A viewer invites no one else.
  await guest.page.goto(`${stage.bench.url}/ui/settings`);
  await guest.page.getByRole("heading", { name: "Look" }).waitFor();
  expect(await guest.page.getByRole("heading", { name: "Invite a person" }).count()).toBe(0);
  const second = await stage.visit(null, link.slice(stage.bench.url.length));
  await second.page.getByText("was used", { exact: false }).waitFor();
});

it("a session outlives the service, and EventSource comes back by itself until there is no more", async () => {
  const own = await Bench.start();
  try {
    await own.propose({ id: "streamed", title: "Streamed", goal: "a test", steps: [{ id: "a", tool: "demo.echo", args: { value: 1 } }] });
    const { page } = await stage.visit(own.ada, "/ui/plans", { bench: own });
    await page.getByRole("heading", { name: "Plans" }).waitFor();
    await page.evaluate(() => {
      const proof = window.localStorage.getItem("planwright.proof");
      const source = new EventSource(`/plan/streamed/events?proof=${proof}`);
      const seen = { opened: 0, ids: [] as string[], source };
      Object.assign(window, { seen });
      source.onopen = () => (seen.opened += 1);
      for (const name of ["plan.created", "plan.proposed", "plan.approved", "plan.run", "plan.step", "plan.completed", "plan.status"]) source.addEventListener(name, (event) => seen.ids.push(event.lastEventId));
    });
    const seen = () => page.evaluate(() => {
      const { opened, ids, source } = (window as unknown as { seen: { opened: number; ids: string[]; source: EventSource } }).seen;
      return { opened, ids, state: source.readyState };
    });
    await until(async () => (await seen()).opened === 1, "the stream is open");
    await own.kill();
    await own.serve();
    await until(async () => (await seen()).opened === 2, "the stream came back with the same cookie");
    await own.approve("streamed");
    await own.run("streamed");
    // The stream ends with the run; the browser comes back once more, and is told that there is nothing left.
    await until(async () => (await seen()).state === 2, "the stream is closed for good");
    const { ids } = await seen();
    expect(ids).toEqual([...new Set(ids)]);
  } finally {
    await own.stop();
  }
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
    const { page, context } = await stage.visit(null, link.slice(own.url.length), { bench: own });
    await page.getByRole("heading", { name: /Waiting for you/ }).waitFor();
    expect(page.url()).toBe(`${own.url}/`);
    await context.close();
    const second = await stage.visit(null, link.slice(own.url.length), { bench: own });
    await second.page.getByText("was used", { exact: false }).waitFor();
  } finally {
    if (terminal.pid !== undefined) process.kill(-terminal.pid, "SIGKILL");
    await own.stop();
  }
});

it("keys move and open, and are listed", async () => {
  const { page } = await stage.visit(stage.bench.ada);
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
});

it("figures are of the days that were asked for, and drawn over time", async () => {
  const { page } = await stage.visit(stage.bench.ada, "/ui/stats");
  const table = page.getByRole("table", { name: "Plans by day" });
  await until(async () => (await table.getByRole("row").count()) === 31, "a row for each day of a month");
  expect(Number(await table.getByRole("row").last().getByRole("cell").first().textContent())).toBeGreaterThan(3);
  // What the service counted, too.
  const runs = page.getByRole("table", { name: "Runs by day" });
  await until(async () => Number(await runs.getByRole("row").last().getByRole("cell").first().textContent()) > 3, "the runs of today");
  await page.getByRole("table", { name: "Milliseconds of a run by day" }).waitFor({ state: "attached" });
  await page.getByLabel("Since").selectOption("a week ago");
  await until(async () => (await table.getByRole("row").count()) === 8, "a row for each day of a week");
  expect(await page.getByRole("alert").count()).toBe(0);
});

it("a browser that was asked notifies of what is new, and of nothing else", async () => {
  const { page, context } = await stage.visit(stage.bench.bob, "/healthz");
  // Stands in for the notifications of the system, which no test can see.
  await context.addInitScript(() => {
    const told: { title: string; body?: string }[] = [];
    class Told {
      static permission = "default";
      static requestPermission = () => Promise.resolve((Told.permission = "granted"));
      constructor(title: string, options: NotificationOptions) {
        told.push({ title, ...(options.body ? { body: options.body } : {}) });
      }
    }
    Object.assign(window, { Notification: Told, told });
    document.hasFocus = () => false;
  });
  await page.goto(`${stage.bench.url}/ui/settings`);
  await page.getByRole("button", { name: "Notify me" }).click();
  await page.getByRole("button", { name: "Do not notify me" }).waitFor();
  await page.getByRole("link", { name: /Inbox/ }).click();
  await page.locator(".inbox-row").first().waitFor();
  await stage.bench.propose({ id: "notified", title: "Something new", steps: [{ id: "n", tool: "local.write_file", args: { path: "n.txt", content: "n" } }] });
  const told = () => page.evaluate(() => (window as unknown as { told: { title: string; body?: string }[] }).told);
  await until(async () => (await told()).length > 0, "the browser is told");
  expect(await told()).toEqual([{ title: "Approve: Something new", body: expect.stringContaining("creates n.txt") }]);
});

it("a theme that was chosen holds against that of the system", async () => {
  const { page } = await stage.visit(stage.bench.ada, "/ui/settings");
  const paper = async (system: "light" | "dark", theme: string) => {
    await page.emulateMedia({ colorScheme: system });
    await page.getByRole("radio", { name: theme }).check();
    return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  };
  const light = await paper("light", "As the system");
  const dark = await paper("dark", "As the system");
  expect(light).not.toBe(dark);
  expect([await paper("dark", "Light"), await paper("light", "Dark")]).toEqual([light, dark]);
});
