import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { HookStop } from "../core/errors.ts";
import type { Message, ToolResultMessage } from "../core/messages.ts";
import { SessionTree } from "../core/tree.ts";
import type { AskedHook, HookName, Hooks, NotifiedHook } from "./hook-events.ts";
import { combinations, HookRegistry, hookNames, notifiedHooks } from "./hooks.ts";
import { prependedEntry } from "./run-input.ts";

const ctx = Object.freeze({ userId: "ann", agentId: "main", sessionId: "s" });
const message: Message = { role: "user", content: "given" };
const result: ToolResultMessage = { role: "toolResult", toolCallId: "t", toolName: "read", content: [] };
const child = { agentId: "main", runtime: "subagent", task: "Look", label: null } as const;
const call = { toolCallId: "t", toolName: "read", arguments: { path: "a" } };
const session = { sessionId: "s", key: "agent:main:main" };
const model = { provider: "p", api: "a", model: "m" };
const compacted = { messages: [], firstKeptEntryId: null, tokensBefore: 9 };

const asked: { readonly [N in AskedHook]: Hooks[N]["event"] } = {
  before_agent_start: { prompt: "Hi", messages: [], ctx },
  before_prompt_build: { system: "given", prompt: "Hi", messages: [], ctx },
  before_tool_call: { ...call, ctx },
  tool_result_persist: { message: result, ctx },
  before_message_write: { message, ctx },
  before_compaction: { ...compacted, isCut: false, previousSummary: null, summary: null, ctx },
  before_reset: { ...session, why: "A new day.", ctx },
  subagent_spawning: { ...child, ctx },
};

const started = { ...child, childSessionKey: "agent:main:subagent:s:1", runId: "r" };
const told: { readonly [N in NotifiedHook]: Hooks[N]["event"] } = {
  llm_input: { ...model, system: null, messages: [], tools: [], ctx },
  llm_output: { ...model, message: { role: "assistant", content: [] }, ctx },
  agent_end: { outcome: "ok", error: null, messages: [], durationMs: 1, ctx },
  after_tool_call: { ...call, result, durationMs: 1, ctx },
  after_compaction: {
    entryId: "e",
    summary: "S",
    firstKeptEntryId: null,
    tokensBefore: 9,
    tokensAfter: 1,
    ctx,
  },
  session_start: { ...session, isNew: true, ctx },
  session_end: { ...session, reason: "reset", ctx },
  subagent_spawned: { ...started, ctx },
  subagent_ended: { ...started, outcome: "error", result: null, ctx },
};

/** The outcome if no hook answers. */
const unasked: { readonly [N in AskedHook]: Hooks[N]["outcome"] } = {
  before_agent_start: { prependContext: null },
  before_prompt_build: { system: "given", prependContext: null },
  before_tool_call: { arguments: call.arguments, block: null },
  tool_result_persist: { message: result, refuse: null },
  before_message_write: { message, refuse: null },
  before_compaction: { cancel: null, summary: null },
  before_reset: { cancel: null },
  subagent_spawning: { block: null },
};

function registry() {
  const reported: [HookName, unknown][] = [];
  return { hooks: new HookRegistry((name, error) => void reported.push([name, error])), reported };
}

/** Calls a hook of either kind by name. */
function run(hooks: HookRegistry, name: HookName): Promise<unknown> {
  return name in asked
    ? hooks.ask(name as "before_reset", asked[name as "before_reset"])
    : hooks.notify(name as "agent_end", told[name as "agent_end"]);
}

/** A hook that can return any answer. */
const answering = (answer: unknown) => (() => answer) as never;

