import { existsSync, globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import type { RuntimeContext, ToolContext } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool, HookRegistry } from "../../src/index.ts";
import type { Family } from "../support/family.ts";
import { call, results, withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";
import { openSqliteStore } from "../support/sqlite-store.ts";

const opened: Store[] = [];

afterEach(async () => {
  vi.useRealTimers();
  await closeAll();
  for (const store of opened.splice(0)) await store.close();
});

function ownStore(path = join(newFolder(), "mine.db")): Store {
  const store = openSqliteStore(path);
  opened.push(store);
  return store;
}

const acme = ["tenants", "acme", "ann"];
const other = ["tenants", "other", "ann"];
const echo = { Hello: () => ({ text: "Good morning." }) };

async function keysOf(family: Family, at: RuntimeContext): Promise<string[]> {
  const { userId = "ann", store = null, namespace = null } = at;
  const { sessions } = await family.skein.sessions.list({ userId: userId ?? "ann", store, namespace });
  return sessions.map(({ key }) => key).toSorted();
}

async function messagesOf(family: Family, at: RuntimeContext): Promise<number> {
  return (await family.skein.session({ userId: "ann", ...at }).history()).messages.length;
}

describe("the store of a call", () => {
  test("[OST11] the session is in that store, and the Skein's own store is empty", async () => {
    const store = ownStore();
    const family = await withParts(echo, { dir: newFolder() });
    const session = family.skein.session({ userId: "ann", sessionId: "trip", store });
    expect((await session.send("Hello").result).reply).toBe("Good morning.");
    expect(await session.record()).toMatchObject({ userId: "ann", sessionId: "trip" });
    expect((await store.sessions.list({ userId: "ann" }, {})).sessions).toHaveLength(1);
    expect(await keysOf(family, {})).toEqual([]);
    expect(await keysOf(family, { store })).toEqual(["agent:main:session:trip"]);
    expect(await messagesOf(family, { sessionId: "trip", store })).toBe(2);
    expect(family.events.filter(({ userId }) => userId !== "ann")).toEqual([]);
    expect(family.reported).toEqual([]);
  });

  test("[OST11] a session is read, reset, labeled, branched, compacted and X-rayed there", async () => {
    const store = ownStore();
    const family = await withParts(echo, { dir: newFolder() });
    const at = { userId: "ann", sessionId: "trip", store };
    const session = family.skein.session(at);
    await session.send("Hello").result;
    await session.label("holiday");
    expect(JSON.stringify(await family.skein.xray(at))).toContain("Hello");
    expect(await session.compact()).toMatchObject({ done: false });
    const page = await store.sessions.page({ userId: "ann" }, "trip", { along: "branch", limit: 9 });
    await session.branch(page?.entries.find(({ type }) => type === "message")?.id ?? null);
    expect(await messagesOf(family, at)).toBe(1);
    await session.reset();
    expect(
      await store.sessions.find({ userId: "ann" }, { by: "label", label: "holiday", agentId: "main" }),
    ).toMatchObject([{ key: "agent:main:session:trip" }]);
    const { hits } = await family.skein.sessions.search({ userId: "ann", query: "Hello", store });
    expect(hits).toHaveLength(1);
    expect((await family.skein.sessions.search({ userId: "ann", query: "Hello" })).hits).toEqual([]);
    expect(
      await family.skein.sessions.get({ userId: "ann", key: "agent:main:session:trip", store }),
    ).toMatchObject({
      label: "holiday",
    });
  });

  test("[OST12] hooks and tools see the user, the namespace and the store, and can pass them on", async () => {
    const store = ownStore();
    const seen: { ctx?: RuntimeContext; tool?: ToolContext } = {};
    const hooks = new HookRegistry();
    hooks.on("session_start", ({ ctx }) => {
      seen.ctx = ctx;
    });
    const look = defineTool({
      name: "look",
      description: "Looks.",
      execute: (_, context) => {
        seen.tool = context;
        return "seen";
      },
    });
    const family = await withParts(
      { Hello: [call("look"), { text: "Done." }] },
      { dir: newFolder(), stores: { archive: store }, hooks, agent: { tools: [look] } },
    );
    await family.skein.session({ userId: "ann", sessionId: "trip", store, namespace: acme }).send("Hello")
      .result;
    expect(seen.ctx).toMatchObject({ userId: "ann", namespace: acme });
    expect(seen.tool).toMatchObject({ userId: "ann", namespace: acme, store: "archive" });
    const ofHook = seen.ctx?.store as Store;
    expect(await ofHook.sessions.get({ userId: "ann" }, "trip")).toMatchObject({ userId: "ann" });
    const { userId, namespace, sessionKey } = seen.ctx ?? {};
    for (const from of [ofHook, seen.tool?.store]) {
      const again = { userId, namespace, sessionKey, store: from } as RuntimeContext;
      expect((await family.skein.session(again).record())?.sessionId).toBe("trip");
    }
  });
});

describe.each([
  { home: "files", open: () => ({ dir: newFolder() }) },
  { home: "a store of your own", open: () => ({ dir: newFolder(), store: ownStore() }) },
])("the namespace of a call, on $home", ({ open }) => {
  test("[OST13] sessions with the same keys stay separate: list, read and search", async () => {
    const family = await withParts({ ...echo, Secret: () => ({ text: "Zwetschgenkuchen" }) }, open());
    const said = { acme: "Secret of acme", other: "Hello other", none: "Hello there" };
    await family.skein.session({ userId: "ann", sessionId: "trip", namespace: acme }).send(said.acme).result;
    await family.skein.session({ userId: "ann", sessionId: "trip", namespace: other }).send(said.other)
      .result;
    await family.skein.session({ userId: "ann", sessionId: "trip" }).send(said.none).result;
    await family.skein.session({ userId: "ann", sessionId: "aside", namespace: acme }).send("Hello").result;
    const trip = "agent:main:session:trip";
    expect(await keysOf(family, { namespace: acme })).toEqual(["agent:main:session:aside", trip]);
    expect(await keysOf(family, { namespace: other })).toEqual([trip]);
    expect(await keysOf(family, {})).toEqual([trip]);
    expect(await messagesOf(family, { sessionId: "trip", namespace: other })).toBe(2);
    for (const [namespace, count] of [
      [acme, 2],
      [other, 0],
      [null, 0],
    ] as const) {
      const { hits } = await family.skein.sessions.search({
        userId: "ann",
        query: "Zwetschgenkuchen secret",
        namespace,
      });
      expect(hits).toHaveLength(count);
    }
    const at = { userId: "ann", sessionId: "trip", namespace: acme };
    expect(await family.skein.session(at).record()).toMatchObject({ userId: "ann", sessionId: "trip" });
    expect(family.reported).toEqual([]);
  });

  test("[OST13] sessions with the same keys stay separate: send and spawn", async () => {
    const family = await withParts(
      {
        "Ask B": [
          call("sessions_send", { sessionKey: "agent:main:session:b", message: "To B", timeoutSeconds: 30 }),
          (request) => ({ text: String(results(request)[0]?.code) }),
        ],
        "Find out": [
          call("sessions_spawn", { task: "Count the trains" }),
          { text: "I will." },
          { text: "Twelve." },
        ],
        "Count the trains": [{ text: "Twelve." }],
        ...echo,
      },
      { ...open(), agent: { visibility: "all" } },
    );
    const { skein } = family;
    await skein.session({ userId: "ann", sessionId: "b" }).send("Hello").result;
    await skein.session({ userId: "ann", sessionId: "b", namespace: other }).send("Hello").result;
    const asked = skein.session({ userId: "ann", sessionId: "a", namespace: acme }).send("Ask B");
    expect((await asked.result).reply).toBe("not_found");
    const spawned = skein.session({ userId: "ann", sessionId: "c", namespace: acme }).send("Find out");
    await spawned.result;
    await family.settled(spawned.runId);
    expect(await messagesOf(family, { sessionId: "c", namespace: acme })).toBeGreaterThan(3);
    expect(await keysOf(family, { namespace: acme })).toHaveLength(3);
    expect(await keysOf(family, { namespace: other })).toEqual(["agent:main:session:b"]);
    expect(await keysOf(family, {})).toEqual(["agent:main:session:b"]);
    const at = { userId: "ann", sessionId: "a", namespace: acme };
    const { result } = await skein.callTool("sessions_list", {}, at);
    expect(JSON.stringify(result)).not.toContain("session:b");
    expect(
      (await skein.callTool("sessions_send", { sessionKey: "agent:main:session:b", message: "Hi" }, at))
        .result,
    ).toMatchObject({
      code: "not_found",
    });
  });

  test("[OST13] an idempotency key of one namespace has no effect in another", async () => {
    const family = await withParts(echo, open());
    const send = (namespace: readonly string[] | null) =>
      family.skein.session({ userId: "ann", namespace }).accept("Hello", { idempotencyKey: "order-17" });
    const runs = [await send(acme), await send(other), await send(null), await send(acme)].map(
      ({ runId }) => runId,
    );
    expect(new Set(runs).size).toBe(3);
    expect(runs[3]).toBe(runs[0]);
    for (const runId of runs) expect((await family.skein.ended(runId)).state).toBe("ok");
    expect((await family.skein.runs.get(runs[0] ?? ""))?.session).toMatchObject({ userId: "ann" });
  });

  test("[OST14] a run queued in a namespace continues there after a restart", async () => {
    const place = open();
    const waiting = await withParts({}, { ...place, workers: false });
    const at = { userId: "ann", sessionId: "trip", namespace: acme };
    const { runId } = await waiting.skein.session(at).accept("Hello");
    await waiting.skein.close();
    const family = await withParts(echo, place);
    expect((await family.skein.ended(runId)).outcome?.reply).toBe("Good morning.");
    expect(await messagesOf(family, at)).toBe(2);
    expect(await keysOf(family, {})).toEqual([]);
  });

  test("[OST13] a user ID cannot name a space", async () => {
    const family = await withParts(echo, open());
    await family.skein.session({ userId: "ann", sessionId: "trip", namespace: acme }).send("Hello").result;
    const forged = `\u0001${JSON.stringify([null, acme, "ann"])}`;
    const refusal = {
      code: "invalid_user_id",
      message: expect.stringContaining("that does not start with U+0001"),
    };
    await expect(family.skein.session({ userId: forged, sessionId: "trip" }).record()).rejects.toMatchObject(
      refusal,
    );
    await expect(family.skein.session({ userId: forged }).send("Hello").result).rejects.toMatchObject(
      refusal,
    );
    await expect(family.skein.sessions.list({ userId: forged })).rejects.toMatchObject(refusal);
    await expect(family.skein.callTool("sessions_list", {}, { userId: forged })).rejects.toMatchObject(
      refusal,
    );
  });
});

describe("the folders of a namespace", () => {
  test("[OST16] the sessions of a namespace are in its folders, and remain its own if work.db is lost", async () => {
    const dir = newFolder();
    const first = await withParts(echo, { dir });
    await first.skein.session({ userId: "ann", sessionId: "trip", namespace: acme }).send("Hello").result;
    await first.skein.close();
    expect(existsSync(join(dir, "tenants/acme/ann/agents/main/sessions/trip.log.jsonl"))).toBe(true);
    expect(globSync("users/**", { cwd: dir })).toEqual([]);
    for (const file of globSync("{work,index}.db*", { cwd: dir })) rmSync(join(dir, file));
    const family = await withParts(echo, { dir });
    expect(await messagesOf(family, { sessionId: "trip", namespace: acme })).toBe(2);
    expect(await keysOf(family, {})).toEqual([]);
  });

  test("[OST16] a folder has one user, and the default namespace is the user's own", async () => {
    const family = await withParts(echo, { dir: newFolder() });
    const { skein } = family;
    await skein.session({ userId: "ann", namespace: ["shared"] }).send("Hello").result;
    const bobs = skein.session({ userId: "bob", namespace: ["shared"] }).send("Hello").result;
    await expect(bobs).rejects.toMatchObject({ code: "conflict" });
    await skein.session({ userId: "bob" }).send("Hello").result;
    const anns = skein.session({ userId: "ann", namespace: ["users", "bob"] }).send("Hello").result;
    await expect(anns).rejects.toMatchObject({ code: "conflict" });
    expect(await keysOf(family, { userId: "bob", namespace: ["users", "bob"] })).toEqual(["agent:main:main"]);
    const bad = skein.session({ userId: "ann", namespace: ["agents"] }).send("Hello").result;
    await expect(bad).rejects.toMatchObject({ code: "invalid_arguments" });
  });

  test("[OST16] a store can decide the folders of every user", async () => {
    const dir = newFolder();
    const namespace = ({ userId = "" }) => ["tenants", "acme", userId];
    const store = await createStore({ dir, namespace });
    const family = await withParts(echo, { store });
    await family.skein.session({ userId: "ann", sessionId: "trip" }).send("Hello").result;
    expect(existsSync(join(dir, "tenants/acme/ann/agents/main/sessions/trip.log.jsonl"))).toBe(true);
    await family.skein.close();
    await store.close();
  });
});

describe("a run that an operator releases", () => {
  test("[OST12] names the user like the caller", async () => {
    const { skein } = await withParts({}, { dir: newFolder(), workers: false });
    const { runId } = await skein.session({ userId: "ann", namespace: acme }).accept("Hello");
    expect((await skein.runs.release(runId)).session.userId).toBe("ann");
  });
});

describe("a store named for runs", () => {
  test("[OST17] its runs continue after a restart that names it again", async () => {
    const dir = newFolder();
    const path = join(newFolder(), "archive.db");
    const at = { userId: "ann", sessionId: "trip" };
    const first = ownStore(path);
    const waiting = await withParts({}, { dir, stores: { archive: first }, workers: false });
    const { runId } = await waiting.skein.session({ ...at, store: first }).accept("Hello");
    await waiting.skein.close();
    const store = ownStore(path);
    const family = await withParts(echo, { dir, stores: { archive: store } });
    expect((await family.skein.ended(runId)).outcome?.reply).toBe("Good morning.");
    expect(await messagesOf(family, { ...at, store: "archive" })).toBe(2);
    expect(await keysOf(family, {})).toEqual([]);
  });

  test("[OST17] without it they wait, report it, and touch no other store", async () => {
    const dir = newFolder();
    const path = join(newFolder(), "archive.db");
    const first = ownStore(path);
    const waiting = await withParts({}, { dir, stores: { archive: first }, workers: false });
    const { runId } = await waiting.skein.session({ userId: "ann", store: first }).accept("Hello");
    await waiting.skein.close();
    const without = await withParts(echo, { dir });
    // A later run ends first.
    await without.skein.session({ userId: "ann" }).send("Hello").result;
    expect((await without.skein.runs.get(runId))?.state).toBe("queued");
    expect(await without.skein.waits(runId)).toMatchObject({ store: "archive" });
    expect(without.reported).toMatchObject([{ code: "store_unknown" }]);
    const named = without.skein.session({ userId: "ann", store: "archive" });
    await expect(named.record()).rejects.toMatchObject({ code: "store_unknown" });
    expect(await keysOf(without, {})).toEqual(["agent:main:main"]);
    await without.skein.close();
    const family = await withParts(echo, { dir, stores: { archive: ownStore(path) } });
    expect((await family.skein.ended(runId)).state).toBe("ok");
  });

  test("[OST17] runs of a store without a name wait after a restart until they are aborted", async () => {
    const dir = newFolder();
    const waiting = await withParts({}, { dir, workers: false });
    const { runId } = await waiting.skein.session({ userId: "ann", store: ownStore() }).accept("Hello");
    await waiting.skein.close();
    const family = await withParts(echo, { dir });
    expect(family.reported).toMatchObject([{ code: "store_unknown" }]);
    expect(await family.skein.runs.abort(runId)).toBe("aborted");
  });
});

describe("sessions_send by label", () => {
  test("a lookup that the store does not answer is abandoned after 10 seconds", async () => {
    const plain = ownStore();
    const asked = Promise.withResolvers<void>();
    const find: Store["sessions"]["find"] = (scope, lookup) => {
      if (lookup.by !== "label") return plain.sessions.find(scope, lookup);
      asked.resolve();
      return new Promise(() => undefined);
    };
    const sessions = new Proxy(plain.sessions, {
      get: (target, name) => (name === "find" ? find : Reflect.get(target, name)),
    });
    const { search, state, blobs, watch } = plain;
    const purgeUser = (userId: string) => plain.purgeUser(userId);
    const store = { sessions, search, state, blobs, watch, purgeUser, close: async () => undefined };
    const { skein } = await withParts(echo, { dir: newFolder(), store });
    await skein.session().send("Hello").result;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const sent = skein.callTool("sessions_send", { label: "holiday", message: "Hi" });
    await asked.promise;
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await sent).result).toMatchObject({
      status: "error",
      code: "lookup_failed",
      error: expect.stringContaining("did not respond within 10 seconds"),
      retryable: true,
    });
  });
});

describe("{agentId} in a store path", () => {
  test("[OST19] names the folder before agents, with one folder per agent", async () => {
    const root = newFolder();
    const skein = await createSkein({
      env: {},
      quiet: true,
      config: { store: `files:${root}/agents/{agentId}/sessions/sessions.json` },
      agents: ["main", "research"].map((id) => defineAgent({ id, model: "rehearsal/basic" })),
    });
    try {
      for (const agentId of ["main", "research"])
        await skein.session({ agentId, sessionId: `${agentId}-trip` }).send("repeat yes").result;
      for (const agentId of ["main", "research"])
        expect(existsSync(join(root, `agents/${agentId}/sessions/${agentId}-trip.log.jsonl`))).toBe(true);
    } finally {
      await skein.close();
    }
  });
});
