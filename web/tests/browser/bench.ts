// The real program in a folder of its own, and browsers that notice what a page must not do.
import { spawn, execFileSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

export const PROGRAM = process.env["PLANWRIGHT_PROGRAM"] ?? new URL("../../../target/debug/planwright", import.meta.url).pathname;
const BROWSERS = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

type Answer = { status: number; body: any; etag: string | null };

/** What a suite adds to the workspace: lines of its configuration, files, and variables such as the address of a store. */
export type Settings = { config?: string; files?: Record<string, string>; env?: Record<string, string> };

/** A service with two people and an agent. */
export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), "planwright-page-"));
  readonly workspace = join(this.folder, "workspace");
  readonly ada: string;
  readonly bob: string;
  readonly agent: string;
  url = "";
  private service: ChildProcess | null = null;
  private readonly workers: ChildProcess[] = [];
  private readonly env: Record<string, string>;

  private constructor({ config = "", files = {}, env = {} }: Settings) {
    this.env = env;
    mkdirSync(this.workspace);
    // Plans may run programs here: that is what an interrupted call is shown with.
    mkdirSync(join(this.folder, "home"));
    writeFileSync(join(this.workspace, "planwright.toml"), `[local]\nrun_command = true\n${config}`);
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    this.command("trust", "--yes");
    const token = (...args: string[]) => this.command("token", "create", ...args);
    this.ada = token("--role", "admin", "--kind", "person", "--name", "Ada");
    this.bob = token("--role", "admin", "--kind", "person", "--name", "Bob");
    this.agent = token("--role", "author", "--kind", "agent", "--name", "planner");
  }

  static async start(settings: Settings = {}): Promise<Bench> {
    const bench = new Bench(settings);
    await bench.serve();
    return bench;
  }

  /** Runs the program in the workspace. */
  command(...args: string[]): string {
    return execFileSync(PROGRAM, args, { cwd: this.workspace, env: this.environment(), stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
  }

  /** Nothing of the environment that could make the program another one's. */
  environment(): NodeJS.ProcessEnv {
    return { HOME: join(this.folder, "home"), PATH: process.env["PATH"], USER: "ada", LANG: "C.UTF-8", ...this.env } as unknown as NodeJS.ProcessEnv;
  }

  /** Starts the service; a second time at the same address. */
  async serve(): Promise<void> {
    const listen = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
    const service = spawn(PROGRAM, ["serve", "--listen", listen, "--json"], { cwd: this.workspace, env: this.environment(), stdio: ["ignore", "pipe", "ignore"] });
    this.service = service;
    this.url = await new Promise<string>((resolve, reject) => {
      let text = "";
      service.stdout.on("data", (data: Buffer) => {
        text += data.toString();
        const line = text.split("\n").find((candidate) => candidate.startsWith("{"));
        if (line) resolve((JSON.parse(line) as { url: string }).url);
      });
      service.on("exit", (code) => reject(new Error(`the service ended with ${code}: ${text}`)));
    });
  }

  /** Starts a worker in a workspace of its own. It ends with the suite at the latest. */
  startWorker(name: string, ...args: string[]): ChildProcess {
    const workspace = join(this.folder, name);
    mkdirSync(workspace, { recursive: true });
    writeFileSync(join(workspace, "planwright.toml"), '[dispatch]\nclaim = "3s"\n');
    const options = { cwd: workspace, env: this.environment(), stdio: "ignore" } as const;
    execFileSync(PROGRAM, ["trust", "--yes"], options);
    const worker = spawn(PROGRAM, ["worker", ...args], options);
    this.workers.push(worker);
    return worker;
  }

  /** The memory of the service, in megabytes. */
  memory(): number {
    const status = readFileSync(`/proc/${this.service?.pid}/status`, "utf8");
    return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024);
  }

  async kill(): Promise<void> {
    const service = this.service;
    this.service = null;
    if (service === null || service.exitCode !== null) return;
    const ended = new Promise((resolve) => service.once("exit", resolve));
    service.removeAllListeners("exit");
    service.once("exit", () => undefined);
    const gone = new Promise((resolve) => service.once("close", resolve));
    service.kill("SIGKILL");
    await Promise.race([ended, gone]);
  }

  async stop(): Promise<void> {
    await this.kill();
    for (const worker of this.workers) {
      if (worker.exitCode !== null || worker.signalCode !== null) continue;
      const gone = new Promise((resolve) => worker.once("close", resolve));
      worker.kill("SIGKILL");
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  async ask(token: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, accept: "application/json", "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text), etag: response.headers.get("etag") };
  }

  /** Proposes a plan as the agent. */
  async propose(plan: object): Promise<void> {
    const answer = await this.ask(this.agent, "POST", "/plan", plan);
    if (answer.status !== 201) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
  }

  async approve(id: string, late: Record<string, string> = {}): Promise<void> {
    const { body } = await this.ask(this.ada, "GET", `/plan/${id}`);
    const answer = await this.ask(this.ada, "POST", `/plan/${id}/approve`, { decision: "approve", digest: body.digest, late });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  }

  async run(id: string): Promise<string> {
    const answer = await this.ask(this.ada, "POST", `/plan/${id}/run`, {});
    if (answer.status !== 202) throw new Error(JSON.stringify(answer.body));
    return answer.body.runId as string;
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.workspace, name)), { recursive: true });
    writeFileSync(join(this.workspace, name), text, { mode: 0o600 });
  }

  read(name: string): string | null {
    const path = join(this.workspace, name);
    return existsSync(path) ? readFileSync(path, "utf8") : null;
  }
}

