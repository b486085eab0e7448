import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import type { OpenedSkein } from "../support/skein.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";
import { openSqliteStore } from "../support/sqlite-store.ts";

const stores: Store[] = [];

afterEach(async () => {
  await closeAll();
  for (const store of stores.splice(0)) await store.close();
});

const main = "agent:main:main";
const conflict = { status: "error", code: "idempotency_conflict" };

/** Calls one of the main session's tools with an idempotency key. */
function callerOf({ skein }: OpenedSkein, name: string, idempotencyKey = "order-17") {
  return async (args: object) =>
    (await skein.callTool(name, args, { sessionKey: main, idempotencyKey })).result;
}

async function withTargets(options: Parameters<typeof withScript>[2] = {}): Promise<OpenedSkein> {
  const opened = await withScript(answering(), { visibility: "agent" }, options);
  for (const sessionId of ["hotel", "train"]) await opened.skein.session({ sessionId }).open();
  return opened;
}

const messagesIn = async ({ lines }: OpenedSkein, sessionId: string) =>
  (await lines(sessionId)).filter((line) => line.includes("Pay"));

describe("a repeated idempotency key of sessions_send", () => {
  const first = { sessionKey: "session:hotel", message: "Pay", timeoutSeconds: 30 };

  test.each([
    ["another session", { ...first, sessionKey: "session:train" }, "differs in sessionKey"],
    ["a session that does not exist", { ...first, sessionKey: "session:nowhere" }, "differs in sessionKey"],
    ["a label", { label: "hotel", message: "Pay", timeoutSeconds: 30 }, "differs in sessionKey"],
    ["an agent", { ...first, agentId: "main" }, "differs in agentId"],
    ["another role", { ...first, role: "assistant" }, "differs in role"],
    ["another timeout", { ...first, timeoutSeconds: 0 }, "differs in timeoutSeconds"],
  ])("[ATG8] for %s is a conflict, and nothing is sent", async (_, other, difference) => {
    const opened = await withTargets();
    const send = callerOf(opened, "sessions_send");
    const { runId } = await send(first);
    expect(await send(other)).toMatchObject({ ...conflict, error: expect.stringContaining(difference) });
    expect(await messagesIn(opened, "train")).toEqual([]);
    expect(await send(first)).toMatchObject({ runId, status: "ok", reply: "Yes. 1" });
  });

  test("[ATG8] for another message is a conflict", async () => {
    const send = callerOf(await withTargets(), "sessions_send");
    await send(first);
    expect(await send({ ...first, message: "Pay twice" })).toMatchObject(conflict);
  });

  test("[ATG8] for a user message after a note is a conflict", async () => {
    const send = callerOf(await withTargets(), "sessions_send");
    const note = { sessionKey: "session:hotel", message: "Pay", role: "assistant" };
    const { runId } = await send(note);
    expect(await send({ ...note, role: "user" })).toMatchObject(conflict);
    expect(await send(note)).toMatchObject({ runId, status: "sent" });
  });

  test("[ATG8] two concurrent calls: one target gets the message, the other call is a conflict", async () => {
    const opened = await withTargets();
    const send = callerOf(opened, "sessions_send");
    const results = await Promise.all([send(first), send({ ...first, sessionKey: "session:train" })]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["error", "ok"]);
    expect(results).toContainEqual(expect.objectContaining(conflict));
    const sent = [...(await messagesIn(opened, "hotel")), ...(await messagesIn(opened, "train"))];
    expect(sent).toEqual(["user: Pay"]);
  });

  test("[ATG9] the same request gets the same result, also with the full key of its target", async () => {
    const opened = await withTargets();
    const send = callerOf(opened, "sessions_send");
    const result = await send(first);
    expect(result).toMatchObject({ status: "ok", reply: "Yes. 1" });
    expect(await send({ ...first, role: "user" })).toEqual(result);
    expect(await send({ ...first, sessionKey: "agent:main:session:hotel" })).toEqual(result);
    await opened.skein.session({ sessionId: "hotel" }).reset();
    expect(await send(first)).toEqual(result);
    expect(opened.model.requests).toHaveLength(1);
  });
});

