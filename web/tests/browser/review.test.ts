import { expect, it } from "vitest";
import { readAll, until } from "./bench";
import { setStage } from "./stage";

const stage = setStage();

const write = (id: string, more: object = {}) => ({ id, title: `Write ${id}`, tool: "local.write_file", args: { path: `out/${id}.txt`, content: `${id} as proposed\n` }, ...more });

it("a plan is reviewed, reordered, edited, discussed, approved and watched to its end", async () => {
  stage.bench.write("out/b.txt", "what was there\n");
  await stage.bench.propose({
    id: "story",
    title: "Write three files",
    goal: "Show a review",
    steps: [{ id: "look", title: "Look around", tool: "local.list_dir", args: {} }, write("a"), write("b"), write("c", { dependsOn: ["a"] }), { id: "wait", tool: "demo.sleep", args: { ms: 400 } }],
  });
  const { page } = await stage.visit(stage.bench.ada);
  await page.getByRole("link", { name: /Approve Write three files/ }).click();
  await page.getByRole("heading", { name: "Write three files" }).waitFor();

  // What is overwritten is compared with what is there.
  const card = page.getByRole("article", { name: "Step b" });
  await card.getByText("- what was there").waitFor();
  await card.getByText("+ b as proposed").waitFor();
  // Beside each other where there is room, below each other on a phone.
  await card.getByRole("columnheader", { name: "as it is now" }).waitFor();
  await page.setViewportSize({ width: 390, height: 780 });
  await card.locator("pre .line.removed", { hasText: "- what was there" }).waitFor();
  expect(await card.getByRole("columnheader").count()).toBe(0);
  await page.setViewportSize({ width: 1280, height: 860 });

  // Nothing can be approved that was not on screen, by a click or by a key.
  const approve = page.getByRole("button", { name: /^Approve/ });
  expect(await approve.isDisabled()).toBe(true);
  await page.keyboard.press("a");
  expect(await page.getByRole("dialog").count()).toBe(0);
  await readAll(page);
  await until(async () => await approve.isEnabled(), "approve is enabled once everything was seen");

  // Reorder by keyboard; what a step needs stays before it.
  await page.getByRole("tab", { name: "Edit" }).click();
  const order = async () => (await page.locator(".edit-step .edit-name > b").allTextContents()).join(" ");
  await until(async () => (await order()) === "look a b c wait", "the steps as proposed");
  await page.getByRole("button", { name: "Move step b" }).focus();
  await page.keyboard.press("Alt+ArrowUp");
  expect(await order()).toBe("look b a c wait");
  await page.getByRole("button", { name: "Move step c" }).focus();
  await page.keyboard.press("Alt+ArrowUp");
  expect(await order()).toBe("look b a c wait");
  await page.getByText("c needs a, so it comes after it").waitFor();

  // Reorder by drag: the last step to the top.
  const from = await page.getByRole("button", { name: "Move step wait" }).boundingBox();
  const to = await page.getByRole("button", { name: "Move step look" }).boundingBox();
  if (!from || !to) throw new Error("no handles");
  await page.mouse.move(from.x + 8, from.y + 8);
  await page.mouse.down();
  for (let part = 1; part <= 10; part += 1) await page.mouse.move(from.x + 8, from.y + 8 + ((to.y - from.y - 6) * part) / 10);
  await page.mouse.up();
  await until(async () => (await order()) === "wait look b a c", "the dragged order");
  // The click that ends a drag is swallowed for a moment, and a machine is faster than that.
  await page.waitForTimeout(100);

  // Edit an argument in the form of the tool's schema, skip a step, and save all of it as one version.
  await page.getByRole("button", { name: "Edit a", exact: true }).click();
  const content = page.getByLabel("content");
  await content.fill("a as edited\n");
  await page.getByRole("button", { name: "Skip look" }).click();
  // A comment that another reviewer makes meanwhile does not hinder the save.
  expect((await stage.bench.ask(stage.bench.bob, "POST", "/plan/story/comments", { text: "Almost." })).status).toBe(201);
  await page.getByRole("button", { name: "Save as version 2" }).click();
  await page.locator(".meta", { hasText: "version 2" }).waitFor();
  const stored = (await stage.bench.ask(stage.bench.ada, "GET", "/plan/story")).body;
  expect(stored.version).toBe(2);
  expect(stored.steps.map((step: { id: string }) => step.id)).toEqual(["wait", "look", "b", "a", "c"]);
  expect(stored.steps[1].skip).toBe(true);

  // Only what is another one now has to be looked at again.
  await page.getByText("changed since you looked").first().waitFor();
  expect(await approve.isDisabled()).toBe(true);

  // What changed since the reader looked is there with the step.
  await page.getByRole("article", { name: "Step a" }).getByRole("table", { name: "What changed since you looked" }).getByText("a as edited").waitFor();

  // A comment is anchored to its step.
  const edited = page.getByRole("article", { name: "Step a" });
  await edited.getByRole("button", { name: "Comment on step a" }).click();
  await page.getByRole("textbox", { name: "Comment on step a" }).fill("Better so.");
  await page.getByRole("button", { name: "Send" }).click();
  await edited.locator(".words", { hasText: "Better so." }).waitFor();
  const comments = (await stage.bench.ask(stage.bench.ada, "GET", "/plan/story/comments")).body;
  expect(comments.find((thread: { step?: string }) => thread.step === "a")).toMatchObject({ step: "a", comments: [{ text: "Better so." }] });

  // The difference to the first version names what was changed.
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.locator(".change", { hasText: "a as edited" }).waitFor();
  await page.getByRole("tab", { name: "What it does" }).click();

  // The yes is to the digest on the button.
  await readAll(page);
  await until(async () => await approve.isEnabled(), "approve is enabled again");
  await page.keyboard.press("a");
  const sheet = page.getByRole("dialog", { name: "Approve this plan" });
  await sheet.getByText("overwrites out/b.txt", { exact: false }).waitFor();
  const button = sheet.getByRole("button", { name: /Approve and run/ });
  const shown = (await button.locator("code").textContent())?.replace("…", "") ?? "?";
  const asked = page.waitForRequest((request) => request.url().endsWith("/plan/story/approve"));
  await button.click();
  const sent = (await asked).postDataJSON() as { digest: string };
  expect(sent).toEqual({ decision: "approve", digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), late: {} });
  expect(sent.digest.startsWith(shown)).toBe(true);
  await page.waitForURL(/\/ui\/plans\/story\/runs\/run_/);
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
  const approvals = (await stage.bench.ask(stage.bench.ada, "GET", "/plan/story")).body.approvals;
  expect(approvals).toHaveLength(1);
  expect(approvals[0].digest).toBe(sent.digest);
  expect(approvals[0].by).toEqual({ kind: "person", name: "Ada" });
  expect(["a", "b", "c"].map((name) => stage.bench.read(`out/${name}.txt`))).toEqual(["a as edited\n", "b as proposed\n", "c as proposed\n"]);
});