export async function launch(): Promise<Browser> {
  const program = BROWSERS.find((path) => path !== undefined && existsSync(path));
  if (program === undefined) throw new Error("there is no browser: apt-get install chromium, or name one as CHROMIUM");
  return chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
}

export type Visitor = { page: Page; context: BrowserContext; faults: string[] };

/** Opens the page as the owner of this token. What it must never do is noted as a fault. */
export async function openPage(browser: Browser, bench: Bench, token: string | null, path = "/", options: { width?: number; height?: number } = {}): Promise<Visitor> {
  const context = await browser.newContext({ viewport: { width: options.width ?? 1280, height: options.height ?? 860 }, reducedMotion: "reduce" });
  const faults: string[] = [];
  // Nothing leaves for elsewhere, and that it wanted to is a fault.
  await context.route(
    (url) => url.origin !== bench.url,
    (route) => {
      faults.push(`request to ${route.request().url()}`);
      return route.abort();
    },
  );
  const folder = process.env["PLANWRIGHT_PAGE"];
  if (folder !== undefined) await serveFromDisk(context, bench, resolve(folder));
  if (token !== null) await signIn(context, bench, token);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`violation of ${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
  });
  context.setDefaultTimeout(90_000);
  const page = await context.newPage();
  page.on("dialog", (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => faults.push(`error ${error.message}`));
  page.on("popup", (popup) => faults.push(`popup ${popup.url()}`));
  page.on("console", (message) => {
    // A refused or cut request is in the console as well; those are looked at by the tests themselves.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) faults.push(`console ${message.text()}`);
  });
  await page.goto(bench.url + path);
  return { page, context, faults };
}

/** Opens a session as the page does, and gives it to the browser. */
export async function signIn(context: BrowserContext, bench: Bench, token: string): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${bench.url}/sign-in`, { method: "POST", headers, body: JSON.stringify({ token, cookie: true }) });
  const [pair = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
  const [name = "", value = ""] = pair.split("=");
  await context.addCookies([{ name, value, url: bench.url, httpOnly: true, sameSite: "Strict" }]);
  const { proof } = (await answer.json()) as { proof: string };
  // Once for each tab: what signs out stays signed out.
  await context.addInitScript((kept) => {
    if (window.sessionStorage.getItem("signed-in") === null) window.localStorage.setItem("planwright.proof", kept);
    window.sessionStorage.setItem("signed-in", "yes");
  }, proof);
}

/** While the page is worked on: its files from a folder, under the policy of the program, which need not be built again. */
async function serveFromDisk(context: BrowserContext, bench: Bench, dist: string): Promise<void> {
  await context.route(
    (url) => url.origin === bench.url && (url.pathname === "/" || url.pathname.startsWith("/ui")),
    async (route) => {
      const real = await fetch(`${bench.url}/`).catch(() => null);
      if (real === null) return route.abort();
      const name = new URL(route.request().url()).pathname.replace(/^\/(ui\/?)?/, "");
      const file = name !== "" && existsSync(join(dist, name)) ? name : "index.html";
      return route.fulfill({ path: join(dist, file), headers: { "content-security-policy": real.headers.get("content-security-policy") ?? "", "content-type": TYPES[file.split(".").at(-1) ?? ""] ?? "" } });
    },
  );
}

const TYPES: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

/** Reads on, step by step, until everything was on screen. */
export async function readAll(page: Page): Promise<void> {
  const next = page.getByRole("button", { name: "Next unseen" });
  for (let press = 0; press < 400 && (await next.count()) > 0; press += 1) {
    await next.click({ timeout: 2_000 }).catch(() => undefined);
    await page.waitForTimeout(30);
  }
}

export async function until<Value>(look: () => Promise<Value | null | undefined | false>, what: string, ms = 90_000): Promise<Value> {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`did not happen within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
