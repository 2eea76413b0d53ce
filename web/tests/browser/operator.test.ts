import { expect, it } from "vitest";
import { setStage } from "./stage";

const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const SERVER = `
import { createInterface } from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const tools = [{ name: "shot", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }];
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo: { name: "camera", version: "1" } } });
  if (method === "tools/list") return send({ id, result: { tools } });
  if (method !== "tools/call") return send({ id, result: {} });
  const log = setInterval(() => send({ method: "notifications/message", params: { level: "warning", data: "the light is poor" } }), 250);
  setTimeout(() => {
    clearInterval(log);
    send({ id, result: { content: [{ type: "image", mimeType: "image/png", data: "${PICTURE}" }] } });
  }, 8000);
});
`;

const CONFIG = `
[servers.camera]
command = "node"
args = ["camera.mjs"]
[servers.broken]
command = "no-such-program"
[secrets]
DEPLOY_KEY = { env = "DEPLOY_KEY" }
HOOK = { env = "HOOK" }
[[webhooks]]
name = "board"
url = "https://hooks.invalid/told?key=hidden-in-the-query"
secret = "HOOK"
events = ["plan.deleted"]
[[policy.rules]]
name = "no failures"
tool = "demo.fail"
then = "deny"
reason = "it only fails"
`;

const stage = setStage({ config: CONFIG, files: { "camera.mjs": SERVER } });

it("an admin sees how the service is set up, and no one else does", async () => {
  const { page } = await stage.visit(stage.bench.ada, "/ui/settings");
  await page.getByRole("heading", { name: "Secrets" }).waitFor();
  const main = page.getByRole("main");
  const text = (await main.textContent()) ?? "";
  for (const word of ["camera", "broken", "DEPLOY_KEY", "cannot be used", "board", "it only fails"]) expect(text).toContain(word);
  expect(text).not.toContain("hidden-in-the-query");
  const asked = await stage.bench.ask(stage.bench.agent, "GET", "/settings/operator");
  expect(asked.status).toBe(403);
});

it("what a server logs and the picture it takes are shown with the step", async () => {
  await stage.bench.propose({ id: "look", title: "Look", steps: [{ id: "take", tool: "camera.shot", args: {} }] });
  await stage.bench.approve("look");
  const run = await stage.bench.run("look");
  const { page } = await stage.visit(stage.bench.ada, `/ui/plans/look/runs/${run}#step=take`);
  const step = page.getByRole("region", { name: "Step take" });
  await step.getByText("the light is poor").first().waitFor();
  const picture = step.getByRole("img", { name: "Picture 1 of the value" });
  await picture.waitFor();
  expect(await picture.evaluate((shown: HTMLImageElement) => shown.decode().then(() => shown.naturalWidth))).toBe(1);
  // Also for those who come later.
  await page.reload();
  await step.getByText("the light is poor").first().waitFor();
});