it("what others store meanwhile is announced, and has to be looked at before a yes", async () => {
  await stage.bench.propose({ id: "moving", title: "Moving target", steps: [write("m")] });
  const { page } = await stage.visit(stage.bench.ada, "/ui/plans/moving");
  await readAll(page);
  const approve = page.getByRole("button", { name: /^Approve/ });
  await until(async () => await approve.isEnabled(), "approve is enabled");
  // What another person says is there at once, and moves nothing else.
  await stage.bench.ask(stage.bench.bob, "POST", "/plan/moving/comments", { step: "m", text: "Wait for me." });
  await page.getByRole("article", { name: "Step m" }).getByText("Wait for me.").waitFor();
  await until(async () => await approve.isEnabled(), "approve is enabled all the same");
  const { etag } = await stage.bench.ask(stage.bench.agent, "GET", "/plan/moving");
  const edits = [{ op: "set", path: "steps.m.args.path", value: "out/elsewhere.txt" }];
  expect((await stage.bench.ask(stage.bench.agent, "PATCH", "/plan/moving", { edits }, { "if-match": etag ?? "" })).status).toBe(200);
  await page.getByText("Version 2 is there").waitFor();
  expect(await approve.isDisabled()).toBe(true);
  // What was on screen has not moved.
  await page.getByText("out/m.txt").first().waitFor();
  await page.getByRole("button", { name: "Show version 2" }).click();
  await page.getByText("out/elsewhere.txt").first().waitFor();
  await readAll(page);
  await until(async () => await approve.isEnabled(), "approve is enabled for what is shown now");
});

