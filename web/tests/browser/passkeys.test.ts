// Passkeys, with the device that Chromium pretends to have.
import type { BrowserContext, Page } from "playwright-core";
import { expect, it } from "vitest";
import { readAll, until } from "./bench";
import { setStage } from "./stage";

const stage = setStage({ config: '[policy.approval]\npasskey = ["local.write_file"]\n' });

/** Passkeys belong to names: the service is visited under the name of this machine. */
const named = (): string => stage.bench.url.replace("127.0.0.1", "localhost");

/** A browser of Ada's with a device, which checks who is in front of it or does not. */
async function visit(verified: boolean): Promise<{ page: Page; context: BrowserContext }> {
  const context = await stage.browser.newContext({ reducedMotion: "reduce" });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  await devtools.send("WebAuthn.addVirtualAuthenticator", {
    options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: verified, automaticPresenceSimulation: true },
  });
  await page.goto(named());
  await signIn(page);
  return { page, context };
}

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Your token").fill(stage.bench.ada);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).first().waitFor();
}

async function makePasskey(page: Page, label: string): Promise<void> {
  await page.goto(`${named()}/ui/settings`);
  await page.getByLabel("What you call it").fill(label);
  await page.getByRole("button", { name: "Make a passkey" }).click();
}

const approvals = async (id: string): Promise<{ assurance: string }[]> => (await stage.bench.ask(stage.bench.ada, "GET", `/plan/${id}`)).body.approvals;

it("a plan that wants a passkey is approved by the person who uses theirs, and by nothing else", async () => {
  const step = { id: "w", tool: "local.write_file", args: { path: "paid.txt", content: "paid" } };
  await stage.bench.propose({ id: "paid", title: "Pay the bill", goal: "a test", steps: [step] });
  const { body } = await stage.bench.ask(stage.bench.ada, "GET", "/plan/paid");
  const refused = await stage.bench.ask(stage.bench.ada, "POST", "/plan/paid/approve", { decision: "approve", digest: body.digest });
  expect([refused.status, refused.body.code]).toEqual([403, "passkey_needed"]);

  const { page, context } = await visit(true);
  await page.goto(`${named()}/ui/plans/paid`);
  await readAll(page);
  const approve = page.getByRole("button", { name: /^Approve/ });
  await page.getByText("approved with a passkey", { exact: false }).first().waitFor();
  expect(await approve.isEnabled()).toBe(false);
  // Without one the button says where it is made.
  await page.getByRole("button", { name: "Use your passkey" }).click();
  await page.getByText("Settings makes one", { exact: false }).waitFor();
  await makePasskey(page, "My laptop");
  await page.getByRole("listitem").getByText("My laptop").waitFor();
  await page.getByText("a passkey, just now").waitFor();

  // Another session of the same person has to use it.
  await page.getByRole("button", { name: "Sign out" }).first().click();
  await signIn(page);
  await page.goto(`${named()}/ui/plans/paid`);
  await readAll(page);
  await page.getByRole("button", { name: "Use your passkey" }).click();
  await until(async () => await approve.isEnabled(), "the passkey was used");
  await approve.click();
  await page.getByRole("dialog").getByRole("button", { name: /Approve and run/ }).click();
  await until(async () => stage.bench.read("paid.txt") === "paid", "the plan has run");
  expect((await approvals("paid")).map(({ assurance }) => assurance)).toEqual(["passkey"]);

  // It is removed again, which is confirmed already.
  await page.goto(`${named()}/ui/settings`);
  await page.getByRole("button", { name: "Remove My laptop" }).click();
  await until(async () => (await page.getByRole("button", { name: "Remove My laptop" }).count()) === 0, "the passkey is gone");
  await context.close();
});

it("a device that does not check who is in front of it makes no passkey", async () => {
  const { page, context } = await visit(false);
  await makePasskey(page, "Any device");
  await page.getByRole("alert").first().waitFor();
  expect((await stage.bench.ask(stage.bench.ada, "GET", "/passkeys")).body.passkeys).toEqual([]);
  await context.close();
});

it("under an address of numbers the page says why there are no passkeys", async () => {
  const { page } = await stage.visit(stage.bench.ada, "/ui/settings");
  await page.getByText("Passkeys belong to a name", { exact: false }).waitFor();
});
