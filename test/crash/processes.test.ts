import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { buildContext } from "../../src/index.ts";
import { stateOf } from "../support/proc.ts";
import { supportProgram } from "../support/programs.ts";
import { repetitions } from "../support/repetitions.ts";
import { runChance } from "../support/run-seed.ts";
import { allEntries, append, create, ids, refused } from "../support/store-calls.ts";

const child = supportProgram("crash-child");
const scope: Scope = { userId: "alice", agentId: "main" };
const rounds = repetitions.writerKills;
const folders: string[] = [];
const chance = runChance();

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "skein-crash-"));
  folders.push(made);
  return made;
}

interface Running {
  readonly process: ChildProcess;
  readonly lines: string[];
  /** Resolves when the process has exited and all of its output is in `lines`. */
  readonly ended: Promise<void>;
  until(condition: (lines: readonly string[]) => boolean): Promise<void>;
}

function start(...args: string[]): Running {
  const running = spawn(process.execPath, [child, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  let rest = "";
  let notify: () => void = () => undefined;
  running.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
    notify();
  });
  const ended = once(running, "close").then(() => notify());
  const until = async (condition: (said: readonly string[]) => boolean) => {
    while (!condition(lines) && running.exitCode === null && running.signalCode === null) {
      await new Promise<void>((resolve) => {
        notify = resolve;
      });
    }
  };
  return { process: running, lines, ended, until };
}

let root = "";
beforeAll(() => {
  root = folder();
});
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true, force: true });
});

describe("processes that die", () => {
  test(
    `[FS9] kill -9 at ${rounds} random moments: everything acknowledged exists, once, and the index agrees`,
    async () => {
      for (let round = 0; round < rounds; round++) {
        const name = `r${round}`;
        const running = start("live", root, name);
        await running.until((lines) => lines.length > 0);
        await sleep(chance.below(40));
        running.process.kill("SIGKILL");
        await running.ended;
        await verify(running.lines);
      }
    },
    Math.max(600_000, rounds * 10_000),
  );

  async function verify(lines: readonly string[]): Promise<void> {
    const store = await createStore({ dir: root });
    const told = lines.map((line) => line.split(" "));
    for (const [what, sessionId = "", id = ""] of told) {
      if (what === "session") expect(await store.sessions.get(scope, sessionId)).not.toBeNull();
      if (what !== "state") continue;
      expect((await store.state.get(scope, sessionId, "count"))?.value).toBeGreaterThanOrEqual(Number(id));
    }
    for (const sessionId of new Set(told.map(([, each = ""]) => each))) {
      const entries = await allEntries(store, scope, sessionId);
      const found = entries.map((entry) => entry.id);
      expect(new Set(found).size).toBe(found.length);
      for (const [what, of, id = ""] of told)
        if (what === "entry" && of === sessionId) expect(found).toContain(id);
      const context = await store.sessions.context(scope, sessionId);
      expect(context?.messages).toEqual(buildContext(entries).messages);
      const record = await store.sessions.get(scope, sessionId);
      const page = await store.sessions.list(scope, { text: sessionId, limit: 1000 });
      expect(page.sessions.find((each) => each.sessionId === sessionId)).toMatchObject({ ...record });
    }
    await store.close();
  }
});

describe("processes that share a session", () => {
  test("[FS10] eight writers: nothing is lost, and there are no unintended forks", async () => {
    const shared = folder();
    const store = await createStore({ dir: shared, lockTimeoutMs: 120_000 });
    await create(store, scope, "shared");
    const writers = Array.from({ length: 8 }, (_, index) => start("write", shared, `w${index}`, "15"));
    await append(store, scope, "shared", "ours");
    await Promise.all(writers.map((writer) => writer.ended));
    const entries = await allEntries(store, scope, "shared");
    const told = writers.flatMap((writer) => writer.lines.map((line) => line.split(" ")[2]));
    expect(told).toHaveLength(120);
    expect(entries.map((entry) => entry.id).toSorted()).toEqual([...told, "ours"].toSorted());
    for (const [index, entry] of entries.entries()) {
      expect(entry.parentId).toBe(index === 0 ? null : entries[index - 1]?.id);
    }
    await store.close();
  });

  test("[FS11] a killed writer that held the lock is succeeded at once", async () => {
    const shared = folder();
    const store = await createStore({ dir: shared, lockTimeoutMs: 1000 });
    await create(store, scope, "shared");
    const holder = start("hold", shared);
    while (stateOf(holder.process.pid ?? 0) !== "T") await sleep(5);
    await refused("locked", () => append(store, scope, "shared", "too early"));
    holder.process.kill("SIGKILL");
    await holder.ended;
    await append(store, scope, "shared", "after");
    expect(await ids(store, scope, "shared")).toEqual(["after"]);
    await store.close();
  });

  test("[FS12] a writer paused in the middle of a write keeps its lock, and its write is complete when it continues", async () => {
    const shared = folder();
    const store = await createStore({ dir: shared, lockTimeoutMs: 300 });
    await create(store, scope, "shared");
    await append(store, scope, "shared", "before");
    const holder = start("hold", shared);
    while (stateOf(holder.process.pid ?? 0) !== "T") await sleep(5);
    await expect(append(store, scope, "shared", "too early")).rejects.toThrow(
      `process ${holder.process.pid}`,
    );
    expect(await ids(store, scope, "shared")).toEqual(["before"]);
    holder.process.kill("SIGCONT");
    await holder.ended;
    expect(holder.lines).toEqual(["entry shared stopped in the middle"]);
    await append(store, scope, "shared", "after");
    expect(await ids(store, scope, "shared")).toEqual(["before", "stopped in the middle", "after"]);
    await store.close();
  });

  test("[FS13] a writer paused between appends does not write after its fence was raised", async () => {
    const shared = folder();
    const fence = join(shared, "fence");
    writeFileSync(fence, "");
    const store = await createStore({ dir: shared });
    await create(store, scope, "shared");
    const running = start("fenced", shared, fence);
    await running.until((lines) => lines.length > 3);
    running.process.kill("SIGSTOP");
    while (stateOf(running.process.pid ?? 0) !== "T") await sleep(5);
    rmSync(fence);
    running.process.kill("SIGCONT");
    await running.ended;
    expect(running.lines.at(-1)).toBe("fenced");
    const told = running.lines.filter((line) => line.startsWith("entry")).map((line) => line.split(" ")[2]);
    const found = await ids(store, scope, "shared");
    // The entry that was being synced when the process stopped might exist. If so, it was acknowledged.
    expect(found).toEqual(told);
    await store.close();
  });
});