it("two people discuss a step, and each sees the other's words at once", async () => {
  await stage.bench.propose({ id: "talked", title: "Talked about", steps: [write("t"), write("u")] });
  const { page: ada } = await stage.visit(stage.bench.ada, "/ui/plans/talked");
  const { page: bob } = await stage.visit(stage.bench.bob, "/ui/plans/talked");
  const thread = (page: typeof ada) => page.getByRole("article", { name: "Step t" }).getByRole("region", { name: "Comments" });
  const say = async (page: typeof ada, open: string, words: string) => {
    await page.bringToFront();
    await page.getByRole("article", { name: "Step t" }).getByRole("button", { name: open }).click();
    await page.getByRole("article", { name: "Step t" }).getByRole("textbox").fill(words);
    await page.getByRole("button", { name: "Send" }).click();
  };
  await say(ada, "Comment on step t", "Which folder?");
  await thread(bob).getByText("Which folder?").waitFor();
  await say(bob, "Reply", "The one of last week.");
  await thread(ada).getByText("The one of last week.").waitFor();
  await bob.getByRole("button", { name: "Resolve" }).click();
  await thread(ada).getByRole("button", { name: "Reopen" }).waitFor();
  expect(await ada.getByRole("article", { name: "Step u" }).getByRole("region", { name: "Comments" }).count()).toBe(0);
});

it("any two versions are compared, by their lines where they have lines", async () => {
  await stage.bench.propose({ id: "versions", title: "Versions", steps: [write("v", { args: { path: "out/v.txt", content: "one\ntwo\nthree\n" } })] });
  for (const content of ["one\n2\nthree\n", "one\n2\n3\n"]) {
    const { etag } = await stage.bench.ask(stage.bench.agent, "GET", "/plan/versions");
    const edits = [{ op: "set", path: "steps.v.args.content", value: content }];
    expect((await stage.bench.ask(stage.bench.agent, "PATCH", "/plan/versions", { edits }, { "if-match": etag ?? "" })).status).toBe(200);
  }
  const { page } = await stage.visit(stage.bench.ada, "/ui/plans/versions");
  await page.getByRole("tab", { name: "Changes" }).click();
  const lines = async () => (await page.locator(".change .line.removed, .change .line.added").allInnerTexts()).map((line) => line.trim());
  await until(async () => (await lines()).join() === "- three,+ 3", "the last change");
  await page.getByLabel("From version").selectOption("1");
  await until(async () => (await lines()).join() === "- two,+ 2,- three,+ 3", "both changes");
  await page.getByLabel("To version").selectOption("2");
  await until(async () => (await lines()).join() === "- two,+ 2", "the first change");
});

it("an edit does not overwrite what another stored meanwhile", async () => {
  await stage.bench.propose({ id: "edited", title: "Edited", steps: [write("e")] });
  const { page } = await stage.visit(stage.bench.ada, "/ui/plans/edited");
  await page.getByRole("tab", { name: "Edit" }).click();
  await page.getByRole("button", { name: "Skip e" }).click();
  const { etag } = await stage.bench.ask(stage.bench.agent, "GET", "/plan/edited");
  const edits = [{ op: "set", path: "steps.e.args.content", value: "theirs" }];
  expect((await stage.bench.ask(stage.bench.agent, "PATCH", "/plan/edited", { edits }, { "if-match": etag ?? "" })).status).toBe(200);
  await page.getByRole("button", { name: "Save as version 2" }).click();
  await page.getByText("version 2 was stored while you edited version 1").waitFor();
  const stored = (await stage.bench.ask(stage.bench.ada, "GET", "/plan/edited")).body;
  expect([stored.version, stored.steps[0].args.content, stored.steps[0].skip]).toEqual([2, "theirs", undefined]);
});

