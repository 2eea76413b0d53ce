import { afterAll, expect, it } from "vitest";
import { readAll, until } from "./bench";
import { Provider } from "./provider";
import { setStage } from "./stage";

const provider = new Provider();
const stage = setStage(async () => ({ config: await provider.start() }));
afterAll(() => provider.stop());

it("an answer of a model is shown as it comes, and can be stopped", async () => {
  const { page } = await stage.visit(stage.bench.ada, "/ui/chat");
  let goOn = () => {};
  provider.script = async function* (question) {
    yield `You said ${question}. `;
    await new Promise<void>((resolve) => (goOn = resolve));
    yield "That is all.";
  };
  const say = async (words: string) => {
    await page.getByLabel("Message").fill(words);
    await page.keyboard.press("Control+Enter");
  };
  await say("hello");
  const last = page.locator(".chat .assistant").last();
  // The rest has not been said yet.
  await last.getByText("You said hello.").waitFor();
  expect(await last.innerText()).not.toContain("That is all.");
  goOn();
  await last.getByText("You said hello. That is all.").waitFor();
  await page.getByText("scripted/one").waitFor();
  await say("again");
  await last.getByText("You said again.").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await last.getByText("(stopped)").waitFor();
  goOn();
  expect(await page.getByRole("alert").count()).toBe(0);
});

it("after a failure a model adjusts the plan, a person agrees to what is new, and the work goes on", async () => {
  const { bench } = stage;
  bench.write("real.txt", "found\n");
  const steps = [
    { id: "first", tool: "local.write_file", args: { path: "once.txt", content: "once" } },
    { id: "look", tool: "local.read_file", args: { path: "missing.txt" }, dependsOn: ["first"] },
    { id: "keep", tool: "local.write_file", args: { path: "kept.txt", content: "${look}" }, dependsOn: ["look"] },
  ];
  await bench.propose({ id: "adjusted", title: "Adjusted", limits: { onFailure: "reflect" }, steps });
  await bench.approve("adjusted", { keep: "any" });
  const answer = { assessment: "needs_adjustment", reasoning: "the file has another name", adjustments: [{ type: "retry", step: "look", args: { path: "real.txt" } }] };
  provider.script = () => [JSON.stringify(answer)];
  const run = await bench.run("adjusted");
  const { page } = await stage.visit(bench.ada, `/ui/plans/adjusted/runs/${run}`);
  await page.getByText("the file has another name").waitFor();
  await page.getByRole("link", { name: "Review version 2" }).click();
  // What is new comes first, and what was agreed to is named.
  const since = page.locator(".since");
  await since.getByText("1 step changed since version 1 was agreed to").waitFor();
  await since.getByText("real.txt").waitFor();
  await readAll(page);
  await page.getByRole("button", { name: /^Approve/ }).click();
  await page.getByRole("dialog").getByText("The work goes on in another run").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: /Approve and go on/ }).click();
  await page.waitForURL((url) => url.pathname.includes("/runs/") && !url.pathname.includes(run));
  // The value that was only known later is shown for real.
  const keep = page.getByRole("region", { name: "Step keep" });
  await keep.getByText("found").first().waitFor();
  await keep.getByRole("button", { name: /Approve this call/ }).click();
  await until(async () => bench.read("kept.txt") === "found\n", "the rest is done");
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
});