describe.each(hookNames)("%s", (name) => {
  test("[LIB15] hooks are called in order of registration, each awaited, and not after removal", async () => {
    const { hooks } = registry();
    const seen: string[] = [];
    hooks.on(name, async () => {
      await Promise.resolve();
      seen.push("slow");
      return undefined;
    });
    const once = () => void seen.push("twice");
    const off = hooks.on(name, once as never);
    hooks.on(name, once as never);
    hooks.on(name, () => void seen.push("last") as undefined);
    await run(hooks, name);
    expect(seen).toEqual(["slow", "twice", "twice", "last"]);
    off();
    off();
    await run(hooks, name);
    expect(seen.slice(4)).toEqual(["slow", "twice", "last"]);
  });

  test("[LIB15] a hook added or removed during a call counts from the next call", async () => {
    const { hooks } = registry();
    const seen: string[] = [];
    const off = hooks.on(name, () => {
      off();
      hooks.on(name, () => void seen.push("new") as undefined);
      return undefined;
    });
    hooks.on(name, () => void seen.push("old") as undefined);
    await run(hooks, name);
    expect(seen).toEqual(["old"]);
    await run(hooks, name);
    expect(seen).toEqual(["old", "old", "new"]);
  });

  test("[LIB16] a hook that throws or rejects is reported and skipped", async () => {
    const { hooks, reported } = registry();
    const [first, second] = [new Error("thrown"), new Error("rejected")];
    let isReached = false;
    hooks.on(name, () => {
      throw first;
    });
    hooks.on(name, () => Promise.reject(second));
    hooks.on(name, () => {
      isReached = true;
      return undefined;
    });
    const outcome = await run(hooks, name);
    expect(reported).toEqual([
      [name, first],
      [name, second],
    ]);
    expect(isReached).toBe(true);
    expect(outcome).toEqual(unasked[name as AskedHook]);
  });

  test("[LIB16] a HookStop stops the caller, and no later hook is called", async () => {
    const { hooks, reported } = registry();
    let isReached = false;
    hooks.on(name, async () => {
      throw new HookStop("enough");
    });
    hooks.on(name, () => {
      isReached = true;
      return undefined;
    });
    await expect(run(hooks, name)).rejects.toThrow(new HookStop("enough"));
    expect([isReached, reported]).toEqual([false, []]);
  });

  test("each hook gets the runtime context, and its own copy of the event", async () => {
    const { hooks, reported } = registry();
    hooks.on(name, (event) => {
      (event as { ctx: unknown }).ctx = null;
      return undefined;
    });
    let found: unknown = null;
    hooks.on(name, (event) => {
      found = event;
      return undefined;
    });
    await run(hooks, name);
    expect(reported).toEqual([[name, expect.any(TypeError)]]);
    expect(found).toEqual({ ...asked, ...told }[name]);
  });
});

test("the return value of a notification hook is ignored", async () => {
  const { hooks, reported } = registry();
  for (const name of Object.keys(told) as NotifiedHook[]) {
    hooks.on(name, answering({ block: "no" }));
    expect(await run(hooks, name)).toBeUndefined();
  }
  expect(reported).toEqual([]);
});