it("two people who approve at once give one approval, and the other is told", async () => {
  await stage.bench.propose({ id: "raced", title: "Raced", steps: [write("r")] });
  const visitors = await Promise.all([stage.visit(stage.bench.ada, "/ui/plans/raced"), stage.visit(stage.bench.bob, "/ui/plans/raced")]);
  for (const { page } of visitors) {
    await page.bringToFront();
    await readAll(page);
    await page.getByRole("button", { name: /^Approve/ }).click();
  }
  await Promise.all(visitors.map(({ page }) => page.getByRole("dialog").getByRole("button", { name: /Approve and run/ }).click()));
  await until(async () => (await stage.bench.ask(stage.bench.ada, "GET", "/plan/raced")).body.status === "completed", "the plan completes");
  const plan = (await stage.bench.ask(stage.bench.ada, "GET", "/plan/raced")).body;
  expect(plan.approvals).toHaveLength(1);
  expect(plan.runs).toHaveLength(1);
  // One of them watches the run; the other reads why not.
  await until(async () => visitors.some(({ page }) => page.url().includes("/runs/")), "one of them is at the run");
  const late = visitors.find(({ page }) => !page.url().includes("/runs/"));
  if (late) await late.page.getByRole("alert").first().waitFor();
});

it("a long value has to be opened before it counts as seen", async () => {
  await stage.bench.propose({ id: "long", title: "Long", steps: [write("l", { args: { path: "out/l.txt", content: `${"harmless ".repeat(800)}hidden${" harmless".repeat(800)}` }, undo: { tool: "local.write_file", args: { path: "out/l.txt", content: "back ".repeat(2_000) } } })] });
  const { page } = await stage.visit(stage.bench.ada, "/ui/plans/long");
  const card = page.getByRole("article", { name: "Step l" });
  await card.getByText("show all to read it").waitFor();
  const approve = page.getByRole("button", { name: /^Approve/ });
  const open = card.getByRole("button", { name: /characters are left out here/ });
  // From its beginning to its end on screen, and still not all of it.
  for (const part of [0, 0.3, 0.6, 1]) {
    await page.evaluate((to) => window.scrollTo(0, to * document.documentElement.scrollHeight), part);
    await page.waitForTimeout(200);
  }
  await card.getByText("show all to read it").waitFor();
  expect(await approve.isDisabled()).toBe(true);
  while ((await open.count()) > 0) await open.first().click();
  await readAll(page);
  await until(async () => await approve.isEnabled(), "approve is enabled once it was opened and read");
});

it("a plan is sent back with words", async () => {
  await stage.bench.propose({ id: "back", title: "Sent back", steps: [write("x")] });
  const { page } = await stage.visit(stage.bench.ada, "/ui/plans/back");
  await page.getByRole("button", { name: /Request changes/ }).click();
  await page.getByLabel("What should be different?").fill("Say which folder.");
  await page.getByRole("dialog").getByRole("button", { name: "Request changes" }).click();
  await page.locator(".meta .state", { hasText: "changes requested" }).waitFor();
  expect((await stage.bench.ask(stage.bench.ada, "GET", "/plan/back")).body.status).toBe("changes_requested");
});

it("a plan of 200 steps is shown quickly, drawn as far as it is on screen, and approved only after all of it", async () => {
  const steps = Array.from({ length: 200 }, (_, n) => ({ id: `s${n}`, tool: "demo.echo", args: { value: n }, ...(n >= 20 ? { dependsOn: [`s${n % 20}`] } : {}) }));
  await stage.bench.propose({ id: "large", title: "Large", steps });
  const { page } = await stage.visit(stage.bench.ada);
  const began = Date.now();
  await page.goto(`${stage.bench.url}/ui/plans/large`);
  await page.getByRole("article").first().waitFor();
  const painted = Date.now() - began;
  console.log(`200 steps on screen after ${painted} ms`);
  expect(painted).toBeLessThan(5_000);
  expect(await page.getByRole("article").count()).toBeLessThan(60);
  await page.getByText("200 steps, shown by level").waitFor();
  await readAll(page);
  await until(async () => await page.getByRole("button", { name: /^Approve/ }).isEnabled(), "everything was on screen");
});
