import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedFolder } from "../../../test/support/cli-folder.ts";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { readingFolder } from "../../../test/support/reading-folder.ts";
import { answered, said } from "../../conformance/expect.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { ReadMethod } from "./handlers.ts";

let folder: ReadingFolder;
const trip = "agent:main:session:trip";

beforeAll(async () => {
  folder = await readingFolder();
  const { store, dir } = folder;
  await seedFolder(dir);
  await store.sessions.create(
    { userId: "bob" },
    { key: "agent:main:session:his", sessionId: "his", cwd: "/b", meta: { label: "bobs" } },
  );
  await folder.append({ userId: "bob" }, "his", said("zeppelin"), answered("Yes."));
});
afterAll(() => folder.close());

describe("lists of sessions", () => {
  test("come from the index and respect filters", async () => {
    const { sessions, path } = await folder.admin("sessions.list", {});
    expect(path).toBe(folder.dir);
    expect(sessions).toHaveLength(6);
    const ids = async (params: Params<"sessions.list">) =>
      (await folder.admin("sessions.list", params)).sessions.map(({ sessionId }) => sessionId).toSorted();
    expect(await ids({ agentId: "research" })).toEqual(["lab"]);
    expect(await ids({ kinds: ["cron"] })).toEqual(["daily"]);
    expect(await ids({ label: "holiday" })).toEqual(["trip"]);
    expect(await ids({ search: "KYOTO" })).toEqual(["trip"]);
    expect(await ids({ spawnedBy: "holiday" })).toEqual(["01-food", "01-gardens"]);
    expect(await ids({ spawnedBy: "agent:main:session:gone" })).toEqual([]);
    expect(await ids({ archived: true })).toEqual([]);
    const { sessions: removed } = await folder.admin("sessions.trash", {});
    expect(removed).toMatchObject([{ sessionId: "old-trip", label: "last year" }]);
  });

  test("a session that disappears during the listing affects no other", async () => {
    const busy = await readingFolder();
    const goes = { key: "agent:main:session:goes", sessionId: "goes", cwd: "/" };
    try {
      const { sessions } = busy.store;
      await sessions.create({}, { key: "agent:main:session:stays", sessionId: "stays", cwd: "/" });
      const gone = await sessions.create({}, goes);
      const [listed] = await Promise.all([
        busy.admin("sessions.list", {}),
        sessions.remove({}, "goes").then(() => sessions.purge({}, "goes")),
      ]);
      expect(listed.sessions.map(({ sessionId }) => sessionId)).toContain("stays");
      expect(busy.store.upkeep.workingSets([gone]).size).toBe(0);
    } finally {
      await busy.close();
    }
  });

  test("the active time counts back from now", async () => {
    const at = { now: 0 };
    const timed = await readingFolder({ clock: { now: () => at.now } });
    try {
      const { updatedAt } = await timed.store.sessions.create({}, { key: "agent:main:main", cwd: "/" });
      const count = async () => (await timed.admin("sessions.list", { activeMinutes: 5 })).count;
      at.now = updatedAt + 5 * 60_000;
      expect(await count()).toBe(1);
      at.now += 1;
      expect(await count()).toBe(0);
    } finally {
      await timed.close();
    }
  });

  test("one session is shown with everything that is known", async () => {
    const details = await folder.admin("sessions.get", { key: "holiday" });
    expect(details).toMatchObject({
      key: trip,
      label: "holiday",
      displayName: "Three days in Kyoto",
      agentId: "main",
      cwd: "/home/ann/trip",
      queued: 0,
      status: "idle",
    });
    expect(details.childSessions?.toSorted()).toEqual([
      "agent:main:subagent:trip:food",
      "agent:main:subagent:trip:gardens",
    ]);
    expect(details.bytes).toBeGreaterThan(1000);
    expect(details.summary).not.toBe("");
  });

  test("[WLK3] a reference is a key, an ID or a label of the call's user", async () => {
    const resolve = async (params: Params<"sessions.resolve">) =>
      (await folder.admin("sessions.resolve", params)).sessionId;
    expect(await resolve({ key: "session:trip" })).toBe("trip");
    expect(await resolve({ key: "main" })).toBe("home");
    expect(await resolve({ key: "main", agentId: "Research" })).toBe("lab");
    expect(await resolve({ sessionId: "TRIP" })).toBe("trip");
    expect(await resolve({ label: "reports" })).toBe("daily");
    expect(await resolve({ key: "01-g", prefix: true })).toBe("01-gardens");
    expect(await resolve({ key: "01-food", spawnedBy: "holiday" })).toBe("01-food");
    for (const params of [
      { key: "01-g" },
      { label: "reports", agentId: "research" },
      { sessionId: "holiday" },
      { key: "daily", spawnedBy: "holiday" },
      { key: "old-trip" },
    ])
      await expect(resolve(params)).rejects.toMatchObject({ code: "not_found" });
    await expect(resolve({ key: "01-", prefix: true })).rejects.toMatchObject({ code: "ambiguous" });
    expect(await folder.as("alice", "read")("sessions.resolve", { key: trip })).toMatchObject({
      key: trip,
      sessionId: "trip",
    });
    expect((await folder.as("alice", "read")("sessions.get", { key: trip })).label).toBe("hers");
  });

  const about = (key: string): readonly (readonly [ReadMethod, object])[] => [
    ["sessions.get", { key }],
    ["sessions.resolve", { key }],
    ["sessions.tree", { key }],
    ["sessions.entries", { key }],
    ["sessions.usage", { key }],
    ["sessions.search", { key, query: "zeppelin" }],
    ["sessions.context", { key }],
    ["sessions.export", { key }],
    ["chat.history", { sessionKey: key }],
    ["blobs.get", { key, sha256: "0".repeat(64) }],
  ];

  test.each(about("x").map(([method]) => [method]))(
    "[WLK3] %s treats another user's session as missing",
    async (method) => {
      const call = folder.as("alice", "read", "admin");
      for (const [his, none] of [
        ["agent:main:session:his", "agent:main:session:nix"],
        ["his", "nix"],
        ["bobs", "nobs"],
      ] as const) {
        const outcome = async (key: string) => {
          const params = about(key).find(([name]) => name === method)?.[1] as never;
          const error = await call(method, params).catch((thrown: unknown) => thrown);
          expect(error).toBeInstanceOf(SkeinError);
          return { code: (error as SkeinError).code, text: (error as SkeinError).message };
        };
        const [refused, absent] = [await outcome(his), await outcome(none)];
        expect(refused.code).toBe("not_found");
        expect(refused.text.replaceAll(his, none)).toBe(absent.text);
      }
    },
  );

  test("[WLK3] another user's session is not in lists, previews, searches, totals or the trash", async () => {
    const call = folder.as("alice", "read", "admin");
    const { sessions } = await call("sessions.list", { includeGlobal: true, includeUnknown: true });
    expect(sessions.map(({ userId }) => userId)).toEqual(["alice"]);
    expect((await call("sessions.search", { query: "zeppelin" })).hits).toEqual([]);
    expect((await call("sessions.preview", { keys: ["his"] })).previews).toEqual([
      { key: "his", status: "missing", items: [] },
    ]);
    expect((await call("sessions.trash", {})).count).toBe(0);
    const spent = async (user: string) =>
      (await folder.as(user, "read")("sessions.usage", { since: 0 })).total.answers;
    expect(await spent("bob")).toBe(1);
    expect(await spent("nobody")).toBe(0);
    await expect(call("sessions.list", { userId: "bob" })).rejects.toMatchObject({ code: "forbidden" });
  });
});

