import { defineConfig } from "vitest/config";

// The page in a real browser, with the real program: one after the other, they share the machine.
export default defineConfig({
  test: {
    include: ["tests/browser/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
