import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { afterAll, expect, test } from "vitest";
import type { ModelStep } from "../../../src/entry-testing.ts";
import type { Skein } from "../../../src/index.ts";
import { defineTool } from "../../../src/index.ts";
import { repetitions } from "../../support/repetitions.ts";
import { runChance } from "../../support/run-seed.ts";
import { brief, messagesOf, openRuns, pairingProblems } from "../../support/run-skein.ts";

const sessions = repetitions.queuedSessions;
const each = 10;
const cap = 6;
const restarts = 6;
const folder = mkdtempSync(join(tmpdir(), "skein-queue-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const chances = runChance();
function chance(percent: number): boolean {
  return chances.below(100) < percent;
}

const failures = new Map<string, number>();

/** Answers the last message, sometimes with a tool. Sometimes fails, but at most twice per message. */
function decide({ prompt }: LanguageModelV4CallOptions): ModelStep {
  const at = prompt.findLastIndex(({ role }) => role === "user");
  const asked = /s\d+ m\d+/.exec(JSON.stringify(prompt[at]))?.[0] ?? "";
  const failed = failures.get(asked) ?? 0;
  if (failed < 2 && chance(6)) {
    failures.set(asked, failed + 1);
    if (chance(5)) return { text: "half an ans", cut: true };
    return { error: { status: chance(50) ? 429 : 500, message: "Busy", retryAfter: "0" } };
  }
  const hasCalled = prompt.slice(at).some(({ role }) => role === "tool");
  if (!hasCalled && chance(20)) return { calls: [{ name: "flaky" }] };
  return { text: `answer to ${asked}` };
}

const flaky = defineTool({
  name: "flaky",
  description: "Works at times.",
  execute: () => {
    if (chance(30)) throw new Error("not now");
    return "fine";
  },
});

async function counted(skein: Skein, states: readonly ("queued" | "running" | "waiting")[]): Promise<number> {
  return (await skein.runs.list({ states, limit: 1000 })).length;
}

test(`[KIL8] [KIL12] ${sessions} sessions with ${each} messages each, failures and restarts: all answered, in order, once`, async () => {
  const config = join(folder, "skein.yaml");
  writeFileSync(config, `durability: os\nlogging: { level: error }\nlanes: { main: ${cap} }\n`);
  const over: number[] = [];
  let ended = 0;
  const open = async () => {
    const opened = await openRuns({ dir: join(folder, "skein"), config, script: decide, tools: [flaky] });
    opened.skein.subscribe(({ type }) => {
      if (type === "run.ended") ended += 1;
      if (type !== "run.started") return;
      void counted(opened.skein, ["running"]).then((running) => void (running > cap && over.push(running)));
    });
    return opened;
  };
  let { skein, reports } = await open();
  const complaints = [reports];
  for (let message = 0; message < each; message++) {
    for (let session = 0; session < sessions; session++) {
      const name = `s${session}`;
      // A message that is sent again after a restart is still the same message.
      const idempotencyKey = `${name}-${message}`;
      skein
        .session({ sessionId: name })
        .send(`${name} m${message}`, { queueMode: "followup", idempotencyKey });
    }
  }
  const total = sessions * each;
  for (let restart = 1; restart <= restarts; restart++) {
    await until(() => ended >= (total * restart) / (restarts + 1));
    await skein.close({ graceMs: 0 });
    ({ skein, reports } = await open());
    complaints.push(reports);
  }
  await until(() => ended >= total);
  expect(await left(skein, total)).toBe(0);
  expect(over).toEqual([]);
  for (let session = 0; session < sessions; session++) await expectInOrder(skein, `s${session}`);
  expect(complaints.flat().map(String)).toEqual([]);
  await skein.close({ graceMs: 0 });
});

/** The number of runs that did not succeed. */
async function left(skein: Skein, total: number): Promise<number> {
  let ended = 0;
  let before: number | undefined;
  for (;;) {
    const page = await skein.runs.list({
      states: ["ok"],
      limit: 1000,
      ...(before === undefined ? {} : { before }),
    });
    ended += page.length;
    before = page.at(-1)?.seq;
    if (page.length < 1000) return total - ended;
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => void setTimeout(resolve, 20));
}

async function expectInOrder(skein: Skein, name: string): Promise<void> {
  const messages = await messagesOf(skein, name);
  expect(pairingProblems(messages)).toEqual([]);
  const said = messages.map(brief);
  const wanted = Array.from({ length: each }, (_, message) => `${name} m${message}`);
  expect(said.filter((text) => text.startsWith("user:"))).toEqual(wanted.map((text) => `user: ${text}`));
  expect(said.filter((text) => text.startsWith("assistant: answer"))).toEqual(
    wanted.map((text) => `assistant: answer to ${text}`),
  );
}
