// People who sign in with an identity provider: a real one, in a process of its own.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { Bench } from "./bench";
import { setStage } from "./stage";

const PEERS = process.env["PLANWRIGHT_PEERS"] ?? new URL("../../../target/peers", import.meta.url).pathname;
const AUTHORITY = new URL("../../../crates/planwright-testing/src/authority.mjs", import.meta.url).pathname;
const PROVIDER = new URL("identity-provider.mjs", import.meta.url).pathname;
const started: ChildProcess[] = [];

const free = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

const providerPort = await free();
const greeterPort = await free();
const authorityPort = await free();
const stage = setStage({
  config: `[secrets.OIDC]
file = "oidc-secret"
[sign_in.oidc]
issuer = "http://127.0.0.1:${providerPort}"
client_id = "planwright"
client_secret = "OIDC"
label = "Sign in with Example"
allowed_domains = ["example.org"]
scopes = ["email"]
roles = { leads = "approver", staff = "viewer" }
[servers.greeter]
url = "http://localhost:${greeterPort}/mcp"
personal_sign_in = true
`,
  files: { "oidc-secret": "a secret of the provider" },
});

async function startProvider(bench: Bench): Promise<void> {
  const provider = spawn(process.execPath, [PROVIDER, `${PEERS}/node-oidc`, String(providerPort), bench.url], { stdio: ["ignore", "pipe", "ignore"] });
  started.push(provider);
  await new Promise<void>((resolve, reject) => {
    provider.stdout.on("data", (data: Buffer) => {
      if (data.toString().includes("ready")) resolve();
    });
    provider.on("exit", (code) => reject(new Error(`the provider ended with ${code}`)));
  });
}

/** Starts a server of tools that people sign in to, and the one who signs them in. */
async function startGreeter(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "greeter-"));
  const ports = [greeterPort, authorityPort];
  started.push(spawn(process.execPath, [AUTHORITY, `${PEERS}/node-authority`, join(folder, "log.txt"), ...ports.map(String)], { stdio: "ignore" }));
  const answers = (port: number) => fetch(`http://localhost:${port}/`).then(() => true, () => false);
  await expect.poll(async () => (await Promise.all(ports.map(answers))).every(Boolean), { timeout: 60_000 }).toBe(true);
}

afterAll(() => {
  for (const provider of started) provider.kill("SIGKILL");
});

/** Goes from the page to the provider, signs in there, and comes back. */
async function signInAs(page: Page, name: string): Promise<void> {
  await page.goto(`${stage.bench.url}/`);
  await page.getByRole("link", { name: "Sign in with Example" }).click();
  await page.waitForURL(`http://127.0.0.1:${providerPort}/**`);
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  // The provider asks whether it may tell.
  await page.locator("button[type=submit]").click();
  await page.waitForURL(`${stage.bench.url}/**`);
}

it("people sign in with their organisation, with the role that their groups give, and others are told why not", async () => {
  await startProvider(stage.bench);
  const visit = async (name: string) => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await signInAs(page, name);
    return { page, context };
  };
  const ada = await visit("ada");
  await ada.page.getByRole("heading", { name: /Waiting for you/ }).waitFor();
  expect(ada.page.url()).toBe(`${stage.bench.url}/`);
  await ada.page.getByText("ada@example.org").first().waitFor();
  await ada.page.goto(`${stage.bench.url}/ui/settings`);
  await ada.page.getByText("your organisation").waitFor();
  await ada.page.getByText("approver").first().waitFor();
  await ada.context.close();
  for (const [name, words] of [["bob", "no role here"], ["eve", "domain"], ["mallory", "not verified"]] as const) {
    const { page, context } = await visit(name);
    await page.getByRole("alert").getByText(words, { exact: false }).waitFor();
    // The provider's own cookies are kept for the same host.
    const cookies = await context.cookies(stage.bench.url);
    expect(cookies.filter((cookie) => !cookie.name.startsWith("_session"))).toEqual([]);
    await context.close();
  }
  // A way back that did not begin here leads nowhere.
  const stranger = await stage.browser.newContext();
  const page = await stranger.newPage();
  await page.goto(`${stage.bench.url}/sign-in/oidc/callback?code=stolen&state=made-up`);
  await page.getByRole("alert").getByText("try again", { exact: false }).waitFor();
  await stranger.close();
});

it("a person signs in to a server of tools by themselves, and out again", async () => {
  await startGreeter();
  const { page, context } = await stage.visit(stage.bench.ada, "/ui/settings");
  const accounts = page.getByRole("region", { name: "Your accounts at servers" });
  await accounts.getByRole("button", { name: "Sign in to greeter" }).click();
  const link = await accounts.getByRole("link", { name: "Open the sign-in page" }).getAttribute("href");
  // The page itself goes nowhere else, and is stopped if it tries: the person does, in the same browser.
  const person = await stage.browser.newContext({ storageState: await context.storageState() });
  const there = await person.newPage();
  await there.goto(link ?? "");
  await there.getByText("You are signed in to greeter.").waitFor();
  await person.close();
  await page.reload();
  await accounts.getByRole("button", { name: "Sign out of greeter" }).click();
  await accounts.getByRole("button", { name: "Sign in to greeter" }).waitFor();
});
