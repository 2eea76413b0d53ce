import { defineConfig } from "vitest/config";

// The page in a real browser, with the real program: one after the other, they share the machine.
export default defineConfig({
  test: {
    include: ["tests/browser/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    // As the other suites do: beside all of them a deadline is missed now and then. The report names such a test.
    retry: 1,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
