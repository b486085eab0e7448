import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Started } from "../../support/cli-process.ts";
import { FamilyCount } from "../../support/family-count.ts";
import { alice, familyConfig, openFamily, prepareFamily, untilQuiet } from "../../support/family-scenario.ts";
import { supportProgram } from "../../support/programs.ts";

const partner = supportProgram("family-partner");
const started: Started[] = [];
let base = "";
let folder = "";

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "skein-partners-"));
  folder = join(base, "folder");
  mkdirSync(folder);
  writeFileSync(join(folder, "skein.yaml"), familyConfig);
  const skein = await openFamily(folder, "all");
  await prepareFamily(skein);
  await skein.close();
});

afterEach(async () => {
  for (const each of started.splice(0)) {
    each.child.kill("SIGKILL");
    await each.end();
  }
  rmSync(base, { recursive: true, force: true });
});

function start(...args: readonly string[]): Started {
  const begun = new Started([partner, folder, ...args]);
  started.push(begun);
  return begun;
}

const spawnArgs = (task: string) => JSON.stringify({ task: `TASK-${task}`, background: false });
const sendArgs = JSON.stringify({
  sessionKey: "agent:other:session:near",
  message: "QUESTION-near",
  timeoutSeconds: 600,
});

/** Executes the folder's queued work and counts the results. */
async function workedOff(): Promise<FamilyCount> {
  const skein = await openFamily(folder, "all");
  await untilQuiet(skein);
  await skein.close();
  return new FamilyCount(folder);
}

const resultOf = (asking: Started): unknown => JSON.parse(asking.out.trim().split("\n").at(-1) ?? "null");

describe("two processes on one folder", () => {
  test("[CRS1] one spawns and waits, the other works and is killed: a third one continues, and only the waiter gets the result", async () => {
    const asking = start("ask", "sessions_spawn", spawnArgs("slow"));
    await asking.until(/asked/);
    const working = start("work");
    const skein = await openFamily(folder, "all", { workers: false });
    await expect.poll(async () => (await skein.runs.list({ states: ["running"] })).length).toBe(1);
    const [{ runId = "" } = {}] = await skein.runs.list({ states: ["running"] });
    working.child.kill("SIGKILL");
    await working.end();
    const next = start("work");
    await expect.poll(async () => (await skein.runs.get(runId))?.lost).toBe(1);
    await skein.runs.abort(runId);
    expect(await asking.end()).toBe(0);
    expect(resultOf(asking)).toMatchObject({ status: "ok", runId, outcome: "aborted" });
    next.child.kill("SIGKILL");
    await next.end();
    await skein.close();
    const count = await workedOff();
    expect({ problems: count.problems, children: count.children, told: count.told }).toEqual({
      problems: [],
      children: 1,
      told: 0,
    });
  });

  test.each([
    ["sessions_spawn", spawnArgs("good"), "A session that you spawned has ended"],
    // Arrives as a turn of the exchange. The announcement that follows quotes it.
    ["sessions_send", sendArgs, '"content":"Answer of the other."'],
  ])(
    "[TLK6] a process that waits for %s is killed: the result reaches its session once",
    async (tool, args, said) => {
      const asking = start("ask", tool, args);
      await asking.until(/asked/);
      asking.child.kill("SIGKILL");
      await asking.end();
      const count = await workedOff();
      expect(count.problems).toEqual([]);
      const heard = count.messagesOf("main", "parent").filter((each) => JSON.stringify(each).includes(said));
      expect(heard.filter(({ role }) => role === "user")).toHaveLength(1);
      // Repeating the call returns the first result and causes no second announcement.
      const again = start("ask", tool, args);
      expect(await again.end()).toBe(0);
      expect(resultOf(again)).not.toHaveProperty("result");
      expect((await workedOff()).told).toBe(count.told);
    },
  );

  test("[TLK6] a waiting run whose process is killed and that is aborted: the reply is announced in its session, once", async () => {
    const working = start("work");
    const skein = await openFamily(folder, "all", { workers: false });
    const parent = skein.session({ ...alice, sessionId: "parent" });
    const { runId } = await parent.accept("WAIT-for-slow");
    const isWaiting = async () => (await skein.runs.get(runId))?.state;
    await expect.poll(isWaiting).toBe("waiting");
    working.child.kill("SIGKILL");
    await working.end();
    await skein.runs.abort(runId);
    await skein.close();
    const count = await workedOff();
    expect({ problems: count.problems, children: count.children, told: count.told }).toEqual({
      problems: [],
      children: 1,
      told: 1,
    });
  });
});
