import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import { withRuns } from "../../test/support/cli-runs.ts";
import { SkeinError } from "../core/errors.ts";
import { Skein } from "../sessions/skein.ts";
import type { ToolResult } from "../tools/session-tool.ts";
import type { Terminal } from "./output/terminal.ts";

type InvokeTool = Skein["invokeTool"];

let home = "";
let count = 0;
let made: Required<Parameters<InvokeTool>>[] = [];
let does: (skein: Skein, ...call: Required<Parameters<InvokeTool>>) => ReturnType<InvokeTool>;
const original = Object.getOwnPropertyDescriptor(Skein.prototype, "invokeTool");

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "skein-tools-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The tools themselves are tested elsewhere. Here, the test defines the result of a call. */
beforeEach(() => {
  made = [];
  does = async () => ({ result: { status: "ok" }, isError: false, rootId: null });
  Object.defineProperty(Skein.prototype, "invokeTool", {
    configurable: true,
    value: function (this: Skein, ...call: Required<Parameters<InvokeTool>>) {
      made.push(call);
      return does(this, ...call);
    },
  });
});
afterEach(() => {
  Reflect.deleteProperty(Skein.prototype, "invokeTool");
  if (original !== undefined) Object.defineProperty(Skein.prototype, "invokeTool", original);
});

const answers = (result: ToolResult) => {
  does = async () => ({ result, isError: false, rootId: null });
};

/** Starts a run in the session itself and returns before the run has ended. */
const setsOff = (text: string) => {
  does = async (skein, _, __, context) => {
    const { runId, root } = await skein.session(context).accept(text);
    return { result: { status: "sent", runId }, isError: false, rootId: root.rootId };
  };
};

function folder() {
  count += 1;
  const dir = join(home, String(count));
  const call = (args: readonly string[], more: Partial<Terminal> = {}) =>
    run(args, { cwd: home, env: { SKEIN_DIR: dir }, ...more });
  return { dir, call };
}

async function begun() {
  const made = folder();
  await made.call(["sessions", "new", "main"]);
  return made;
}

