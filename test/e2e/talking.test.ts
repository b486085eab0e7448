import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../support/cli.ts";
import { Started, startCli } from "../support/cli-process.ts";
import type { RunListPayload } from "../support/payloads.ts";
import { skeinInCheckout, supportProgram } from "../support/programs.ts";

const support = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url));
const started: Started[] = [];
let home = "";
let dir = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "skein-talking-"));
  dir = join(home, "skein");
});
afterEach(async () => {
  for (const each of started.splice(0)) each.child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

function cli(...args: readonly string[]): Started {
  const begun = startCli(dir, ...args);
  started.push(begun);
  return begun;
}

async function here(...args: readonly string[]) {
  return run(args, { cwd: home, env: { SKEIN_DIR: dir } });
}

async function runs(...args: readonly string[]): Promise<RunListPayload> {
  const { out } = await here("runs", "ls", "--json", ...args);
  return JSON.parse(out) as RunListPayload;
}

/** Waits until another process is working on the run. */
async function untilRunning(): Promise<void> {
  const state = async () => (await runs().catch(() => null))?.runs[0]?.state;
  await expect.poll(state).toBe("running");
}

describe("send, in processes", () => {
  test("[CLI36] answers in an empty folder, and exits", async () => {
    const sent = cli("send", "main", "repeat good morning");
    expect(await sent.end()).toBe(0);
    expect({ out: sent.out, err: sent.err }).toEqual({ out: "good morning\n", err: "" });
  });

  test("[CLI37] a message sent with --no-wait is answered before the next message to the session", async () => {
    const left = cli("send", "main", "repeat later", "--no-wait", "--json");
    expect(await left.end()).toBe(0);
    const { runId } = JSON.parse(left.out) as { runId: string };
    expect((await runs()).runs).toMatchObject([{ runId, state: "queued" }]);
    const finished = cli("send", "main", "repeat third", "--queue", "followup");
    expect(await finished.end()).toBe(0);
    const { out } = await here("runs", "show", runId, "--json");
    expect(JSON.parse(out).run).toMatchObject({ state: "ok", reply: "later" });
  });

  test("[CLI38] Ctrl-C aborts the run permanently", async () => {
    const sent = cli("send", "main", "be slow for 300 seconds");
    await untilRunning();
    sent.child.kill("SIGINT");
    expect(await sent.end()).toBe(1);
    expect(sent.err).toMatch(/^error: .*\[aborted\].*runs show/);
    expect((await runs()).runs).toMatchObject([{ state: "aborted", error: { code: "aborted" } }]);
  });

  test("[CLI40] a run is aborted from another process", async () => {
    const sent = cli("send", "main", "be slow for 300 seconds", "--json");
    await untilRunning();
    const [{ runId = "" } = {}] = (await runs()).runs;
    expect((await here("runs", "abort", runId)).exit).toBe(0);
    expect(await sent.end()).toBe(1);
    expect(JSON.parse(sent.out)).toMatchObject({ runId, finished: true, state: "aborted" });
  });
});

describe("approvals from another process", () => {
  test.each([
    ["approve", /paid/],
    ["deny", /denied|not approved|refused|declined/i],
  ])("[CLI40] %s reaches the process that asks", async (word, expected) => {
    const asking = new Started([supportProgram("approval-child"), dir]);
    started.push(asking);
    const [, approvalId = ""] = await asking.until(/asked (\S+)/);
    const { approvals } = await runs();
    expect(approvals).toMatchObject([{ approvalId, toolName: "pay" }]);
    const shown = await here("runs", "ls");
    expect(shown.out).toMatch(/waiting .*for approval of pay/);
    expect(shown.out).toContain(`runs approve ${approvalId}`);
    const first = await here("runs", word, approvalId);
    expect(first).toMatchObject({ exit: 0, err: "" });
    expect(await asking.end()).toBe(0);
    expect(asking.out).toMatch(expected);
    const other = await here("runs", word === "deny" ? "approve" : "deny", approvalId);
    expect(other.exit).toBe(1);
    expect(other.err).toContain("first answer is final");
  });
});

describe("chat, in processes", () => {
  test("[CLI44] Ctrl-C aborts the turn and the chat continues; with nothing to abort it quits", async () => {
    const chat = cli("chat");
    chat.write("be slow for 300 seconds\n");
    await untilRunning();
    chat.child.kill("SIGINT");
    await chat.until(/· aborted/);
    chat.write("/branch\nrepeat still here\n/status\n");
    await chat.until(/still here\n(.*\n)* +runs +none/);
    chat.child.kill("SIGINT");
    expect(await chat.end()).toBe(0);
    expect((await runs()).runs.map(({ state }) => state)).toEqual(["ok", "aborted"]);
  });

  test("[CLI44] Ctrl-C twice quits", async () => {
    const chat = cli("chat");
    chat.write("be slow for 300 seconds\n");
    await untilRunning();
    chat.child.kill("SIGINT");
    await chat.until(/aborting/);
    chat.child.kill("SIGINT");
    expect(await chat.end()).toBe(0);
    expect((await runs()).runs).toMatchObject([{ state: "aborted" }]);
  });
});

describe("what a command loads", () => {
  test.each([
    ["sessions", "ls"],
    ["runs", "ls"],
    ["outbox", "ls"],
    ["send", "main", "hello", "--no-wait"],
  ])("%s %s uses no model, and loads nothing of the AI SDK", async (...args) => {
    await here("sessions", "new", "trip");
    const begun = new Started(["--import", support("loaded-packages.ts"), skeinInCheckout, ...args], {
      SKEIN_DIR: dir,
    });
    started.push(begun);
    expect(await begun.end()).toBe(0);
    const loaded = JSON.parse(/loaded (.*)/.exec(begun.err)?.[1] ?? "null") as string[];
    expect(loaded).toContain("commander");
    expect(loaded.filter((name) => name === "ai" || name.startsWith("@ai-sdk/"))).toEqual([]);
  });

  test("a gateway is ready without the modules that only its first requests need", async () => {
    const args = ["--import", support("loaded-packages.ts"), skeinInCheckout, "start", "--port", "0"];
    const begun = new Started(args, {
      SKEIN_DIR: dir,
      npm_lifecycle_event: "",
      SKEIN_LOGGING__LEVEL: "silent",
    });
    started.push(begun);
    await begun.until(/Press Ctrl-C to stop it/);
    begun.child.kill("SIGTERM");
    expect(await begun.end()).toBe(0);
    const loaded = JSON.parse(/loaded (.*)/.exec(begun.err)?.[1] ?? "null") as string[];
    expect(loaded).toContain("ws");
    const others = ["ai", "typebox", "zod", "prom-client", "@opentelemetry/api", "ajv", "string-width"];
    const early = [...others, "@modelcontextprotocol/server", "@agentclientprotocol/sdk"];
    expect(loaded.filter((name) => early.includes(name) || name.startsWith("@ai-sdk/"))).toEqual([]);
  });
});
