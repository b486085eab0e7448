import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkConfig } from "./load.ts";
import { problemText } from "./problems.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "skein-runs-config-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function check(text: string, env: Record<string, string> = {}) {
  const file = join(home, "skein.yaml");
  writeFileSync(file, text);
  const { loaded, problems } = await checkConfig({ cwd: home, env: { HOME: home, ...env } });
  return { config: loaded.config, told: problems.map((each) => problemText(each).replace(`${file}:`, "")) };
}

describe("settings of runs", () => {
  test("[CFG3] the environment wins over the file for each of them", async () => {
    const { config, told } = await check(
      "lanes: { main: 3, cron: 2 }\nbudget: { costUsd: 5 }\nlogging: { file: a.log }\n",
      {
        SKEIN_LANES__MAIN: "9",
        SKEIN_BUDGET__COST_USD: "0.5",
        SKEIN_BUDGET__TOKENS: "1000",
        SKEIN_QUEUE__MODE: "interrupt",
        SKEIN_DEFAULTS__RUN_TIMEOUT_SECONDS: "0",
        SKEIN_AGENTS__MAIN__MAX_STEPS: "5",
        SKEIN_AGENTS__MAIN__TOOLS__DENY: "shell*, web_*",
        SKEIN_APPROVALS__TIMEOUT_SECONDS: "5",
        SKEIN_RETRIES__STALL_SECONDS: "7",
        SKEIN_YIELD__TIMEOUT_MINUTES: "6",
        SKEIN_TELEMETRY__OTLP: "http://127.0.0.1:4318",
        SKEIN_LOGGING__LEVEL: "debug",
      },
    );
    expect(told).toEqual([]);
    expect(config).toMatchObject({
      lanes: { main: 9, subagent: 8, cron: 2, nested: 8 },
      budget: { hops: 8, runs: 100, tokens: 1000, costUsd: 0.5 },
      queue: { mode: "interrupt" },
      defaults: { runTimeoutSeconds: 0, maxSteps: 50 },
      agents: { main: { maxSteps: 5, tools: { allow: [], deny: ["shell*", "web_*"] } } },
      approvals: { timeoutSeconds: 5 },
      retries: { max: 3, stallSeconds: 7 },
      yield: { timeoutMinutes: 6 },
      telemetry: { otlp: "http://127.0.0.1:4318" },
      logging: { level: "debug", file: join(home, "a.log") },
    });
  });

  test.each([
    ["lanes: { main: 0 }", "1:16: lanes.main: found 0, expected a whole number from 1 to 1000"],
    ["lanes: { main: 1001 }", "1:16: lanes.main: found 1001, expected a whole number from 1 to 1000"],
    [
      "queue: { mode: stear }",
      '1:16: queue.mode: found "stear", expected "steer", "followup" or "interrupt" (did you mean "steer"?)',
    ],
    [
      "budget: { costUsd: -1 }",
      "1:20: budget.costUsd: found -1, expected a number from 0 to 1000000, or null for no limit",
    ],
    [
      "logging: { level: trace }",
      '1:19: logging.level: found "trace", expected "silent", "error", "warn", "info" or "debug"',
    ],
    [
      "telemetry: { otlp: localhost }",
      '1:20: telemetry.otlp: found "localhost", expected a URL that starts with http:// or https://, or null for nowhere',
    ],
    [
      "defaults: { maxSteps: 0 }",
      "1:23: defaults.maxSteps: found 0, expected a whole number from 1 to 10000",
    ],
  ])("[CFG4] %s is reported", async (text, expected) => {
    expect((await check(text)).told).toEqual([expected]);
  });
});