describe("tool", () => {
  test("calls a tool for main, or for the named session", async () => {
    const { call } = await begun();
    await call(["sessions", "new", "porto"]);
    await call(["tool", "sessions_list", '{"limit": 5}']);
    await call(["tool", "sessions_history", "{}", "--session", "porto", "--key", "k-1"]);
    await call(["tool", "sessions_send", "{}"]);
    expect(made.map(([name, args, { sessionKey }]) => [name, args, sessionKey])).toEqual([
      ["sessions_list", { limit: 5 }, undefined],
      ["sessions_history", {}, "agent:main:session:porto"],
      ["sessions_send", {}, "agent:main:main"],
    ]);
    expect(made[0]?.[2]).toMatchObject({ agentId: "main" });
    expect(made[1]?.[2]).toMatchObject({ idempotencyKey: "k-1" });
  });

  test("arguments may be omitted or come from the input", async () => {
    const { call } = await begun();
    await call(["tool", "agents_list"]);
    const input = () => ({ stream: Readable.from(['{"limit"', ": 2}\n"]), typed: false });
    await call(["tool", "sessions_list", "-"], { input });
    expect(made.map(([, args]) => args)).toEqual([{}, { limit: 2 }]);
  });

  test("a read-only tool creates no folder; one that starts work does", async () => {
    const { dir, call } = folder();
    expect(await call(["tool", "sessions_list"])).toMatchObject({ exit: 1, out: "" });
    expect(existsSync(dir)).toBe(false);
    expect(await call(["tool", "sessions_spawn", '{"task": "go"}'])).toMatchObject({ exit: 0 });
    expect(existsSync(dir)).toBe(true);
  });

  test("with --json only the result is printed", async () => {
    const { call } = await begun();
    const result = { count: 1, sessions: [{ key: "main", label: "\u001b[2J" }] };
    answers(result);
    const { out, err, exit } = await call(["tool", "sessions_list", "--json"]);
    expect(JSON.parse(out)).toEqual(result);
    expect(out).not.toContain("\u001b");
    expect({ err, exit }).toEqual({ err: "", exit: 0 });
  });

  test("waits until the started work has ended; --no-wait leaves it to the next process", async () => {
    setsOff("repeat done");
    const { dir, call } = await begun();
    const stateOf = async (out: string) =>
      withRuns(dir, async (runs) => (await runs.get(JSON.parse(out).runId))?.state);
    const left = await call(["tool", "sessions_send", "{}", "--json", "--no-wait"]);
    expect(await stateOf(left.out)).toBe("queued");
    const stayed = await call([
      "tool",
      "sessions_send",
      "{}",
      "--session",
      "agent:main:session:porto",
      "--json",
    ]);
    expect(await stateOf(stayed.out)).toBe("ok");
  });

  test("a read-only tool executes no queued runs", async () => {
    const { dir, call } = await begun();
    const { out } = await call(["send", "main", "repeat it", "--no-wait", "--json"]);
    await call(["tool", "sessions_list"]);
    expect(await withRuns(dir, async (runs) => (await runs.get(JSON.parse(out).runId))?.state)).toBe(
      "queued",
    );
  });

  test("Ctrl-C ends the call, and aborts the started work", async () => {
    const { dir, call } = await begun();
    const listeners = new Set<() => void>();
    const onInterrupt = (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    };
    const interrupt = () => {
      for (const listener of listeners) listener();
    };
    does = async (_, __, ___, { signal }) => {
      interrupt();
      return Promise.reject(signal?.reason);
    };
    expect(await call(["tool", "sessions_send"], { onInterrupt })).toMatchObject({ exit: 1, out: "" });
    setsOff("be slow for 60 seconds");
    const out = (text: string) => {
      if (text.includes("status")) interrupt();
    };
    expect(await call(["tool", "sessions_send"], { onInterrupt, out })).toMatchObject({ exit: 0 });
    expect(await withRuns(dir, (runs) => runs.list({}))).toMatchObject([{ state: "aborted" }]);
    expect(listeners.size).toBe(0);
  });

  test.each([
    [{ status: "forbidden", code: "tree_visibility_restricted", error: "Not this one." }, 1],
    [{ status: "error", code: "not_found", error: "Session not found: x" }, 1],
    [{ status: "error", code: "invalid_arguments", error: "limit must be a number" }, 2],
  ])("the refusal %j exits with %d", async (refusal, exit) => {
    const { call } = await begun();
    answers(refusal);
    expect(await call(["tool", "sessions_list"])).toEqual({
      out: "",
      err: `error: ${refusal.error} [${refusal.code}]\n`,
      exit,
    });
    const json = await call(["tool", "sessions_list", "--json"]);
    expect({ ...json, out: JSON.parse(json.out) }).toEqual({ out: refusal, err: "", exit });
  });

  test("prints the command that explains why a session cannot be reached", async () => {
    const { call } = await begun();
    answers({ status: "forbidden", code: "tree_visibility_restricted", error: "Not this one." });
    const typed = ["tool", "sessions_send", '{"sessionKey": "session:support", "message": "hi"}'];
    expect((await call(typed)).err).toMatch(
      /^error: Not this one\. .*\n.*see .*access main session:support --action send/,
    );
    expect((await call([...typed, "--json"])).err).toBe("");
  });

  test("reports an error of the call as usual", async () => {
    const { call } = await begun();
    does = () => Promise.reject(new SkeinError("not_found", { what: "Tool", name: "x", advice: "Look" }));
    expect(await call(["tool", "x"])).toMatchObject({ exit: 1, err: 'error: Tool not found: "x". Look.\n' });
  });

  test.each([
    ["{a: 1}", "line 1, column 2", 'unexpected "a"'],
    ['{"a": }', "line 1, column 7", 'unexpected "}"'],
    ['{"a": nope}', "line 1, column 8", 'unexpected "o"'],
    ['{"a": 1', "line 1, column 8", "unexpected end of input"],
    ['{\n  "a": 1,\n}', "line 3, column 1", 'unexpected "}"'],
    ['{"a": 1} x', "line 1, column 10", 'unexpected "x"'],
    ['{"a": "b', "line 1, column 9", "unexpected end of input"],
    ["", "line 1, column 1", "unexpected end of input"],
  ])("%j is not JSON: the error has the position, and nothing is opened", async (json, place, found) => {
    const { dir, call } = folder();
    const { out, err, exit } = await call(["tool", "sessions_spawn", json]);
    expect({ out, exit }).toEqual({ out: "", exit: 2 });
    expect(err).toContain(`The arguments are not valid JSON: ${place}: ${found}`);
    expect(existsSync(dir)).toBe(false);
    expect(made).toEqual([]);
  });

  test("prints a result as lines and tables, escaped", async () => {
    const { call } = await begun();
    answers({
      count: 2,
      visibility: { mode: "tree", sandboxed: false },
      names: ["a", "b"],
      sessions: [
        {
          channel: "cli",
          key: "main",
          label: "home\u001b[2J",
          updatedAt: 0,
          totalTokens: 1200,
          deep: { a: 1 },
        },
        { key: "subagent:x", status: "idle" },
      ],
      messages: [{ id: "1", role: "user", content: [{ type: "text", text: "hello" }] }],
      reply: "one\ntwo\u0007",
    });
    const { out } = await call(["tool", "sessions_list"], { now: () => 300_000 });
    expect(out).toBe(
      [
        "  count                 2",
        "  visibility.mode       tree",
        "  visibility.sandboxed  false",
        "  names                 a, b",
        "",
        "sessions: 2 rows",
        "KEY         STATUS  LABEL          TOKENS  AGE",
        "main                home\\u001b[2J    1.2k   5m",
        "subagent:x  idle",
        "",
        "messages: 1",
        "",
        "user  1",
        "  hello",
        "",
        "one",
        "two\\u0007",
        "",
      ].join("\n"),
    );
  });
});

