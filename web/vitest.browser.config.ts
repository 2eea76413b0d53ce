import { defineConfig } from "vitest/config";

// The page in a real browser, with the real program: one after the other, they share the machine.
export default defineConfig({
  test: {
    include: ["tests/browser/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    // Ends what hangs. The machine may be busy with other suites, so it says nothing about speed.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
