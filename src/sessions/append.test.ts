import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { answered } from "../conformance/expect.ts";
import type { Entry } from "../core/entries.ts";
import { HookStop } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { MessageDraft, ResultDraft } from "../core/seal.ts";
import type { Store } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { capTexts, maxResultCharacters } from "../transcript/steps/truncate-tool-results.ts";
import type { ReadyResult } from "./append.ts";
import { appendResults, closeOpenCalls, guardedAppend, guardedNote, prepareResult } from "./append.ts";
import { HookRegistry } from "./hooks.ts";

const scope = { userId: "alice", agentId: "main" };

async function guarded() {
  const store = createMemoryStore();
  const reported: unknown[] = [];
  const hooks = new HookRegistry((_, error) => reported.push(error));
  await store.sessions.create(scope, { key: "agent:main:main", sessionId: "s", cwd: "/w" });
  const deps = { store, hooks };
  const say = (message: MessageDraft, options = {}) => guardedAppend(deps, scope, "s", message, options);
  return { store, hooks, reported, deps, say };
}

async function transcript(store: Store): Promise<string[]> {
  const page = await store.sessions.page(scope, "s", { along: "branch", limit: 1000 });
  return (page?.entries ?? []).map((entry: Entry) => {
    if (entry.type !== "message") return entry.type;
    const { message } = entry;
    if (message.role !== "toolResult") return message.role;
    return `${message.role} ${message.toolCallId}${message.isError ? " error" : ""}`;
  });
}

const user = (content: string): MessageDraft => ({ role: "user", content });
const result = (toolCallId: string, text = "done"): ResultDraft => ({
  role: "toolResult",
  toolCallId,
  toolName: "read",
  content: [{ type: "text", text }],
  isError: false,
});

function calling(...calls: object[]): MessageDraft {
  const draft = answered("I look it up");
  if (draft.type !== "message" || draft.message.role !== "assistant") throw new Error("not an answer");
  const { message } = draft;
  return {
    ...message,
    stopReason: "toolUse",
    content: [...message.content, ...calls] as typeof message.content,
  };
}

const call = (id: string, more = {}) => ({ type: "toolCall", id, name: "read", arguments: {}, ...more });