describe("hook answers", () => {
  const combine = async (name: AskedHook, ...answers: unknown[]) => {
    const { hooks, reported } = registry();
    const given: unknown[] = [];
    for (const answer of answers) {
      hooks.on(name, ((event: unknown) => {
        given.push(event);
        return answer;
      }) as never);
    }
    return { outcome: await run(hooks, name), given, reported };
  };

  test.each(Object.keys(asked) as AskedHook[])("%s: without an answer nothing changes", async (name) => {
    expect(await combine(name)).toMatchObject({ outcome: unasked[name] });
    expect(await combine(name, undefined, null, {}, Promise.resolve())).toMatchObject({
      outcome: unasked[name],
      reported: [],
    });
  });

  test.each([
    ["before_tool_call", "block"],
    ["subagent_spawning", "block"],
    ["before_compaction", "cancel"],
    ["before_reset", "cancel"],
    ["tool_result_persist", "refuse"],
    ["before_message_write", "refuse"],
  ] as const)("%s: the first %s wins, and later hooks are not called", async (name, word) => {
    const { outcome, given } = await combine(name, undefined, { [word]: "first" }, { [word]: "second" });
    expect(outcome).toMatchObject({ [word]: "first" });
    expect(given).toHaveLength(2);
    expect((await combine(name, { [word]: "" }, { [word]: "second" })).outcome).toMatchObject({ [word]: "" });
  });

  test.each(["before_agent_start", "before_prompt_build"] as const)(
    "%s: contexts are joined by a blank line, in order, without blank ones",
    async (name) => {
      const contexts = ["one", " ", "two\n", "", "three"].map((prependContext) => ({ prependContext }));
      expect((await combine(name, ...contexts)).outcome).toMatchObject({
        prependContext: "one\n\ntwo\n\n\nthree",
      });
    },
  );

  test.each([
    ["before_prompt_build", "system", { system: "first" }, { system: "second" }],
    ["before_compaction", "summary", { summary: "first" }, { summary: "second" }],
    ["before_tool_call", "arguments", { replace: { n: 1 } }, { replace: { n: 2 } }],
    [
      "before_message_write",
      "message",
      { replace: { role: "user", content: "1" } },
      { replace: { role: "user", content: "2" } },
    ],
    [
      "tool_result_persist",
      "message",
      { replace: { ...result, isError: true } },
      { replace: { ...result, isError: false } },
    ],
  ] as const)(
    "%s: each hook gets the %s of the previous one, and the last one counts",
    async (name, field, one, two) => {
      const [first, second] = [Object.values(one)[0], Object.values(two)[0]];
      const { outcome, given } = await combine(name, one, undefined, two, undefined);
      expect(outcome).toMatchObject({ [field]: second });
      expect(given.map((event) => (event as Record<string, unknown>)[field])).toEqual([
        (asked[name] as unknown as Record<string, unknown>)[field],
        first,
        first,
        second,
      ]);
    },
  );

  test("a block counts, even with a replacement", async () => {
    const both = { block: "no", replace: { n: 1 } };
    expect((await combine("before_tool_call", both, { block: "later" })).outcome).toMatchObject({
      block: "no",
    });
  });

  test.each([
    ["before_tool_call", true, "The hook returned boolean; it can return block or replace"],
    ["before_tool_call", ["block"], "The hook returned object; it can return block or replace"],
    [
      "before_tool_call",
      { blocked: "no" },
      'The hook returned the field "blocked"; it can return block or replace',
    ],
    ["before_tool_call", { block: true }, 'The hook\'s "block" is not a string'],
    ["before_tool_call", { replace: "x" }, 'The hook\'s "replace" is not an object'],
    [
      "before_agent_start",
      { toString: 1 },
      'The hook returned the field "toString"; it can return prependContext',
    ],
    ["before_message_write", { replace: null }, 'The hook\'s "replace" is not an object'],
  ] as const)("[LIB16] %s: the answer %j is reported and ignored", async (name, answer, problem) => {
    const { outcome, given, reported } = await combine(name, answer, undefined);
    expect(outcome).toEqual(unasked[name]);
    expect(reported).toEqual([[name, new TypeError(problem)]]);
    expect(given).toHaveLength(2);
  });
});

describe("prepended context", () => {
  test("is not stored if it is empty", () => {
    for (const nothing of [null, "", " \n"]) expect(prependedEntry(nothing)).toBeNull();
  });

  test("is stored as a separate message, which the model sees and people do not", () => {
    const tree = SessionTree.create({ cwd: "/w" });
    const draft = prependedEntry("The user is Ann.");
    if (draft === null) throw new Error("no entry");
    const entry = tree.append(draft);
    expect(tree.leafId).toBe(entry.id);
    tree.append({ type: "message", message: { role: "user", content: "Hi" } });
    expect(tree.context().messages).toMatchObject([
      { role: "custom", content: "The user is Ann.", display: false },
      { role: "user", content: "Hi" },
    ]);
  });
});

describe("hook names", () => {
  test("docs/hooks.md lists the hooks and their answers", () => {
    const page = readFileSync(fileURLToPath(new URL("../../docs/hooks.md", import.meta.url)), "utf8");
    const rows = [...page.matchAll(/^\| `(\w+)` \| [^|]+ \|(?: ([^|]+) \|)?/gm)].map((match) => [
      match[1],
      [...(match[2] ?? "").matchAll(/`(\w+)`/g)].map((field) => field[1]),
    ]);
    const expected = [
      ...Object.entries(combinations).map(([name, { fields }]) => [name, Object.keys(fields)]),
      ...Object.keys(notifiedHooks).map((name) => [name, []]),
    ];
    expect(rows.toSorted()).toEqual(expected.map(([name, fields]) => [name, fields]).toSorted());
  });

  test("an unknown one is refused, with a list of the known ones", () => {
    const { hooks } = registry();
    for (const name of ["before_tool", "toString", ""]) {
      expect(() => hooks.on(name as "agent_end", () => undefined)).toThrow(
        /There is no hook named ".*Use one of before_/,
      );
    }
  });
});