describe("a repeated idempotency key of sessions_spawn", () => {
  const first = { task: "Count", label: "counter" };
  const file = (content: string) => ({ attachments: [{ name: "a.txt", content }] });

  test.each([
    ["another agent", { agentId: "other" }, "differs in agentId"],
    ["tools", { tools: ["sessions_list"] }, "differs in tools"],
    ["attachments", file("Hi"), "differs in attachments"],
    ["another mode", { mode: "session" }, "differs in mode"],
    ["another working directory", { cwd: "." }, "differs in cwd"],
    ["thinking", { thinking: "high" }, "differs in thinking"],
    ["a time limit", { runTimeoutSeconds: 5 }, "differs in runTimeoutSeconds"],
    ["another cleanup", { cleanup: "delete" }, "differs in cleanup"],
    ["a wait", { background: false }, "differs in background"],
    ["a fork", { context: "fork" }, "differs in context"],
    ["a sandbox", { sandbox: "require" }, "differs in sandbox"],
    ["a thread", { thread: true }, "differs in mode, thread"],
  ])("[ATG8] for %s is a conflict", async (_, more, difference) => {
    const spawn = callerOf(await withTargets(), "sessions_spawn");
    const { runId } = await spawn(first);
    expect(await spawn({ ...first, ...more })).toMatchObject({
      ...conflict,
      error: expect.stringContaining(difference),
    });
    expect(await spawn(first)).toMatchObject({ runId, status: "ok", mode: "run" });
  });

  test("[ATG8] for other contents of an attachment is a conflict", async () => {
    const spawn = callerOf(await withTargets({ dir: newFolder() }), "sessions_spawn");
    const { runId } = await spawn({ ...first, ...file("Hi") });
    expect(await spawn({ ...first, ...file("Ho") })).toMatchObject(conflict);
    expect(await spawn({ ...first, ...file("Hi") })).toMatchObject({ runId, attachments: { count: 1 } });
  });

  test("[ATG8] for another task, label or model is a conflict", async () => {
    const spawn = callerOf(await withTargets(), "sessions_spawn");
    await spawn(first);
    for (const more of [{ task: "Add" }, { label: "adder" }, { model: "priced/script" }])
      expect(await spawn({ ...first, ...more })).toMatchObject(conflict);
  });

  test("[ATG9] the same request gets the same result, also with its defaults spelled out", async () => {
    const spawn = callerOf(await withTargets(), "sessions_spawn");
    const result = await spawn(first);
    expect(await spawn(first)).toEqual(result);
    const defaults = { runtime: "subagent", mode: "run", cleanup: "keep", background: true };
    expect(await spawn({ ...first, ...defaults })).toEqual(result);
  });
});

describe("the stored fingerprint of a request", () => {
  test("[LIB4] runs of earlier versions, which have none, are still found by their keys", async () => {
    const dir = newFolder();
    const opened = await withTargets({ dir });
    const [send, spawn] = [callerOf(opened, "sessions_send"), callerOf(opened, "sessions_spawn")];
    const [message, task] = [{ sessionKey: "session:hotel", message: "Pay" }, { task: "Count" }];
    const known = [(await send(message)).runId, (await spawn(task)).runId];
    const work = new DatabaseSync(join(dir, "work.db"), { timeout: 30_000 });
    const { changes } = work
      .prepare(
        "UPDATE run_inputs SET options = json_remove(options, '$.requestDigests') WHERE options LIKE '%requestDigests%'",
      )
      .run();
    work.close();
    expect(changes).toBe(2);
    expect([(await send(message)).runId, (await spawn(task)).runId]).toEqual(known);
    expect(await send({ ...message, message: "Pay twice" })).toMatchObject(conflict);
    expect(await spawn({ task: "Add" })).toMatchObject(conflict);
  });

  test("is erased with the input it describes, and the key still finds the run", async () => {
    const dir = newFolder();
    const opened = await withTargets({ dir });
    const send = callerOf(opened, "sessions_send");
    const request = { sessionKey: "session:hotel", message: "Pay", timeoutSeconds: 30 };
    const { runId } = await send(request);
    const stored = () => {
      const work = new DatabaseSync(join(dir, "work.db"), { readOnly: true });
      const rows = work.prepare("SELECT options FROM run_inputs").all();
      work.close();
      return JSON.stringify(rows);
    };
    expect(stored()).toContain("requestDigests");
    const { entryId = "" } = (await opened.skein.runs.get(String(runId))) ?? {};
    await opened.skein.store.sessions.redact({ agentId: "main" }, "hotel", [entryId]);
    expect(stored()).not.toContain("requestDigests");
    expect(await send(request)).toMatchObject({ runId });
  });
});

const contextWindow = 20_000;
const models = { basic: { contextWindow }, script: { contextWindow } };
const windowConfig = { models: { providers: { rehearsal: { models } } } };
const overWindow = "word ".repeat(60_000);
const numbers = expect.stringMatching(
  /about [6-9]\d{4} tokens, but the context window of \S+ has only 20000/,
);
const tooLarge = { code: "message_too_large", message: numbers };
const tooLargeResult = { status: "error", code: "message_too_large", error: numbers };