describe("the guard", () => {
  test("invalid calls are removed and reported; the rest stay", async () => {
    const { store, say } = await guarded();
    const bad = [
      call(""),
      call("x", { name: "no spaces please" }),
      call("y", { arguments: [] }),
      call("z", { name: "n".repeat(65) }),
    ];
    const { notes, entries } = await say(calling(call("a"), ...bad));
    expect(notes.map(({ kind }) => kind)).toEqual(Array.from({ length: 4 }, () => "call_removed"));
    expect(JSON.stringify(entries[0])).toContain('"id":"a"');
    expect(JSON.stringify(entries[0])).not.toContain("no spaces");
    expect(await transcript(store)).toEqual(["assistant"]);
  });

  test("an ID that was written long ago changes nothing, not even an open call", async () => {
    const { store, say } = await guarded();
    await say(user("first"), { id: "delivery-1" });
    for (let index = 0; index < 205; index++) await say(user(`more ${index}`));
    await say(calling(call("c1")));
    expect((await say(user("first"), { id: "delivery-1" })).entries.map(({ id }) => id)).toEqual([
      "delivery-1",
    ]);
    expect((await say(result("c1"))).refused).toBeNull();
    expect((await transcript(store)).filter((each) => each.includes("error"))).toEqual([]);
  });

  test("the result of a call before a thousand entries that are not messages is accepted", async () => {
    const { store, say } = await guarded();
    await say(calling(call("c1")));
    const draft = { type: "custom", customType: "x", data: {} } as const;
    await store.sessions.append(
      scope,
      "s",
      Array.from({ length: 2500 }, () => ({ draft })),
    );
    expect((await say(result("c1"))).refused).toBeNull();
  });

  test("[GRD8] new input unarchives a session; an answer does not", async () => {
    const { store, say } = await guarded();
    await store.sessions.patch(scope, "s", { archived: true });
    await say(calling());
    expect((await store.sessions.get(scope, "s"))?.meta.archived).toBe(true);
    await say(user("Are you there?"));
    expect((await store.sessions.get(scope, "s"))?.meta.archived).toBeUndefined();
  });

  test("[GRD8] accepted input from any sender unarchives a session", async () => {
    const { store, deps } = await guarded();
    const isArchived = async () => (await store.sessions.get(scope, "s"))?.meta.archived === true;
    const wake = {
      type: "custom_message",
      customType: "skein.wake",
      content: "Awake.",
      display: true,
    } as const;
    for (const isInput of [false, true]) {
      await store.sessions.patch(scope, "s", { archived: true });
      await guardedAppend(deps, scope, "s", calling(), { isInput });
      expect(await isArchived()).toBe(!isInput);
      await store.sessions.patch(scope, "s", { archived: true });
      await guardedNote(deps, scope, "s", wake, { isInput });
      expect(await isArchived()).toBe(!isInput);
    }
  });

  test("[LBR11] the last of three hundred parallel calls is answered like the first", async () => {
    const { say, store } = await guarded();
    const ids = Array.from({ length: 300 }, (_, index) => `c${index}`);
    await say(calling(...ids.map((id) => call(id))));
    for (const id of ids) expect((await say(result(id))).refused).toBeNull();
    await say(user("Thank you"));
    expect((await transcript(store)).filter((each) => each.includes("error"))).toEqual([]);
  });

  test("[LBR11] a result without an open call is refused: once, twice, out of turn", async () => {
    const { store, say } = await guarded();
    expect((await say(result("a"))).refused).toContain("no pending call");
    await say(calling(call("a"), call("b")));
    expect((await say(result("c"))).refused).toContain("no pending call has the ID c");
    expect((await say(result("b"))).refused).toBeNull();
    expect((await say(result("b"))).refused).toContain("b");
    expect((await say(result("a"))).refused).toBeNull();
    expect(await transcript(store)).toEqual(["assistant", "toolResult b", "toolResult a"]);
  });

  test("[LBR11] results in one append are checked like results one by one", async () => {
    const { store, say, deps } = await guarded();
    const answer = async (...each: (readonly [ResultDraft, id?: string])[]) => {
      const ready = each.map(([message, id]) =>
        prepareResult(deps, scope, "s", message, { ...present({ id }) }),
      );
      const done = await appendResults(store, scope, "s", (await Promise.all(ready)) as ReadyResult[]);
      return done.map(({ entries, notes, refused, wasThere = false }) => {
        const what = [
          ...entries.map(({ id }) => (id.length < 3 ? id : "new")),
          ...notes.map(({ kind }) => kind),
        ];
        return `${what.join(" ")}${refused ?? ""}${wasThere ? " again" : ""}`;
      });
    };
    await say(calling(call("a"), call("b"), call("c"), call("d")));
    const long = "x".repeat(maxResultCharacters + 1);
    expect(await answer([result("a"), "1"], [result("a", long)])).toEqual([
      "1",
      "no pending call has the ID a",
    ]);
    expect(await answer([result("b"), "2"], [result("b"), "2"])).toEqual(["2", "2 again"]);
    expect(await answer([result("b"), "2"], [result("b")])).toEqual([
      "2 again",
      "no pending call has the ID b",
    ]);
    // Two calls can name the same entry, for example if an agent's own tool returns the ID of a run.
    expect(await answer([result("d"), "2"], [result("c", long), "2"])).toEqual(["new", "new result_capped"]);
    expect(await transcript(store)).toEqual([
      "assistant",
      ...["a", "b", "c", "d"].map((id) => `toolResult ${id}`),
    ]);
  });

  test("at the end of a run, open calls get a synthetic result", async () => {
    const { store, say, deps } = await guarded();
    await say(calling(call("a")));
    await closeOpenCalls(deps, scope, "s");
    await closeOpenCalls(deps, scope, "s");
    expect(await transcript(store)).toEqual(["assistant", "toolResult a error"]);
  });

  test("texts are shortened to the cap in proportion, keeping head and tail and whole surrogate pairs", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(9000), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 3000, max: 20_000 }),
        (lengths, most) => {
          const texts = lengths.map((length, index) => `${index}${"😀".repeat(length)}${index}`);
          const capped = capTexts(texts, () => "[…]", most);
          const total = (all: readonly string[]) => all.reduce((sum, text) => sum + text.length, 0);
          if (total(texts) <= most) {
            expect(capped).toBe(texts);
            return;
          }
          expect(total(capped)).toBeLessThanOrEqual(most);
          for (const [index, text] of capped.entries()) {
            expect(text.isWellFormed()).toBe(true);
            expect(text.startsWith(String(index)) && text.endsWith(String(index))).toBe(true);
            expect(text.length).toBeGreaterThanOrEqual(
              Math.min(texts[index]?.length ?? 0, 2000, Math.floor(most / texts.length)) - 2,
            );
          }
        },
      ),
    );
  });

  test("an image of 64 KB or more is stored as a blob, and stays readable", async () => {
    const { store, say } = await guarded();
    const bytes = Buffer.alloc(64 * 1024, 7);
    const small = { type: "image" as const, data: "aGk=", mimeType: "image/png" };
    const { entries } = await say({
      role: "user",
      content: [small, { ...small, data: bytes.toString("base64") }],
    });
    const entry = entries[0] as {
      message?: { content: { type: string; skein?: { blob: { sha256: string } } }[] };
    };
    expect(entry.message?.content[0]).toEqual(small);
    const moved = entry.message?.content[1];
    expect(moved).toMatchObject({
      type: "text",
      skein: { blob: { bytes: 65_536, mimeType: "image/png", was: "image" } },
    });
    expect(await store.blobs.get(scope, moved?.skein?.blob.sha256 ?? "")).toEqual(new Uint8Array(bytes));
  });

  test("data of an image that is not base64 is stored as it is", async () => {
    const { store, say } = await guarded();
    const image = { type: "image" as const, data: "not base64! ".repeat(10_000), mimeType: "image/png" };
    const { entries } = await say({ role: "user", content: [image] });
    const { sha256 } = JSON.parse(JSON.stringify(entries[0])).message.content[0].skein.blob;
    const stored = await store.blobs.get(scope, sha256);
    expect(Buffer.from(stored ?? []).toString() === image.data).toBe(true);
  });

  test("hooks replace or refuse, in order; a throwing hook is reported and skipped, unless it stops the write", async () => {
    const { store, say, hooks, reported } = await guarded();
    hooks.on("before_message_write", () => {
      throw new Error("broken hook");
    });
    const off = hooks.on("before_message_write", ({ message }) =>
      message.role === "user" ? { replace: { ...message, content: "first" } } : undefined,
    );
    hooks.on("before_message_write", ({ message }) =>
      message.role === "user" && message.content === "first"
        ? { replace: { ...message, content: "first, second" } }
        : undefined,
    );
    hooks.on("tool_result_persist", () => ({ refuse: "not this one" }));
    const { entries } = await say(user("x"));
    expect(entries[0]).toMatchObject({ message: { content: "first, second" } });
    expect(reported).toHaveLength(1);
    await say(calling(call("a")));
    expect((await say(result("a"))).refused).toBe("not this one");
    off();
    expect((await say(user("y"))).entries.at(-1)).toMatchObject({ message: { content: "y" } });
    hooks.on("before_message_write", () => {
      throw new HookStop("enough");
    });
    await expect(say(user("z"))).rejects.toThrow("enough");
    expect((await transcript(store)).at(-1)).toBe("user");
  });

  test("hooks get the session's owner, or the caller's context", async () => {
    const { store, say, hooks } = await guarded();
    const found: unknown[] = [];
    for (const name of ["before_message_write", "tool_result_persist"] as const)
      hooks.on(name, ({ ctx }) => void found.push(ctx) as undefined);
    const ctx = { userId: "alice", agentId: "main", sessionId: "s", channel: "slack" };
    await say(calling(call("a")), { ctx });
    await say(result("a"));
    const itself = { userId: "alice", agentId: "main", sessionId: "s", store };
    expect(found).toEqual([ctx, itself, itself]);
  });

  test("all writers of a crowd in one process get their turn", async () => {
    const { store, say } = await guarded();
    const results = await Promise.all(Array.from({ length: 80 }, (_, index) => say(user(`m${index}`))));
    expect(results.every((each) => each.refused === null)).toBe(true);
    expect(await transcript(store)).toHaveLength(80);
  });

  test("a repeated ID changes nothing, and concurrent writers keep calls and results together", async () => {
    const { store, say } = await guarded();
    await say(calling(call("a"), call("b")), { id: "one" });
    await Promise.all([
      say(result("a")),
      say(result("b")),
      say(result("a")),
      say(user("and?")),
      say(calling(call("c")), { id: "one" }),
    ]);
    const lines = await transcript(store);
    expect(lines[0]).toBe("assistant");
    expect(
      lines
        .slice(1, 3)
        .map((line) => line.slice(0, 12))
        .toSorted(),
    ).toEqual(["toolResult a", "toolResult b"]);
    expect(lines.at(3)).toBe("user");
    expect(lines).toHaveLength(4);
  });
});
