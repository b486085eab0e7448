import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import LongestFirst from "./test/support/longest-first.ts";

/** All randomness in the tests follows this seed, so that a failure repeats. `npm run torture` draws another one. */
const seed = process.env.SKEIN_SEED ?? "20261116";
if (!/^\d{1,9}$/.test(seed))
  throw new Error(`SKEIN_SEED is a number of at most nine digits, and not "${seed}"`);
process.stdout.write(`SKEIN_SEED=${seed}\n`);

const tests = ["src/**/*.test.ts", "test/**/*.test.ts"];
/** In a real browser. */
const inBrowser = ["test/console/**/*.test.ts"];
/** With the frameworks that the adapters are for, on the package as it is published. */
const withFrameworks = ["test/frameworks/*.test.ts"];
/**
 * Also on PostgreSQL. They open their stores with `emptyStore`, `wholeGateway` or `GatewayProcess`, or their ledgers with
 * `RunBooks`.
 */
const onPostgres = [
  "src/runs/ledger/*.test.ts",
  "test/library/{agent-loop,around-a-run,channel-messages,deliveries,hard-times,hostile-children,seeds}.test.ts",
  "test/library/{sending,sending-between,session-resets,spawning,spawning-ends,waiting-input,yielding}.test.ts",
  "test/e2e/{client-follows,gateway-attacked,mcp-over-gateway,method-walk-isolation}.test.ts",
  "test/public/{access-rules,answer-context,answers,attacked-streams,between-sessions,branch-pages}.test.ts",
  "test/public/{desk,family,gateway-access,gateway-calls,gateway-events,hooks-and-settings,library}.test.ts",
  "test/public/{live-answers,maintenance,meaning,model-history,mounted-gateway,one-policy,own-loop}.test.ts",
  "test/public/{recall,rehearsal-window,run-control,search}.test.ts",
  "test/public/{schedules,session-lists,session-names,sessions-talk,state-modules,system-override,tool-rules}.test.ts",
  "test/public/{usage,working-directories,xray}.test.ts",
];
/** They count steps or timers, to which other files in the same process would add theirs. */
const alone = ["test/growth.test.ts", "src/sessions/wait-for-run.test.ts"];

/** Detects tests that hang, even on a busy machine. In the long form, a property checks 50 times as many cases. */
const timeoutMs = process.env.SKEIN_TORTURE === undefined ? 600_000 : 3_600_000;

export default defineConfig({
  resolve: {
    alias: [
      { find: "skein/client", replacement: join(import.meta.dirname, "src/entry-client.ts") },
      {
        find: /^visible-text\/jsx(?:-dev)?-runtime$/,
        replacement: join(import.meta.dirname, "console/src/ui/jsx-runtime.ts"),
      },
    ],
  },
  test: {
    // A golden file that is missing is a failure; `vitest run --update` writes it.
    update: "none",
    // More than there are cores: the longest files wait for other processes most of the time.
    maxWorkers: availableParallelism() + 2,
    env: { SKEIN_SEED: seed },
    globalSetup: ["build-programs", "folder-in-memory", "postgres-broker"].map((name) =>
      join(import.meta.dirname, `test/support/${name}.ts`),
    ),
    sequence: { sequencer: LongestFirst },
    reporters: ["default", join(import.meta.dirname, "test/support/list-skipped.ts")],
    setupFiles: [join(import.meta.dirname, "test/support/seeded.ts")],
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    expect: { poll: { timeout: 150_000 } },
    projects: [
      // Modules have no state of their own, so a worker loads them once for all files.
      {
        extends: true,
        test: {
          name: "shared",
          include: tests,
          exclude: [...alone, ...inBrowser, ...withFrameworks, "**/node_modules/**"],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "console",
          include: inBrowser,
          isolate: false,
          globalSetup: join(import.meta.dirname, "scripts/find-browser.ts"),
        },
      },
      {
        extends: true,
        test: {
          name: "postgres",
          include: onPostgres,
          isolate: false,
          setupFiles: join(import.meta.dirname, "test/support/on-postgres.ts"),
        },
      },
      { extends: true, test: { name: "isolated", include: alone } },
      {
        extends: true,
        test: {
          name: "frameworks",
          include: withFrameworks,
          globalSetup: join(import.meta.dirname, "test/frameworks/prepare.ts"),
        },
      },
    ],
  },
});