describe("text over the model's window", () => {
  const windowed = () =>
    withScript(answering(), { model: "rehearsal/basic", visibility: "agent" }, { config: windowConfig });

  test.each([
    ["user", { role: "user" as const, content: overWindow }],
    ["assistant", { role: "assistant" as const, content: overWindow }],
  ])("[ATG12] session.append refuses it as a %s message, and writes nothing", async (_, message) => {
    const { skein, lines } = await windowed();
    const session = skein.session({ sessionId: "trip" });
    await expect(session.append([{ role: "user", content: "Hello" }, message])).rejects.toMatchObject(
      tooLarge,
    );
    expect(await session.record()).toBeNull();
    await session.append([{ role: "user", content: "Hello" }]);
    expect(await lines("trip")).toEqual(["user: Hello"]);
  });

  test("[ATG12] session.append accepts a tool result of that size, which requests shorten", async () => {
    const { skein } = await windowed();
    const session = skein.session({ sessionId: "trip" });
    const call = { type: "tool-call", toolCallId: "c1", toolName: "read", input: {} };
    const output = { type: "text", value: overWindow };
    const { refused } = await session.append([
      { role: "user", content: "Read it" },
      { role: "assistant", content: [call] },
      { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", toolName: "read", output }] },
      { role: "assistant", content: "Read." },
    ]);
    expect(refused).toEqual([]);
    expect((await session.send("repeat alive").result).reply).toBe("alive");
  });

  test.each(["user", "assistant"])("[ATG12] sessions_send refuses it with the role %s", async (role) => {
    const opened = await windowed();
    await opened.skein.session({ sessionId: "hotel" }).open();
    const send = callerOf(opened, "sessions_send");
    const to = { sessionKey: "session:hotel", role };
    expect(await send({ ...to, message: overWindow })).toMatchObject(tooLargeResult);
    expect(await opened.lines("hotel")).toEqual([]);
    expect(await opened.skein.runs.list({})).toEqual([]);
    expect(await send({ ...to, message: "Hello" })).toMatchObject({ status: "sent" });
  });

  test("[ATG12] sessions_spawn refuses it as a task, and creates no session", async () => {
    const opened = await windowed();
    const spawn = callerOf(opened, "sessions_spawn");
    expect(await spawn({ task: overWindow })).toMatchObject(tooLargeResult);
    expect((await opened.skein.sessions.list()).sessions.map(({ key }) => key)).toEqual([main]);
    expect(await opened.skein.runs.list({})).toEqual([]);
    expect(await spawn({ task: "repeat hello" })).toMatchObject({ status: "ok" });
  });

  test("[ATG12] a note in the agent's place refuses it", async () => {
    const { skein } = await windowed();
    const session = skein.session({ sessionId: "trip" });
    await session.open();
    await expect(session.note(overWindow)).rejects.toMatchObject(tooLarge);
    expect(await skein.runs.list({})).toEqual([]);
  });
});

describe("an overflow error", () => {
  test("states that the older part is omitted, and no count that would fit the window", async () => {
    const model = scriptedModel(() => ({
      error: { status: 500, message: "No summary today", retryable: false },
    }));
    const options = { models: { "rehearsal/script": model }, config: windowConfig };
    const { skein } = await withScript([], {}, options);
    const session = skein.session({ sessionId: "trip" });
    await session.append([{ role: "user", content: "Read the log" }]);
    // Longer than the model's window, like an import.
    const answer = {
      ...({ role: "assistant", api: "openai-completions", provider: "elsewhere", model: "m" } as const),
      content: [{ type: "text" as const, text: "x".repeat(300_000) }],
      usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } },
      stopReason: "stop" as const,
      timestamp: 1,
    };
    await skein.store.sessions.append({ agentId: "main" }, "trip", [
      { draft: { type: "message", message: answer } },
    ]);
    const error = await session.send("Hi").result.catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code: "context_overflow" });
    const { message } = error as Error;
    const counts = [...message.matchAll(/(\d+) tokens/g)].map(([, count]) => Number(count));
    expect(counts.filter((count) => count < contextWindow)).toEqual([]);
    expect(message).toContain("older part");
  });

  test("of a provider that counts more than Skein shows only the provider's count", async () => {
    const refusal = "prompt is too long: 210000 tokens > 200000 maximum";
    const { skein } = await withScript(() => ({ error: { status: 400, message: refusal } }));
    const error = await skein
      .session({ sessionId: "trip" })
      .send("Hi")
      .result.catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code: "context_overflow", message: expect.stringContaining(refusal) });
    expect((error as Error).message).not.toContain("counted here");
  });
});

