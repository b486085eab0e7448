import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { Entry, Skein } from "../../../src/index.ts";
import { createSkein } from "../../../src/index.ts";
import type { PauseMode } from "../../support/pause-scenario.ts";
import { pauseOptions } from "../../support/pause-scenario.ts";
import { stateOf } from "../../support/proc.ts";
import { supportProgram } from "../../support/programs.ts";
import { laterClock, openRuns } from "../../support/run-skein.ts";

const child = supportProgram("pause-child");
const lockHolder = supportProgram("crash-child");
const base = mkdtempSync(join(tmpdir(), "skein-pause-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** A process that is stopped at its gate without holding a lock. */
async function stoppedAtGate(folder: string, mode: PauseMode) {
  const running = spawn(process.execPath, [child, folder, mode], { stdio: ["ignore", "pipe", "inherit"] });
  const said: string[] = [];
  const lines = createInterface({ input: running.stdout });
  lines.on("line", (line) => said.push(line));
  const ended = once(running, "close");
  while (!said.includes("at the gate")) await sleep(5);
  const sessions = join(folder, "skein/users/alice/agents/main/sessions");
  for (;;) {
    running.kill("SIGSTOP");
    while (stateOf(running.pid ?? 0) !== "T") await sleep(5);
    if (!readdirSync(sessions).some((name) => name.endsWith(".lock"))) break;
    running.kill("SIGCONT");
    await sleep(5);
  }
  return { running, said, ended };
}

async function entriesOf(skein: Skein): Promise<readonly Entry[]> {
  const scope = { userId: "alice", agentId: "main" };
  const page = await skein.store.sessions.page(scope, "paused", { along: "branch", limit: 100 });
  return page?.entries ?? [];
}

async function approveAll(skein: Skein): Promise<void> {
  for (const { approvalId } of await skein.approvals.list())
    await skein.approvals.resolve(approvalId, "approved");
}

describe.runIf(process.platform === "linux")("a process that is paused past its lease", () => {
  test.each<[PauseMode, string | null]>([
    ["streaming", null],
    ["tool", "act the first\n"],
    ["approval", "ask the second\n"],
  ])("[KIL2] %s: another process ends the run, and the first writes nothing more", async (mode, done) => {
    const folder = mkdtempSync(join(base, `${mode}-`));
    const { running, said, ended } = await stoppedAtGate(folder, mode);
    writeFileSync(join(folder, "open"), "");
    const second = { who: "the second", atGate: () => undefined, clock: laterClock };
    const skein = await createSkein(pauseOptions({ folder, mode, ...second }));
    const turn = skein
      .session({ userId: "alice", sessionId: "paused" })
      .send("Go", { idempotencyKey: "the-turn" });
    const waiting = setInterval(() => void approveAll(skein), 50);
    const { reply } = await turn.result;
    clearInterval(waiting);
    expect(reply).toBe("The answer of the second.");
    const before = await entriesOf(skein);
    running.kill("SIGCONT");
    await ended;
    expect(said).toEqual(["at the gate", "let go"]);
    expect(await entriesOf(skein)).toEqual(before);
    expect((await skein.runs.get(turn.runId))?.outcome).toMatchObject({ state: "ok", reply });
    const log = join(folder, "done.log");
    expect(existsSync(log) ? readFileSync(log, "utf8") : null).toBe(done);
    const answers = JSON.stringify(before).match(/The answer of/g);
    expect(answers).toHaveLength(1);
    await skein.close({ graceMs: 0 });
  });
});

describe.runIf(process.platform === "linux")("a process stopped with a session locked", () => {
  test("other sessions' runs are executed meanwhile, and that session's run once the lock is released", async () => {
    const dir = mkdtempSync(join(base, "locked-"));
    const { skein, reports } = await openRuns({
      dir,
      // A claim that waited this long would keep the others waiting beyond the time limit of this test.
      config: { lock: { timeoutMs: 86_400_000 } },
      script: () => ({ text: "Done." }),
    });
    const send = (sessionId: string) => skein.session({ userId: "alice", sessionId }).send("Go");
    const shared = skein.session({ userId: "alice", sessionId: "shared" });
    await shared.send("Go").result;
    const holder = spawn(process.execPath, [lockHolder, "hold", dir], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(holder, "close");
    while (stateOf(holder.pid ?? 0) !== "T") await sleep(5);
    await shared.accept("Go", { idempotencyKey: "waiting" });
    const waiting = shared.send("Go", { idempotencyKey: "waiting" });
    const others = ["first", "second", "third"].map(send);
    for (const { result } of others) expect(await result).toMatchObject({ reply: "Done." });
    expect(await skein.runs.get(waiting.runId)).toMatchObject({ state: "queued", startedAt: null });
    holder.kill("SIGCONT");
    await ended;
    expect(await waiting.result).toMatchObject({ reply: "Done." });
    expect(reports).toEqual([]);
    await skein.close({ graceMs: 0 });
  });
});
