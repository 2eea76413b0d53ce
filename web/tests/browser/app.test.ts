// The review inside a client of agents: a real client and bridge of MCP Apps, the real program behind them.
import { Client, StreamableHTTPClientTransport, type ClientOptions } from "@modelcontextprotocol/client";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { build, type Rollup } from "vite";
import { expect, it } from "vitest";
import { setStage } from "./stage";

const stage = setStage();
const KIND = "text/html;profile=mcp-app";
const REVIEW = "planwright/review";
const steps = [{ id: "a", tool: "local.write_file", args: { path: "note.txt", content: "<img src=x onerror=alert(1)> ".repeat(40) } }];

const SHOWS_PAGES = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [KIND] } } };

async function connect(token: string, options: ClientOptions = { capabilities: SHOWS_PAGES }): Promise<Client> {
  const client = new Client({ name: "host", version: "1" }, options);
  const headers = { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${stage.bench.url}/mcp`), { requestInit: { headers } }));
  return client;
}

/** The script of the client's window, as one file. */
async function bundle(): Promise<string> {
  const entry = new URL("app-host.ts", import.meta.url).pathname;
  const built = await build({ configFile: false, logLevel: "silent", build: { write: false, minify: false, lib: { entry, name: "host", formats: ["iife"] } } });
  const [output] = Array.isArray(built) ? built : [built as Rollup.RollupOutput];
  const [chunk] = output?.output ?? [];
  if (chunk?.type !== "chunk") throw new Error("the script was not built");
  return chunk.code;
}

async function show(client: Client, page: Page, script: string, plan: string): Promise<void> {
  await page.goto("about:blank");
  await page.addScriptTag({ content: script });
  const asked = { plan: { id: plan, title: "Write a note", goal: "a test", steps } };
  const result = await client.callTool({ name: "plan_propose", arguments: asked });
  const resource = await client.readResource({ uri: "ui://planwright/review" });
  const [content] = resource.contents;
  if (content === undefined || !("text" in content)) throw new Error("the page is no text");
  expect(content.mimeType).toBe(KIND);
  await page.evaluate(([html, args, shown]) => window.showPage(html, args, shown as never), [content.text, asked, result] as const);
}

it("a person decides in the page that their client shows, and a model cannot", async () => {
  const client = await connect(stage.bench.ada);
  const { tools } = await client.listTools();
  const decide = tools.find((tool) => tool.name === "plan_decide");
  expect(decide?._meta).toEqual({ ui: { visibility: ["app"] } });
  expect(tools.find((tool) => tool.name === "plan_propose")?._meta).toEqual({ ui: { resourceUri: "ui://planwright/review" } });
  const script = await bundle();
  const context = await stage.browser.newContext({ viewport: { width: 900, height: 800 } });
  try {
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("dialog", (dialog) => void dialog.dismiss().then(() => faults.push(dialog.message())));
    page.on("request", (request) => faults.push(request.url()));
    await page.exposeFunction("callTool", (params: { name: string; arguments?: Record<string, unknown> }) => client.callTool(params));
    await show(client, page, script, "note");
    const frame = page.frameLocator("iframe");
    await frame.getByRole("heading", { name: "Plan note" }).waitFor();
    const approve = frame.getByRole("button", { name: "Approve exactly this plan" });
    expect(await approve.isDisabled()).toBe(true);
    const text = frame.getByLabel("What you are asked to approve");
    expect(await text.textContent()).toContain("<img src=x onerror=alert(1)>");
    expect(await text.textContent()).toContain("sha256:");
    const inside = page.frames()[1];
    await inside?.addScriptTag({ content: readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8") });
    const found = await inside?.evaluate(() => (window as unknown as { axe: { run: () => Promise<{ violations: { impact: string; id: string }[] }> } }).axe.run());
    expect(found?.violations.filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
    await text.evaluate((shown) => shown.scrollTo(0, shown.scrollHeight));
    await approve.click();
    await frame.getByText("You approved the plan.").waitFor();
    await expect.poll(() => page.evaluate(() => window.said)).toEqual(["You approved the plan. (note, version 1)"]);
    expect((await stage.bench.ask(stage.bench.ada, "GET", "/plan/note")).body.status).toBe("approved");

    // A no needs words, which reach the agent.
    await show(client, page, script, "other");
    await frame.getByRole("button", { name: "Reject" }).click();
    await frame.getByText("Say why, so that the agent can do better.").waitFor();
    await frame.getByLabel("Why (for changes and rejections)").fill("not into this folder");
    await frame.getByRole("button", { name: "Reject" }).click();
    await frame.getByText("You rejected the plan.").waitFor();
    expect((await stage.bench.ask(stage.bench.ada, "GET", "/plan/other")).body.status).toBe("rejected");
    expect(faults.filter((fault) => fault !== "about:srcdoc" && fault !== "about:blank")).toEqual([]);
  } finally {
    await context.close();
    await client.close();
  }
});

it("an agent with a token of its own is shown no page", async () => {
  const client = await connect(stage.bench.agent);
  const { tools } = await client.listTools();
  expect(tools.map((tool) => tool.name)).not.toContain("plan_decide");
  const proposed = await client.callTool({ name: "plan_propose", arguments: { plan: { id: "mine", title: "Mine", goal: "a test", steps } } });
  expect(proposed._meta?.[REVIEW]).toBeUndefined();
  await expect(client.callTool({ name: "plan_decide", arguments: { planId: "mine", nonce: "x", decision: "approve" } })).rejects.toThrow(/unknown tool/);
  await client.close();
});

for (const mode of ["legacy", "auto"] as const) {
  it(`a client that opens addresses sends its person to the review, in the era ${mode}`, async () => {
    const client = await connect(stage.bench.ada, { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode } });
    const asked: unknown[] = [];
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push("url" in params ? params.url : params);
      return { action: "accept" };
    });
    const id = `address-${mode}`;
    await client.callTool({ name: "plan_propose", arguments: { plan: { id, title: "Write a note", goal: "a test", steps } } });
    const pending = await client.callTool({ name: "plan_approve", arguments: { planId: id } });
    expect(asked).toEqual([`${stage.bench.url}/ui/plans/${id}`]);
    expect(pending.structuredContent).toMatchObject({ success: true, status: "pending_approval" });
    // That the person went there is no approval.
    expect((await stage.bench.ask(stage.bench.ada, "GET", `/plan/${id}`)).body.status).toBe("proposed");
    const { page } = await stage.visit(stage.bench.ada, `/ui/plans/${id}`);
    await page.getByRole("heading", { name: "Write a note" }).waitFor();
    await client.close();
  });
}
