import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // A golden file that is missing is a failure; `vitest run --update` writes them anew.
    update: "none",
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
