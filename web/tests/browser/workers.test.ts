// Workers and queues: two processes on one database, and a broker.
import { afterAll, beforeAll, expect, it } from "vitest";
import { inspect } from "./appearance";
import { until } from "./bench";
import { Servers } from "./servers";
import { setStage } from "./stage";

let servers: Servers;
const CONFIG = '[dispatch]\ncapabilities = ["gpu", "mail"]\n';
const stage = setStage(async () => {
  servers = await Servers.start();
  return { config: CONFIG, env: { PLANWRIGHT_STORE: servers.store, PLANWRIGHT_DISPATCH: servers.broker } };
});
let viewer = "";
beforeAll(() => {
  viewer = stage.bench.command("token", "create", "--role", "viewer", "--kind", "person", "--name", "Vera");
});
afterAll(() => servers.stop());

const nap = (id: string, ms: number) => ({ id, tool: "demo.sleep", args: { ms, value: "slept" }, capability: "gpu" });

async function begin(id: string, steps: object[]): Promise<string> {
  await stage.bench.propose({ id, title: `The plan ${id}`, steps });
  await stage.bench.approve(id);
  return stage.bench.run(id);
}

/** Gives the waiting notice of a capability up, as the broker does after many deliveries. */
async function giveUpNotice(capability: string): Promise<void> {
  const script = `local waiting = redis.call('XRANGE', 'planwright:steps:{${capability}}', '-', '+')
    if #waiting == 0 then return 0 end
    local fields = waiting[1][2]
    redis.call('XADD', 'planwright:dead:{${capability}}', '*', fields[1], fields[2], 'deliveries', '20')
    return #waiting`;
  await until(async () => servers.askRedis("EVAL", script, "0") !== "0", "the notice is sent");
}

it("a step that no worker can take says so on the run and among the workers, until one comes", async () => {
  const run = await begin("alone", [nap("render", 15_000)]);
  const { page } = await stage.visit(stage.bench.ada, `/ui/plans/alone/runs/${run}`);
  const notice = page.getByText("No worker can take a step of this run.");
  await notice.waitFor();
  const step = page.getByRole("region", { name: "Step render" });
  await step.getByText("Waits for a worker: there is none with the capability gpu.").waitFor();
  expect(await inspect(page, "run-waits-for-a-worker")).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.getByRole("link", { name: "Look at the workers" }).click();
  await page.getByRole("heading", { name: /^Workers/ }).waitFor();
  const waiting = page.getByRole("region", { name: "Steps that no worker has taken" });
  await waiting.getByText("no worker has this capability").waitFor();
  const worker = stage.bench.startWorker("gpu", "--capability", "gpu");
  // It is there without a reload, takes the step, and is idle when that is done.
  const card = page.getByRole("region", { name: /^Worker / });
  await card.getByText("working").waitFor();
  await card.getByRole("link", { name: "render of alone" }).waitFor();
  expect(await inspect(page, "workers")).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 860 });
  await card.getByRole("link", { name: "render of alone" }).click();
  await step.waitFor();
  expect(await notice.count()).toBe(0);
  await page.locator(".meta .state", { hasText: "completed" }).waitFor();
  await page.keyboard.press("7");
  await card.getByText("idle").waitFor();
  const text = await card.textContent();
  for (const word of ["gpu", "nothing", "just now", "demo.sleep"]) expect(text).toContain(word);
  expect(await waiting.count()).toBe(0);

  // It drains: ends what it has, and takes nothing more.
  await begin("last", [nap("slow", 6_000)]);
  await card.getByRole("link", { name: "slow of last" }).waitFor();
  worker.kill("SIGTERM");
  await card.getByText("draining").waitFor();
  await card.getByText("ends what it began, and takes nothing more").waitFor();
  await page.getByText("There are no workers").waitFor();
});

it("an admin sends a notice again that was given up and forgets the others; a viewer only looks", async () => {
  const run = await begin("mailed", [{ ...nap("send", 10), capability: "mail" }]);
  await giveUpNotice("mail");
  await giveUpNotice("mail");
  // One that is none of ours.
  servers.askRedis("XADD", "planwright:dead:{mail}", "*", "notice", "<img src=x onerror=alert(1)>");
  const { page: looked } = await stage.visit(viewer, "/ui/workers");
  await looked.getByRole("button", { name: "Notices of mail that were given up: 3" }).click();
  const seen = looked.getByRole("region", { name: "Notices of mail that were given up" });
  await seen.getByRole("link", { name: "send of mailed" }).first().waitFor();
  expect(await seen.getByRole("button", { name: /^Send again/ }).first().isDisabled()).toBe(true);
  expect(await seen.getByRole("button", { name: "Forget all …" }).count()).toBe(0);
  const refused = await stage.bench.ask(viewer, "DELETE", "/queues/mail/dead");
  expect(refused.status).toBe(403);

  const { page } = await stage.visit(stage.bench.ada, "/ui/workers");
  await page.getByRole("button", { name: "Notices of mail that were given up: 3" }).click();
  const dead = page.getByRole("region", { name: "Notices of mail that were given up" });
  await dead.getByText("cannot be read: it is none of ours").waitFor();
  await dead.getByText("delivered 20 times").first().waitFor();
  expect(await inspect(page, "queues")).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 860 });
  const waiting = () => Number(servers.askRedis("XLEN", "planwright:steps:{mail}"));
  const before = waiting();
  await dead.getByRole("button", { name: /^Send again/ }).first().click();
  await page.getByRole("button", { name: "Notices of mail that were given up: 2" }).waitFor();
  expect(waiting()).toBe(before + 1);

  // Nothing is forgotten before it is confirmed.
  await dead.getByRole("button", { name: "Forget all …" }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByText("No step is lost").waitFor();
  await sheet.getByRole("button", { name: "Keep them" }).click();
  expect(servers.askRedis("XLEN", "planwright:dead:{mail}")).toBe("2");
  await dead.getByRole("button", { name: "Forget all …" }).click();
  await sheet.getByRole("button", { name: "Forget 2 notices" }).click();
  await sheet.getByText("2 notices are forgotten.").waitFor();
  await sheet.getByRole("button", { name: "Close", exact: true }).last().click();
  await dead.getByText("None was given up.").waitFor();
  expect(servers.askRedis("XLEN", "planwright:dead:{mail}")).toBe("0");

  // The step is still there, and a worker takes it.
  stage.bench.startWorker("mail", "--capability", "mail");
  await until(async () => (await stage.bench.ask(stage.bench.ada, "GET", `/plan/mailed/runs/${run}`)).body.status === "completed", "the mail is sent");
});
