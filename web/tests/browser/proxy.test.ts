// The service below a path of a reverse proxy, which takes the path off or leaves it on.
import { createServer, type ViteDevServer } from "vite";
import { expect, it } from "vitest";
import { until } from "./bench";
import { setStage } from "./stage";

const stage = setStage({ config: '[serve]\nbase_path = "/team/pw"\nallow_hosts = ["127.0.0.1"]\n' });

/** A proxy that shows the service at `/team/pw`. */
async function proxy(takesOff: boolean): Promise<{ server: ViteDevServer; url: string }> {
  const rewrite = takesOff ? { rewrite: (path: string) => path.replace("/team/pw", "") } : {};
  const server = await createServer({
    configFile: false,
    logLevel: "silent",
    root: stage.bench.folder,
    server: { host: "127.0.0.1", port: 0, hmr: false, proxy: { "/team/pw": { target: stage.bench.url, ...rewrite } } },
  });
  await server.listen();
  const address = server.httpServer?.address();
  if (address === null || typeof address !== "object") throw new Error("the proxy does not listen");
  return { server, url: `http://127.0.0.1:${address.port}` };
}

for (const takesOff of [true, false]) {
  it(`the page works below a path that the proxy ${takesOff ? "takes off" : "leaves on"}`, async () => {
    const { server, url } = await proxy(takesOff);
    const context = await stage.browser.newContext();
    const wrong: string[] = [];
    try {
      const id = `behind-${takesOff}`;
      await stage.bench.propose({ id, title: `Behind ${takesOff}`, goal: "a test", steps: [{ id: "a", tool: "demo.echo", args: { value: 1 } }] });
      const page = await context.newPage();
      page.on("response", (response) => {
        if (response.status() >= 400 || !response.url().startsWith(`${url}/team/pw`)) wrong.push(`${response.status()} ${response.url()}`);
      });
      page.on("pageerror", (error) => wrong.push(error.message));
      await page.goto(`${url}/team/pw/`);
      await page.getByLabel("Your token").fill(stage.bench.ada);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: /Waiting for you/ }).waitFor();
      await page.getByRole("link", { name: "Plans" }).click();
      await page.getByText(`Behind ${takesOff}`).first().click();
      await page.getByRole("heading", { name: `Behind ${takesOff}` }).waitFor();
      expect(page.url()).toBe(`${url}/team/pw/ui/plans/${id}`);
      await page.reload();
      await page.getByRole("heading", { name: `Behind ${takesOff}` }).waitFor();
      await page.goto(`${url}/team/pw/docs`);
      await until(async () => (await page.locator("#operations > *").count()) > 5, "the documentation is shown");
      expect(wrong).toEqual([]);
    } finally {
      await context.close();
      await server.close();
    }
  });
}
