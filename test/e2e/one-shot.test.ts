import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Started } from "../support/cli-process.ts";
import { startCli } from "../support/cli-process.ts";
import { soon } from "../support/soon.ts";

const config = `agents:
  main: { model: rehearsal/basic }
  other: { model: rehearsal/basic }
tools:
  sessions: { visibility: all }
  agentToAgent: { enabled: true }
`;
const started: Started[] = [];
let home = "";
let dir = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "skein-one-shot-"));
  dir = join(home, "skein");
  writeFileSync(join(home, "skein.yaml"), config);
});
afterEach(async () => {
  for (const each of started.splice(0)) each.child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

async function cli(...args: readonly string[]): Promise<Started> {
  const begun = startCli(dir, "--config", join(home, "skein.yaml"), ...args);
  started.push(begun);
  expect(await begun.end(), begun.err).toBe(0);
  return begun;
}

/** Returns the folder's runs with their kinds and states. No process is started that would continue them. */
function runs(): string[] {
  const db = new DatabaseSync(join(dir, "work.db"), { readOnly: true });
  const rows = db.prepare("SELECT kind, state, key FROM runs ORDER BY seq").all();
  db.close();
  return rows.map(
    ({ kind, state, key }) => `${kind} ${state} ${String(key).replace(/subagent:.*/, "subagent")}`,
  );
}

const main = "agent:main:main";
const other = "agent:other:main";

describe("a one-shot process", () => {
  test("[CRS6] tool sessions_send: the exchange that follows has ended when it exits", async () => {
    await cli("--agent", "other", "send", "main", "repeat hello");
    const args = JSON.stringify({ sessionKey: other, message: "repeat good morning" });
    await cli("tool", "sessions_send", args);
    const made = runs().slice(1);
    expect(made[0]).toBe(`send ok ${other}`);
    expect(made).toContain(`ping_pong ok ${main}`);
    expect(made.every((each) => / (ok|merged) /.test(each))).toBe(true);
  });

  test("[CRS6] spawn in the background: when it exits, the child is announced, and deleted if requested", async () => {
    await cli("spawn", "--background", "--cleanup", "delete", "repeat good morning");
    expect(runs()).toEqual(["spawn ok agent:main:subagent", `announce ok ${main}`]);
    expect(globSync(join(dir, "trash/*/*.log.jsonl"))).toHaveLength(1);
  });

  test("[CRS6] spawn in the foreground: its result is printed, and not announced", async () => {
    const spawned = await cli("spawn", "repeat good morning");
    expect(spawned.out).toContain("good morning");
    expect(runs()).toEqual(["spawn ok agent:main:subagent"]);
  });

  test("[CRS6] send: the helpers that a turn started have ended when it exits", async () => {
    await cli("send", "main", "spawn two helpers to repeat good morning and summarize");
    const made = runs();
    expect(made.filter((each) => each === "spawn ok agent:main:subagent")).toHaveLength(2);
    expect(made.every((each) => / (ok|merged) /.test(each))).toBe(true);
  });

  test.each([
    ["spawn", ["spawn", "--no-wait", "repeat later"], "spawn queued agent:main:subagent"],
    [
      "tool sessions_spawn",
      ["tool", "sessions_spawn", '{"task":"repeat later"}', "--no-wait"],
      "spawn queued agent:main:subagent",
    ],
  ])("[CRS6] %s --no-wait leaves the work to a process that executes runs", async (_, args, left) => {
    await cli(...args);
    expect(runs()).toEqual([left]);
    await cli("send", "agent:main:session:next", "repeat now");
    expect(runs()[0]).toBe(left);
    const chat = startCli(dir, "--config", join(home, "skein.yaml"), "chat");
    started.push(chat);
    await soon(() => runs()[0]).toBe("spawn ok agent:main:subagent");
  });
});
