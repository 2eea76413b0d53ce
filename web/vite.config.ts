import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The service that the development server stands in front of: `planwright serve --listen :7600`.
const service = process.env["PLANWRIGHT_URL"] ?? "http://127.0.0.1:7600";

export default defineConfig({
  base: "/ui/",
  plugins: [react()],
  // A proxy may show the service below a path: scripts find each other by their own addresses.
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === "js" ? { relative: true } : undefined) },
  build: {
    target: "es2022",
    // The page's policy allows no `data:` addresses and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
    // What others wrote, and is part of the page, comes with their licences.
    license: { fileName: "licenses.md" },
  },
  server: {
    proxy: {
      // Everything that is not the page is the service. It checks host and origin, so both are its own.
      "^/(plan|approvals|chat|docs|events|healthz|metrics|openapi|readyz|session|invitations|sign-in|stats|tickets|tools|whoami)": {
        target: service,
        changeOrigin: true,
        headers: { origin: service },
      },
    },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