describe("reading messages", () => {
  test("pages cover every message, entry and row once", async () => {
    const sessionId = "long";
    const made = { key: "agent:main:session:long", sessionId, cwd: "/" };
    await folder.store.sessions.create({ userId: "carl" }, made);
    const call = folder.as("carl", "read");
    const ids = await folder.append(
      { userId: "carl" },
      sessionId,
      ...Array.from({ length: 25 }, (_, index) => (index % 2 === 0 ? said : answered)(`m${index}`)),
    );
    const seen = { history: [] as string[], entries: [] as string[], rows: [] as string[] };
    for (let before: string | undefined, isMore = true; isMore; isMore = before !== undefined) {
      const page = await call("chat.history", { sessionKey: "long", limit: 4, ...(before && { before }) });
      seen.history.unshift(...page.messages.map(({ id }) => id));
      before = page.nextBefore;
    }
    for (let after: string | undefined, isMore = true; isMore; ) {
      const range = after === undefined ? {} : { after };
      const page = await call("sessions.tree", { key: "long", limit: 7, ...range });
      seen.rows.push(...page.entries.map(({ id }) => id));
      after = page.nextAfter;
      isMore = after !== undefined;
    }
    for (let before: string | undefined, isMore = true; isMore; ) {
      const page = await call("sessions.entries", {
        key: "long",
        along: "all",
        limit: 6,
        ...(before && { before }),
      });
      seen.entries.unshift(...page.entries.map(({ id }) => id));
      before = page.entries[0]?.id;
      isMore = page.hasEarlier;
    }
    expect(seen).toEqual({ history: ids, entries: ids, rows: ids });
    await expect(call("sessions.tree", { key: "long", after: "nix" })).rejects.toMatchObject({
      code: "not_found",
    });
    const sessions: string[] = [];
    for (let cursor: string | undefined, isMore = true; isMore; isMore = cursor !== undefined) {
      const page = await folder.admin("sessions.list", { limit: 2, ...(cursor && { cursor }) });
      sessions.push(...page.sessions.map((each) => each.sessionId));
      cursor = page.nextCursor;
    }
    expect([sessions.length, new Set(sessions).size]).toEqual([6, 6]);
  });

  test("texts of a history are limited to 12,000 characters, and queued input is included separately", async () => {
    const scope = { userId: "dora" };
    const made = { key: "agent:main:session:wide", sessionId: "wide", cwd: "/" };
    const { uid } = await folder.store.sessions.create(scope, made);
    await folder.append(scope, "wide", said("x".repeat(20_000)));
    const run = { runId: "r1", state: "queued", createdAt: 7, message: { role: "user", content: "next" } };
    const provenance = { kind: "inter_session", sourceSessionKey: "agent:main:main" };
    const waiting = await readingFolder({
      store: folder.store,
      pending: async (sessionUid) => (sessionUid === uid ? [{ ...run, provenance } as never] : []),
    });
    const history = await waiting.as("dora", "read")("chat.history", { sessionKey: "wide" });
    await waiting.close();
    const { content } = history.messages[0] as unknown as { content: string };
    expect([content.length, history.truncated]).toEqual([12_000 + "\n…(truncated)…".length, true]);
    expect(history.pending).toEqual([
      { runId: "r1", role: "user", content: "next", timestamp: 7, state: "queued", provenance },
    ]);
  });

  test("previews are single lines of the last messages, and only a failing one is missing", async () => {
    const call = { type: "toolCall" as const, id: "c1", name: "read", arguments: {} };
    const calling = answered("");
    if (calling.type !== "message" || calling.message.role !== "assistant") throw new Error("no answer");
    const done = {
      ...{ role: "toolResult" as const, toolCallId: "c1", toolName: "read", isError: false, timestamp: 3 },
      content: [{ type: "text" as const, text: "the file" }],
    };
    const made = { key: "agent:main:session:calls", sessionId: "calls", cwd: "/" };
    const scope = { userId: "eve" };
    await folder.store.sessions.create(scope, made);
    await folder.store.sessions.create(scope, {
      key: "agent:main:session:none",
      sessionId: "none",
      cwd: "/",
    });
    await folder.append(
      scope,
      "calls",
      said("first"),
      said(`two\n  lines ${"and on ".repeat(100)}`),
      { type: "message", message: { ...calling.message, content: [call] } },
      { type: "message", message: done },
      {
        type: "message",
        message: { ...calling.message, content: [{ type: "text", text: "Done." }, call] },
      },
    );
    const { previews } = await folder.as("eve", "read")("sessions.preview", {
      keys: ["calls", "none", "nix"],
      limit: 2,
      maxChars: 30,
    });
    expect(previews).toMatchObject([
      {
        key: "calls",
        status: "ok",
        items: [
          { role: "user", text: "two lines and on and on and…" },
          { role: "assistant", text: "Done." },
        ],
      },
      { key: "none", status: "empty", items: [] },
      { key: "nix", status: "missing", items: [] },
    ]);
  });

  test("a page of whole entries stays well below a frame, from the requested end", async () => {
    const scope = { userId: "fay" };
    const made = { key: "agent:main:session:heavy", sessionId: "heavy", cwd: "/" };
    await folder.store.sessions.create(scope, made);
    const heavy = Array.from({ length: 6 }, () => said("y".repeat(3 * 1024 * 1024)));
    const ids = await folder.append(scope, "heavy", ...heavy);
    const call = folder.as("fay", "read", "admin");
    const newest = await call("sessions.entries", { key: "heavy" });
    expect(newest.entries.map(({ id }) => id)).toEqual(ids.slice(-2));
    expect([newest.hasEarlier, newest.hasLater]).toEqual([true, false]);
    const first = ids[0] ?? "";
    const behind = await call("sessions.entries", { key: "heavy", after: first });
    expect(behind.entries.map(({ id }) => id)).toEqual(ids.slice(1, 3));
    expect(behind.hasLater).toBe(true);
    await call("sessions.export", { key: "heavy", format: "jsonl" });
    await folder.append(scope, "heavy", ...heavy.slice(0, 3));
    await expect(call("sessions.export", { key: "heavy" })).rejects.toMatchObject({ code: "too_large" });
  });
});