test.each([
  [
    { sessions: [{ key: "main", messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }] }] },
    ["sessions: 1 row", "KEY   LAST MESSAGE", "main  user: hi"],
  ],
  [
    { sessions: [{ key: "main", messagesRefused: "tree_visibility_restricted" }] },
    ["sessions: 1 row", "KEY   LAST MESSAGE", "main  (tree_visibility_restricted)"],
  ],
  [
    { hits: [{ key: "main", sessionId: "s", entryId: "e", role: "user", time: 0, snippet: "moss" }] },
    ["hits: 1 row", "KEY   ROLE  FOUND  AGE", "main  user  moss    5m"],
  ],
  [
    { recent: [{ sessionKey: "subagent:x", runId: "r", status: "ok", task: "go", runtimeMs: 1500 }] },
    ["recent: 1 row", "KEY         STATUS  TASK  TOOK", "subagent:x  ok      go    1.5s"],
  ],
  [{ others: [{ id: "a", madeAt: 0 }] }, ["others: 1 row", "ID  MADE AT", "a   1970-01-01 00:00"]],
])("the lists of %j have the columns that people look for", async (result, lines) => {
  const { call } = await begun();
  answers(result);
  const { out } = await call(["tool", "sessions_list"], { now: () => 300_000 });
  expect(out.trimStart()).toBe(`${lines.join("\n")}\n`);
});

test("prints the text for the model if there is no table", async () => {
  const { call } = await begun();
  answers({ status: "ok", text: "Killed x." });
  expect((await call(["tool", "subagents"])).out).toBe("  status  ok\n\nKilled x.\n");
  answers({ status: "ok", active: [{ label: "x" }], text: "- x" });
  expect((await call(["tool", "subagents"])).out).toBe("  status  ok\n\nactive: 1 row\nLABEL\nx\n");
});