describe("session.append with invalid messages", () => {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  const call = (more: object) => [{ role: "assistant", content: [{ type: "tool-call", ...more }] }];

  test.each<[string, unknown, string]>([
    ["no array", { role: "user", content: "x" }, "messages"],
    ["null", [{ role: "user", content: "Hello" }, null], "messages[1]"],
    ["a text", ["x"], "messages[0]"],
    ["no role", [{ content: "x" }], "messages[0].role"],
    ["an unknown role", [{ role: "root", content: "x" }], "messages[0].role"],
    ["a number as content", [{ role: "user", content: 5 }], "messages[0].content"],
    ["no content", [{ role: "assistant" }], "messages[0].content"],
    ["null as a part", [{ role: "user", content: [null] }], "messages[0].content[0]"],
    ["an unknown part", [{ role: "user", content: [{ type: "evil" }] }], "messages[0].content[0]"],
    ["a text part without text", [{ role: "user", content: [{ type: "text" }] }], "messages[0].content[0]"],
    ["a result part of no tool", [{ role: "tool", content: "x" }], "messages[0].content"],
    ["a circular input", call({ toolCallId: "c", toolName: "t", input: loop }), "messages[0].content[0]"],
    ["a bigint", call({ toolCallId: "c", toolName: "t", input: { a: 5n } }), "messages[0].content[0]"],
  ])("[LIB6] %s is invalid_arguments that names the item, and nothing is written", async (_, given, item) => {
    const { skein } = await withScript(answering());
    const session = skein.session({ sessionId: "trip" });
    const error = await session.append(given as never).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining(`${item} `),
    });
    expect(await session.record()).toBeNull();
  });

  test("[LIB6] an invalid field of the library's own format is named, after the messages before it", async () => {
    const { skein, lines } = await withScript(answering());
    const session = skein.session({ sessionId: "trip" });
    const messages = [
      { role: "user", content: "Hello" },
      { role: "custom", content: "x" },
    ];
    await expect(session.append(messages as never)).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("messages[1] "),
    });
    expect(await lines("trip")).toEqual(["user: Hello"]);
  });
});

/** A store whose second append fails with an error message that contains a key. */
async function failingStore(secret: string): Promise<Store> {
  const store = await createStore({ memory: true });
  stores.push(store);
  let appends = 0;
  const sessions = new Proxy(store.sessions, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const [, , items] = args;
        if (name === "append" && Array.isArray(items) && items.length > 0 && ++appends === 2)
          throw new Error(`could not log in to mine with ${secret}`);
        return Reflect.apply(value, target, args);
      };
    },
  });
  return { ...store, sessions, close: () => store.close(), purgeUser: (user) => store.purgeUser(user) };
}

describe("an error of a custom store", () => {
  test("[ATG15] is masked in the run's error, its events and the log", async () => {
    const secret = `sk-ant-api03-${"a1B2c3D4e5".repeat(4)}`;
    const store = await failingStore(secret);
    const dir = newFolder();
    const file = join(dir, "skein.log");
    const config = { logging: { file, level: "debug" as const } };
    const agents = [defineAgent({ id: "main", model: "rehearsal/basic" })];
    const skein = await createSkein({ store, dir, config, agents, env: {} });
    const events: unknown[] = [];
    skein.subscribe((event) => events.push(event));
    const turn = skein.session({ sessionId: "trip" }).send("Hello");
    const { message } = (await turn.result.catch((thrown: unknown) => thrown)) as Error;
    expect(message).toContain("could not log in to mine with");
    const run = await skein.runs.get(turn.runId);
    await skein.close();
    const log = readFileSync(file, "utf8");
    expect(log).toContain("could not log in");
    for (const shown of [message, JSON.stringify(events), JSON.stringify(run), log])
      expect(shown).not.toContain(secret);
  });
});

describe("concurrent sends under one idempotency key", () => {
  const kinds: [string, () => Promise<Store> | null][] = [
    ["files", () => null],
    ["a store of the user's own", async () => openSqliteStore(join(newFolder(), "mine.db"))],
  ];
  test.each(kinds)("[ATG16] leave no empty session behind: %s", async (_, open) => {
    const own = await open();
    if (own !== null) stores.push(own);
    const { skein } = await withScript(
      answering(),
      {},
      { dir: newFolder(), ...(own === null ? {} : { store: own }) },
    );
    const sends = Array.from({ length: 12 }, (_, at) =>
      skein.session({ sessionId: `trip-${at % 4}` }).accept(`Hello ${at % 3}`, { idempotencyKey: "one" }),
    );
    const settled = await Promise.allSettled(sends);
    const accepted = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const refused = settled.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    expect(new Set(accepted.map(({ runId }) => runId)).size).toBe(1);
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(["idempotency_conflict"]));
    const { sessions } = await skein.sessions.list();
    expect(sessions.map(({ key }) => key)).toEqual([accepted[0]?.session.key]);
  });
});

describe("a model that repeats one invalid call", () => {
  test("[ATG17] ends with repeated_call at the third time", async () => {
    const { skein, model } = await withScript(() => ({ calls: [{ name: "bad name!", arguments: {} }] }));
    const turn = skein.session({ sessionId: "trip" }).send("Hello");
    await expect(turn.result).rejects.toMatchObject({ code: "repeated_call" });
    expect(model.requests).toHaveLength(3);
  });
});