describe("the X-ray and the export", () => {
  test("shows what a model would receive, according to the configuration", async () => {
    const own = await folder.reader("sessions.context", { key: "holiday" });
    expect(own.request).toMatchObject({ provider: "anthropic", model: "claude-sonnet-4-5" });
    expect(own.request.system).toBe("You plan journeys.");
    const other = await folder.reader("sessions.context", {
      key: "holiday",
      model: "openai/gpt-5",
      wire: true,
    });
    expect(other.wire).toMatchObject({ model: "gpt-5" });
    const asked = { key: "holiday", model: "local/qwen3" };
    await expect(folder.reader("sessions.context", asked)).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    const there = await folder.reader("sessions.context", { ...asked, baseUrl: "http://127.0.0.1:1/v1" });
    expect(there.request).toMatchObject({ provider: "local" });
  });

  test("exports every format, with all branches on request", async () => {
    const content = async (params: Partial<Params<"sessions.export">>) =>
      (await folder.admin("sessions.export", { key: "holiday", ...params })).content ?? "";
    const lines = (await content({})).trimEnd().split("\n");
    const { entries } = await folder.admin("sessions.tree", { key: "holiday" });
    expect(lines).toHaveLength(entries.length + 1);
    expect(await content({ format: "html" })).toMatch(/^<!doctype html>/);
    const [active, all] = [await content({ format: "md" }), await content({ format: "md", all: true })];
    expect(all.length).toBeGreaterThan(active.length);
  });
});