describe("spawn", () => {
  const child = {
    status: "ok",
    runId: "r-1",
    childSessionKey: "subagent:c-1",
    label: "gardens",
    mode: "run",
  };

  test("starts the task in a new session of main, and creates a folder", async () => {
    const { call } = folder();
    answers({ ...child, note: "n", result: "Moss\nand stones.", outcome: "ok", usage: { totalTokens: 7 } });
    const words = ["spawn", "describe", "the", "gardens", "--label", "gardens", "--timeout", "60"];
    expect(await call(words)).toEqual({
      out: [
        "spawned subagent:c-1",
        "  label   gardens",
        "  run     r-1",
        "  mode    run",
        "  ended   ok",
        "  tokens  7",
        "",
        "Moss",
        "and stones.",
        "",
      ].join("\n"),
      err: "",
      exit: 0,
    });
    expect(made).toMatchObject([
      [
        "sessions_spawn",
        { task: "describe the gardens", label: "gardens", runTimeoutSeconds: 60, background: false },
        { sessionKey: "agent:main:main" },
      ],
    ]);
  });

  test("every option is an argument of the tool", async () => {
    const { call } = await begun();
    const options =
      "--under research --model rehearsal/basic --thinking low --mode session --context fork --cleanup delete";
    await call([
      "spawn",
      "go",
      ...options.split(" "),
      "--cwd",
      "garden",
      "--session",
      "agent:main:session:porto",
    ]);
    expect(made[0]?.[1]).toEqual({
      task: "go",
      agentId: "research",
      model: "rehearsal/basic",
      thinking: "low",
      mode: "session",
      context: "fork",
      cleanup: "delete",
      cwd: join(home, "garden"),
      background: false,
    });
    expect(made[0]?.[2]).toMatchObject({ sessionKey: "agent:main:session:porto" });
  });

  test("one option selects an ACP agent, and its own session ID is printed", async () => {
    const { call } = await begun();
    const key = "agent:codex:acp:c-1";
    answers({ ...child, childSessionKey: key, agentSessionId: "their-1", note: "It is pushed." });
    const options = "--runtime acp --under codex --resume their-0 --stream --background";
    const { out, exit } = await call(["spawn", "go", ...options.split(" ")]);
    expect(made[0]?.[1]).toEqual({
      task: "go",
      runtime: "acp",
      agentId: "codex",
      resumeSessionId: "their-0",
      streamTo: "parent",
      background: true,
    });
    expect(out).toContain(`spawned ${key}\n`);
    expect(out).toContain("agent's session  their-1\n");
    expect(exit).toBe(0);
  });

  test.each([["--background"], ["--no-wait"]])("with %s the child is reported at once", async (option) => {
    const { call } = await begun();
    answers({ ...child, note: "It reports when it is done." });
    const { out, exit } = await call(["spawn", "go", option]);
    expect(made[0]?.[1]).toEqual({ task: "go", background: true });
    expect(out).toContain("note   It reports when it is done.");
    expect(exit).toBe(0);
  });

  test("a failed child and a refusal are failures", async () => {
    const { call } = await begun();
    answers({ ...child, result: "", outcome: "timeout" });
    expect(await call(["spawn", "go"])).toMatchObject({
      exit: 1,
      out: expect.stringContaining("ended  timeout"),
    });
    const json = await call(["spawn", "go", "--json"]);
    expect(json).toMatchObject({ exit: 1, err: "" });
    expect(JSON.parse(json.out)).toMatchObject({ outcome: "timeout" });
    answers({ status: "forbidden", code: "forbidden", error: "Too deep." });
    expect(await call(["spawn", "go"])).toMatchObject({
      exit: 1,
      out: "",
      err: "error: Too deep. [forbidden]\n",
    });
  });
});
