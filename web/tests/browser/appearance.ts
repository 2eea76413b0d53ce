// How a page looks: accessible in both themes, as wide as its window, and photographed.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

export const shots = process.env["PLANWRIGHT_SHOTS"] ?? new URL("shots", import.meta.url).pathname;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(shots, { recursive: true });

type Finding = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] };

export const SCHEMES = ["light", "dark"] as const;

/** What is wrong with the page as it is shown. */
export async function findings(page: Page): Promise<string[]> {
  // Once per document: it is large.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe: checker } = window as unknown as { axe: { run: (where: Document, options: object) => Promise<{ violations: Finding[] }> } };
    return (await checker.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], resultTypes: ["violations"] })).violations;
  });
  return found.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" | ")} ${nodes[0]?.failureSummary}`);
}

/** Looks at the page in both themes at three widths, photographs it at two, and says what is wrong. */
export async function inspect(page: Page, name: string): Promise<string[]> {
  const tooWide = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  const wrong: string[] = [];
  for (const scheme of SCHEMES) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [width, size] of [[1280, "desktop"], [390, "phone"]] as const) {
      await page.setViewportSize({ width, height: width === 390 ? 780 : 860 });
      await page.waitForTimeout(50);
      await page.screenshot({ path: `${shots}/${name}-${size}-${scheme}.png` });
      const wide = await tooWide();
      if (wide > 0) wrong.push(`${size}: ${wide} pixels too wide`);
      wrong.push(...(await findings(page)).map((finding) => `${scheme} ${size}: ${finding}`));
    }
  }
  await page.setViewportSize({ width: 320, height: 640 });
  const narrow = await tooWide();
  if (narrow > 0) wrong.push(`at 320: ${narrow} pixels too wide`);
  return wrong;
}
