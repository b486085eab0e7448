import { once } from "node:events";
import { existsSync, globSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import { connect } from "../../src/entry-client.ts";
import { storeConformance } from "../../src/entry-conformance.ts";
import type { Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { Started } from "../support/cli-process.ts";
import type { FamilyOptions, Parts } from "../support/family.ts";
import { call, gate, withParts } from "../support/family.ts";
import { pngOf } from "../support/images.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { closeAll, newFolder } from "../support/skein.ts";
import { openSqliteStore } from "../support/sqlite-store.ts";

const opened: Store[] = [];

afterEach(async () => {
  await closeAll();
  for (const store of opened.splice(0)) await store.close();
});

function ownStore(path = join(newFolder(), "mine.db")): Store {
  const store = openSqliteStore(path);
  opened.push(store);
  return store;
}

/** A Skein instance with a custom store whose runs are stored in a folder. */
async function onOwnStore(parts: Parts, options: FamilyOptions = {}) {
  const dir = newFolder();
  const store = ownStore();
  return { dir, store, family: await withParts(parts, { dir, store, ...options }) };
}

const a = "agent:main:session:a";
const b = "agent:main:session:b";
const agents = [defineAgent({ id: "main", model: "rehearsal/basic" })];

describe("the conformance kit", () => {
  const cases = storeConformance({
    create: async () => {
      const path = join(newFolder(), "mine.db");
      let store = ownStore(path);
      const reopen = async () => {
        await store.close();
        store = ownStore(path);
        return store;
      };
      return { store, reopen };
    },
    capabilities: { reopen: true, powerCut: false },
  });
  test.each(cases)("[OST1] passes for the store of these tests: $id $title", async ({ run }) => run());
});

describe("createSkein({ store })", () => {
  test("[OST2] keeps sessions in the store and runs in work.db of the folder", async () => {
    const { dir, store, family } = await onOwnStore({ Hello: [{ text: "Good morning." }] });
    const turn = family.skein.session({ userId: "ann", sessionId: "trip" }).send("Hello");
    expect((await turn.result).reply).toBe("Good morning.");
    const page = await store.sessions.page({ userId: "ann" }, "trip", { along: "branch", limit: 10 });
    expect(page?.entries.filter(({ type }) => type === "message")).toHaveLength(2);
    expect((await family.skein.runs.get(turn.runId, "ann"))?.state).toBe("ok");
    expect(existsSync(join(dir, "work.db"))).toBe(true);
    expect(globSync("**/*.jsonl", { cwd: dir })).toEqual([]);
    expect(family.reported).toEqual([]);
  });

  test("[STE1] reports with indexing that the store's list is incomplete", async () => {
    const store = ownStore();
    const list = store.sessions.list.bind(store.sessions);
    let behind = 2;
    vi.spyOn(store.sessions, "list").mockImplementation(async (scope, query) => ({
      ...(await list(scope, query)),
      behind,
    }));
    const { call, make } = await withParts({}, { dir: newFolder(), store });
    await make("agent:main:main");
    expect(await call("sessions_list", {})).toMatchObject({ count: 1, indexing: { behind: 2 } });
    behind = 0;
    expect(await call("sessions_list", {})).not.toHaveProperty("indexing");
  });

  test("[OST2] leaves the store open for its owner", async () => {
    const { store, family } = await onOwnStore({ Hello: [{ text: "Good morning." }] });
    await family.skein.session().send("Hello").result;
    await family.skein.close();
    expect((await store.sessions.list({}, {})).sessions).toHaveLength(1);
  });

  test("[OST2] runs on the stores of the package", async () => {
    const stores = [await createStore({ memory: true }), await createStore({ dir: newFolder() })];
    for (const store of stores) {
      const family = await withParts({ Hello: [{ text: "Good morning." }] }, { store });
      expect((await family.skein.session().send("Hello").result).reply).toBe("Good morning.");
      await family.skein.close();
      expect((await store.sessions.list({}, {})).sessions).toHaveLength(1);
      await store.close();
    }
  });

  test("[OST2] uses the folder of a files store as dir, relative to the working directory", async () => {
    const cwd = newFolder();
    const store = await createStore({ dir: join(cwd, "sessions") });
    opened.push(store);
    const { skein } = await withParts({}, { store, cwd, dir: "sessions" });
    expect(await skein.session().record()).toBeNull();
    const elsewhere = createSkein({ store, cwd, dir: "elsewhere", config: null });
    await expect(elsewhere).rejects.toThrow(`The store is in ${join(cwd, "sessions")}`);
  });

  test("[OST2] publishes changes in every session as events", async () => {
    const { family } = await onOwnStore({ Hello: [{ text: "Good morning." }] });
    const turn = family.skein.session({ userId: "ann" }).send("Hello");
    await turn.result;
    const mine = family.events.filter(({ userId }) => userId === "ann").map(({ type }) => type);
    expect(mine).toEqual(expect.arrayContaining(["session.created", "entry.appended", "run.ended"]));
  });

  test("[OST4] sessions send to each other, and replies return", async () => {
    const { family } = await onOwnStore({
      "Ask B": [
        call("sessions_send", { sessionKey: b, message: "To B: how many?", timeoutSeconds: 30 }),
        { text: "Twelve, says B." },
      ],
      "To B": [{ text: "Twelve." }, { text: "REPLY_SKIP" }],
    });
    await family.make(b);
    const turn = family.skein.session({ sessionKey: a }).send("Ask B");
    expect((await turn.result).reply).toBe("Twelve, says B.");
    await family.settled(turn.runId);
    expect((await family.linesAt(b)).slice(0, 2)).toEqual(["user: To B: how many?", "assistant: Twelve."]);
  });

  test("[OST4] a spawned session announces its result to its parent", async () => {
    const { family } = await onOwnStore({
      "Find out": [
        call("sessions_spawn", { task: "Count the trains", label: "trains" }),
        { text: "I will tell you." },
        { text: "Twelve trains." },
      ],
      "Count the trains": [{ text: "There are twelve." }],
    });
    const turn = family.skein.session({ sessionKey: a }).send("Find out");
    await turn.result;
    await family.settled(turn.runId);
    expect((await family.linesAt(a)).at(-1)).toBe("assistant: Twelve trains.");
    const { result } = await family.skein.callTool("sessions_list", {}, { sessionKey: a });
    expect(JSON.stringify(result)).toContain("trains");
  });

  test("[OST4] a refused spawn leaves no session behind", async () => {
    const { family, store } = await onOwnStore(
      { "Find out": [call("sessions_spawn", { task: "Count" }), { text: "Refused." }] },
      { settings: { budget: { runs: 1 } } },
    );
    await family.skein.session({ sessionKey: a }).send("Find out").result;
    expect((await store.sessions.list({}, {})).sessions.map(({ key }) => key)).toEqual([a]);
    expect(await store.sessions.trashed({})).toEqual([]);
  });

  test("[OST4] list, search, history, label, branch, fork and the X-ray read the store", async () => {
    const { family, store } = await onOwnStore({
      Kyoto: [{ text: "Three days." }],
      "not answered": [{ text: "Four days." }],
    });
    const session = family.skein.session({ userId: "ann", sessionId: "trip" });
    await session.send("Kyoto in spring").result;
    await session.label("holiday");
    const { sessions } = family.skein;
    const { sessions: rows } = await sessions.list({ userId: "ann" });
    expect(rows).toMatchObject([{ sessionId: "trip", label: "holiday" }]);
    expect((await sessions.search({ userId: "ann", query: "spring" })).hits).toHaveLength(1);
    expect((await sessions.search({ userId: "bob", query: "spring" })).hits).toEqual([]);
    const { messages } = await session.history();
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    const shown = await family.skein.xray({ userId: "ann", sessionId: "trip" });
    expect(JSON.stringify(shown)).toContain("Kyoto in spring");
    const { key } = await session.fork({ sessionId: "aside" });
    expect(key).toBe("agent:main:session:aside");
    const page = await store.sessions.page({ userId: "ann" }, "trip", { along: "branch", limit: 10 });
    await session.branch(page?.entries.find(({ type }) => type === "message")?.id ?? "");
    await session.send("and more").result;
    expect((await session.history()).messages).toHaveLength(3);
  });

  test("[OST4] a reset moves queued input to the new session, and is refused while a run is active", async () => {
    const { tool, open } = gate();
    const { family } = await onOwnStore(
      { First: [call("gate"), { text: "Done." }], Later: [{ text: "In the new one." }] },
      { agent: { tools: [tool] } },
    );
    const session = family.skein.session({ sessionId: "trip" });
    const first = session.send("First");
    await family.until("run.tool");
    await expect(session.reset()).rejects.toMatchObject({ code: "conflict" });
    open();
    await first.result;
    const { previous } = await session.reset();
    expect(previous.key).toBe("agent:main:reset:trip");
    expect((await session.send("Later").result).reply).toBe("In the new one.");
    expect((await session.history()).messages).toHaveLength(2);
  });

  test("[OST4] input whose image is being stored during a reset belongs to the new session", async () => {
    const store = ownStore();
    const [reached, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { put } = store.blobs;
    vi.spyOn(store.blobs, "put").mockImplementationOnce(async (...args) => {
      reached.resolve();
      await finish.promise;
      return put.apply(store.blobs, args);
    });
    const script = { First: [{ text: "Done." }], Look: [{ text: "In the new one." }] };
    const { skein } = await withParts(script, { dir: newFolder(), store });
    const session = skein.session({ sessionKey: a });
    await session.send("First").result;
    const data = pngOf(200, 200, 300_000).toString("base64");
    const turn = session.send("Look", { images: [{ data, mimeType: "image/png" }] });
    await reached.promise;
    await session.reset();
    finish.resolve();
    expect((await turn.result).reply).toBe("In the new one.");
    const { messages } = await session.history();
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  });

  test("[OST4] a removed session ends its runs, and can be restored from the trash", async () => {
    const { tool } = gate();
    const { family, store } = await onOwnStore({ First: [call("gate")] }, { agent: { tools: [tool] } });
    const { skein } = family;
    const turn = skein.session({ sessionId: "trip" }).send("First");
    turn.result.catch(() => undefined);
    await family.until("run.tool");
    expect(await skein.store.sessions.remove({}, "trip")).toBe(true);
    expect((await skein.ended(turn.runId)).state).toBe("aborted");
    expect(await store.sessions.get({}, "trip")).toBeNull();
    await skein.store.sessions.restore({}, "trip");
    await skein.store.sessions.patch({}, "trip", { archived: true });
    expect((await skein.sessions.list({})).sessions).toEqual([]);
    expect((await skein.sessions.list({ archived: true })).sessions).toHaveLength(1);
  });

  test("[OST4] a session is compacted in the store", async () => {
    const long = "word ".repeat(4000);
    const { family, store } = await onOwnStore(
      {
        Tell: (_, index) => ({ text: index < 4 ? long : "## Goal\nTell stories." }),
      },
      { settings: { compaction: { mode: "default" } } },
    );
    const session = family.skein.session({ sessionId: "trip" });
    for (const _ of [1, 2, 3, 4]) await session.send(`Tell me ${long}`).result;
    expect(await session.compact()).toMatchObject({ done: true });
    const page = await store.sessions.page({}, "trip", { along: "branch", limit: 100 });
    expect(page?.entries.map(({ type }) => type)).toContain("compaction");
  });

  test("[OST5] a killed turn continues after a restart, and nothing is written twice", async () => {
    const folder = newFolder();
    const script = fileURLToPath(new URL("../support/own-store-child.ts", import.meta.url));
    const quiet = { SKEIN_LOGGING__LEVEL: "silent" };
    expect(await new Started([script, folder], quiet).end()).toBe("SIGKILL");
    const again = new Started([script, folder], quiet);
    expect(await again.end()).toBe(0);
    expect(JSON.parse(again.out)).toMatchObject({ reply: "Ordered." });
    const page = await ownStore(join(folder, "mine.db")).sessions.page(
      { userId: "ann" },
      (await ownStore(join(folder, "mine.db")).sessions.list({ userId: "ann" }, {})).sessions[0]?.sessionId ??
        "",
      { along: "all", limit: 100 },
    );
    const roles = page?.entries.flatMap((entry) => (entry.type === "message" ? [entry.message.role] : []));
    expect(roles).toEqual(["user", "assistant", "toolResult", "assistant"]);
  });

  test("[OST6] redacted text is gone from the store and from work.db", async () => {
    const secret = "the magic word is Zwetschgenkuchen4711";
    const { dir, family } = await onOwnStore({ Tell: [{ text: secret }] });
    const { skein } = family;
    const { runId } = skein.session({ sessionId: "trip" }).send("Tell me");
    await skein.ended(runId).catch(() => undefined);
    await family.until("run.ended");
    const page = await skein.store.sessions.page({}, "trip", { along: "branch", limit: 10 });
    const entryId = page?.entries.findLast(({ type }) => type === "message")?.id ?? "";
    await skein.store.sessions.redact({}, "trip", [entryId]);
    expect(JSON.stringify(await skein.runs.get(runId))).not.toContain("Zwetschgenkuchen");
    await skein.close();
    expect(readFileSync(join(dir, "work.db")).includes("Zwetschgenkuchen")).toBe(false);
  });

  test("[OST6] a purged session and a purged user leave no runs", async () => {
    const { family, store } = await onOwnStore({ Hello: () => ({ text: "Good morning." }) });
    const { skein } = family;
    const first = skein.session({ sessionId: "trip" }).send("Hello");
    await first.result;
    await skein.store.sessions.remove({}, "trip");
    expect(await skein.store.sessions.purge({}, "trip")).toBe(true);
    expect(await skein.runs.get(first.runId)).toBeNull();
    await skein.session({ userId: "ann" }).send("Hello").result;
    expect(await skein.store.purgeUser("ann")).toEqual({ sessions: 1 });
    expect(await skein.runs.list({}, "ann")).toEqual([]);
    expect((await store.sessions.list({ userId: "ann" }, {})).sessions).toEqual([]);
  });

  test("[OST7] a custom store requires a folder for its runs, or memory", async () => {
    const store = ownStore();
    await expect(createSkein({ store, agents, env: {}, quiet: true, config: {} })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("dir"),
    });
    const family = await withParts({ Hello: [{ text: "Good morning." }] }, { store, memory: true });
    expect((await family.skein.session().send("Hello").result).reply).toBe("Good morning.");
  });

  test("[OST8] a folder contains the runs of only one kind of store", async () => {
    const files = newFolder();
    await (await createStore({ dir: files })).close();
    const options = { agents, env: {}, quiet: true, config: null };
    await expect(createSkein({ ...options, dir: files, store: ownStore() })).rejects.toMatchObject({
      code: "conflict",
    });
    const { dir, family } = await onOwnStore({});
    await family.skein.close();
    await expect(createSkein({ ...options, dir })).rejects.toMatchObject({ code: "conflict" });
    await expect(createStore({ dir })).rejects.toMatchObject({ code: "conflict" });
  });

  test("[FS18] a work.db with external stores of a newer Skein is refused and left unchanged", async () => {
    const { dir, store, family } = await onOwnStore({});
    await family.skein.close();
    const version = "SELECT value FROM facts WHERE name = 'schema.external'";
    const db = new DatabaseSync(join(dir, "work.db"), { timeout: 30_000 });
    db.exec("UPDATE facts SET value = '99' WHERE name = 'schema.external'");
    await expect(createSkein({ dir, store, agents, config: null })).rejects.toMatchObject({
      code: "read_only",
    });
    expect(db.prepare(version).get()?.value).toBe("99");
    db.close();
  });

  test("[OST4] a gateway is mounted on it: lists, exports and blobs", async () => {
    const { dir, family } = await onOwnStore({ Hello: [{ text: "Good morning." }] });
    await family.skein.session({ sessionId: "trip" }).send("Hello").result;
    const gateway = await family.skein.mount();
    const server = createServer(gateway.handler).on("upgrade", gateway.upgrade).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const token = readFileSync(join(dir, "token"), "utf8").trim();
    const client = await connect(url, { token });
    try {
      const { sessions } = await client.call("sessions.list", {});
      expect(sessions.map(({ sessionId }) => sessionId)).toEqual(["trip"]);
      const exported = await client.call("sessions.export", {
        key: "agent:main:session:trip",
        format: "jsonl",
      });
      expect(JSON.stringify(exported)).toContain("Good morning.");
    } finally {
      await client.close();
      server.closeAllConnections();
      server.close();
    }
  });
});

describe("a store whose response is lost", () => {
  /**
   * A store that fails once, in the first call for which `fails` returns `true`. `done` means that the method has
   * already been carried out.
   */
  function failingOnce(store: Store, fails: (method: string, done: boolean) => boolean): Store {
    let isBroken = true;
    const failIf = (method: string, done: boolean) => {
      if (!isBroken || !fails(method, done)) return;
      isBroken = false;
      throw new Error("connection lost");
    };
    const sessions = new Proxy(store.sessions, {
      get: (target, name) => {
        const act = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          failIf(String(name), false);
          const result = await act(...args);
          failIf(String(name), true);
          return result;
        };
      },
    });
    return {
      ...store,
      search: store.search,
      state: store.state,
      blobs: store.blobs,
      watch: store.watch,
      sessions,
      purgeUser: (userId) => store.purgeUser(userId),
      close: () => store.close(),
    };
  }

  /** The store carries out the call, but the connection breaks before the response arrives. */
  function failingAfter(store: Store, wanted: "reset" | "remove"): Store {
    return failingOnce(store, (method, done) => method === wanted && done);
  }

  test("[OST10] a reset that took place still moves queued input", async () => {
    const dir = newFolder();
    const store = failingAfter(ownStore(), "reset");
    const waiting = await withParts({}, { dir, store, workers: false });
    const session = waiting.skein.session({ sessionId: "trip" });
    const { runId } = await session.accept("Hello");
    await expect(session.reset()).rejects.toThrow("connection lost");
    await waiting.skein.close();
    const family = await withParts({ Hello: [{ text: "Good morning." }] }, { dir, store });
    expect((await family.skein.ended(runId)).outcome?.reply).toBe("Good morning.");
    expect((await family.skein.session({ sessionId: "trip" }).history()).messages).toHaveLength(2);
  });

  test("[OST10] a removal that took place still ends the runs", async () => {
    const dir = newFolder();
    const store = failingAfter(ownStore(), "remove");
    const waiting = await withParts({}, { dir, store, workers: false });
    const { runId } = await waiting.skein.session({ sessionId: "trip" }).accept("Hello");
    await expect(waiting.skein.store.sessions.remove({}, "trip")).rejects.toThrow("connection lost");
    await waiting.skein.close();
    const family = await withParts({}, { dir, store });
    expect((await family.skein.ended(runId)).state).toBe("aborted");
  });

  /** Spawns a child. The store creates it, but the response is lost. */
  async function spawnWithLostAnswer(dir: string) {
    let creations = 0;
    const store = failingOnce(ownStore(), (method, done) => {
      if (method === "create" && done) creations += 1;
      return creations === 2;
    });
    const spawning = [call("sessions_spawn", { task: "Count" }), { text: "That failed." }];
    const family = await withParts(
      { "Find out": spawning, Hello: [{ text: "Good morning." }] },
      { dir, store },
    );
    await family.skein.session({ sessionKey: a }).send("Find out").result;
    const { sessions } = await store.sessions.list({}, {});
    const child = sessions.find(({ key }) => key !== a);
    if (child === undefined) throw new Error("the child was not created");
    return { store, family, child };
  }

  test("[OST10] a session used after the response to its creation was lost is not removed", async () => {
    const dir = newFolder();
    const { store, family, child } = await spawnWithLostAnswer(dir);
    await family.skein.session({ sessionKey: child.key }).send("Hello").result;
    await family.skein.close();
    const again = await withParts({}, { dir, store });
    const { messages } = await again.skein.session({ sessionKey: child.key }).history();
    expect(messages).toHaveLength(2);
    expect((await store.sessions.get({}, child.sessionId))?.uid).toBe(child.uid);
  });

  test("[OST10] a session that only has entries is not removed either", async () => {
    const dir = newFolder();
    const { store, family, child } = await spawnWithLostAnswer(dir);
    const draft = { type: "message", message: { role: "user", content: "Hello" } } as const;
    await store.sessions.append({}, child.sessionId, [{ draft }]);
    await family.skein.close();
    await withParts({}, { dir, store });
    expect((await store.sessions.get({}, child.sessionId))?.uid).toBe(child.uid);
  });

  test("[OST10] an unused session is removed", async () => {
    const dir = newFolder();
    const { store, family, child } = await spawnWithLostAnswer(dir);
    await family.skein.close();
    await withParts({}, { dir, store });
    expect(await store.sessions.get({}, child.sessionId)).toBeNull();
  });

  test("[OST10] a reset is completed later if the store could not be read right after it", async () => {
    const dir = newFolder();
    let wasReset = false;
    const store = failingOnce(ownStore(), (method, done) => {
      wasReset ||= method === "reset" && done;
      return wasReset && method === "get";
    });
    const waiting = await withParts({}, { dir, store, workers: false });
    const session = waiting.skein.session({ sessionId: "trip" });
    const { runId } = await session.accept("Hello");
    await expect(session.reset()).rejects.toThrow("connection lost");
    // The process that made the change is still alive.
    const family = await withParts({ Hello: [{ text: "Good morning." }] }, { dir, store });
    expect((await family.skein.ended(runId)).outcome?.reply).toBe("Good morning.");
    expect((await family.skein.session({ sessionId: "trip" }).history()).messages).toHaveLength(2);
  });
});

/** Returns the same store, which now records the names of its session calls. */
function countCalls(store: Store): { readonly store: Store; readonly calls: string[] } {
  const calls: string[] = [];
  const sessions = new Proxy(store.sessions, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => {
        calls.push(String(name));
        return Reflect.apply(method, target, args);
      };
    },
  });
  const { search, state, blobs, watch } = store;
  const purgeUser = (userId: string) => store.purgeUser(userId);
  return {
    store: { sessions, search, state, blobs, watch, purgeUser, close: () => store.close() },
    calls,
  };
}

test.each(["agent:main:session:trip", "main", "session:trip"])(
  "a message to %s looks up its session once before it is accepted",
  async (sessionKey) => {
    const dir = newFolder();
    const { store, calls } = countCalls(ownStore());
    const skein = await createSkein({ dir, store, agents, config: null, quiet: true, workers: false });
    const gateway = await mountOverHttp(skein, dir);
    try {
      for (const key of ["agent:main:session:trip", "main"])
        await gateway.call("chat.send", { sessionKey: key, message: "Hello", idempotencyKey: key });
      calls.length = 0;
      await gateway.call("chat.send", { sessionKey, message: "Hello again", idempotencyKey: "again" });
      expect(calls).toEqual(["find"]);
    } finally {
      await gateway.close();
      await skein.close();
    }
  },
);
