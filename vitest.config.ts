import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // A golden file that is missing is a failure; `vitest run --update` writes them anew.
    update: "none",
    // By itself vitest leaves one core alone, which of two is half of them.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Processes that tests start read TypeScript once.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/skein") },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      // Modules have no state of their own, so a worker loads them once for all files.
      { extends: true, test: { name: "beside", include: ["src/**/*.test.ts"], isolate: false } },
      { extends: true, test: { name: "whole", include: ["test/**/*.test.ts"] } },
    ],
  },
});
