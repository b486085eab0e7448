import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Scope, Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { SessionTree } from "../../src/index.ts";
import { openPostgresStore, postgresFor } from "../support/postgres.ts";
import { repetitions } from "../support/repetitions.ts";
import { allEntries, said } from "../support/store-calls.ts";

const ann: Scope = { userId: "ann", agentId: "main" };
const bob: Scope = { userId: "bob", agentId: "main" };
/** Both users have sessions with these names. */
const names = ["a", "b", "c"];
const marker = "annsecret";
const embedding = { model: "m/other", vector: [1, 2] };

/** A call by Bob with names, entries and blobs that Ann has as well. */
interface Attempt {
  readonly store: Store;
  readonly name: string;
  readonly other: string;
  /** One of Ann's entries, blobs and uids. */
  readonly entryId: string;
  readonly sha256: string;
  /** Ann's entries, as the store names them for embeddings. */
  readonly places: readonly string[];
  readonly at: number;
}

const initOf = (name: string) => ({ key: `agent:main:session:${name}`, sessionId: name, cwd: "/w" });
const reachOf = (name: string) => ({ treeOf: `agent:main:session:${name}`, agentIds: "all" as const });

type Method = (attempt: Attempt) => unknown;

/** Every method of a store, by port. The compiler notices a missing one. */
const methods = {
  sessions: {
    create: ({ store, name }) => store.sessions.create(bob, initOf(name)),
    get: ({ store, name }) => store.sessions.get(bob, name),
    find: ({ store, name }) => store.sessions.find({ userId: "bob" }, { by: "sessionId", sessionId: name }),
    list: ({ store, name }) => store.sessions.list(bob, { limit: 100, reach: reachOf(name) }),
    count: ({ store }) => store.sessions.count({ userId: "bob" }, {}),
    agentIds: ({ store }) => store.sessions.agentIds({ userId: "bob" }),
    patch: ({ store, name, at }) => store.sessions.patch(bob, name, { label: `label ${at % 2}` }),
    append: ({ store, name, entryId }) =>
      store.sessions.append(bob, name, [{ draft: said("bob was here"), id: entryId }]),
    branch: ({ store, name, entryId }) => store.sessions.branch(bob, name, entryId),
    fork: ({ store, name, other, entryId, at }) =>
      store.sessions.fork(bob, name, at % 2 === 0 ? entryId : null, {
        key: `agent:main:session:fork-${other}-${at}`,
        cwd: "/w",
      }),
    context: ({ store, name }) => store.sessions.context(bob, name),
    entry: ({ store, name, entryId }) => store.sessions.entry(bob, name, entryId),
    page: ({ store, name, entryId }) =>
      store.sessions.page(bob, name, { along: "all", limit: 10, before: entryId }),
    prewarm: ({ store, name }) => store.sessions.prewarm(bob, name),
    remove: ({ store, name }) => store.sessions.remove(bob, name),
    restore: ({ store, name }) => store.sessions.restore(bob, name),
    trashed: ({ store }) => store.sessions.trashed({ userId: "bob" }),
    purge: ({ store, name }) => store.sessions.purge(bob, name),
    adopt: ({ store, other, at }) =>
      store.sessions.adopt(
        bob,
        { key: `agent:main:session:adopted-${other}-${at}`, cwd: "/w" },
        SessionTree.create({ cwd: "/w" }),
      ),
    reset: ({ store, name }) => store.sessions.reset(bob, name),
    redact: ({ store, name, entryId }) => store.sessions.redact(bob, name, [entryId]),
  },
  search: {
    search: ({ store }) => store.search.search({ userId: "bob" }, { text: marker }),
    nearest: ({ store }) => store.search.nearest?.({ userId: "bob" }, { text: marker }, embedding) ?? null,
    unembedded: ({ store }) => store.search.unembedded?.({ userId: "bob" }, "m/new", { limit: 100 }) ?? null,
    // Bob names Ann's entries, too.
    embed: async ({ store, places }) =>
      store.search.embed?.(
        { userId: "bob" },
        embedding.model,
        places.map((place) => ({ place, vector: [0, -1] })),
      ),
  },
  state: {
    get: ({ store, name }) => store.state.get(bob, name, "k"),
    set: ({ store, name }) => store.state.set(bob, name, "k", "bob"),
    delete: ({ store, name }) => store.state.delete(bob, name, "k"),
    keys: ({ store, name }) => store.state.keys(bob, name),
  },
  blobs: {
    put: ({ store }) => store.blobs.put(bob, Buffer.from("bob")),
    get: ({ store, sha256 }) => store.blobs.get(bob, sha256),
  },
  store: { purgeUser: ({ store }) => store.purgeUser("bob") },
} satisfies { [Port in "sessions" | "search" | "state" | "blobs"]: Record<keyof Store[Port], Method> } & {
  readonly store: Record<"purgeUser", Method>;
};

const all = Object.entries(methods).flatMap(([port, table]) =>
  Object.entries(table as Record<string, Method>).map(([name, call]) => ({ name: `${port}.${name}`, call })),
);

async function plant(store: Store, scope: Scope, text: string): Promise<string> {
  for (const name of names) {
    await store.sessions.create(scope, initOf(name));
    const draft = said(`${text} in ${name}`);
    await store.sessions.append(scope, name, [{ draft, id: `${scope.userId}-${name}` }, { draft }]);
    await store.state.set(scope, name, "k", text);
  }
  await store.sessions.remove(scope, "c");
  return store.blobs.put(scope, Buffer.from(text));
}

/** Gives every entry an embedding, the first one the vector that is searched for. */
async function embedAll(store: Store, scope: Scope): Promise<string[]> {
  const found = (await store.search.unembedded?.(scope, embedding.model, { limit: 100 })) ?? [];
  const places = found.map(({ place }) => place);
  const vectors = places.map((place, at) => ({ place, vector: at === 0 ? [1, 2] : [2, 1] }));
  await store.search.embed?.(scope, embedding.model, vectors);
  return places;
}

/** Returns everything that Ann can see. */
async function readAll(store: Store, sha256: string): Promise<unknown> {
  const live = names.slice(0, 2);
  return {
    sessions: await store.sessions.list({ userId: "ann" }, { limit: 100 }),
    trashed: await store.sessions.trashed({ userId: "ann" }),
    entries: await Promise.all(live.map((name) => allEntries(store, ann, name))),
    contexts: await Promise.all(live.map((name) => store.sessions.context(ann, name))),
    state: await Promise.all(live.map((name) => store.state.get(ann, name, "k"))),
    hits: (await store.search.search({ userId: "ann" }, { text: marker })).hits,
    near: await store.search.nearest?.({ userId: "ann" }, { text: marker, limit: 1 }, embedding),
    unembedded: await store.search.unembedded?.({ userId: "ann" }, embedding.model, { limit: 100 }),
    blob: Buffer.from((await store.blobs.get(ann, sha256)) ?? []).toString(),
  };
}

/** What Bob receives, including errors. Bytes are shown as text. */
async function outcomeOf(attempt: Attempt, call: Method): Promise<string> {
  try {
    const result = await call(attempt);
    return result instanceof Uint8Array ? Buffer.from(result).toString() : JSON.stringify(result ?? null);
  } catch (error) {
    return String(error);
  }
}

async function checkTwoUsers(open: () => Promise<{ store: Store; close(): Promise<void> }>): Promise<void> {
  const step = fc.record({
    method: fc.nat(all.length - 1),
    name: fc.nat(names.length - 1),
    other: fc.nat(names.length - 1),
    at: fc.nat(1000),
  });
  const steps = fc.array(step, { minLength: 10, maxLength: 40 });
  const property = fc.asyncProperty(steps, async (chosen) => {
    const { store, close } = await open();
    try {
      const sha256 = await plant(store, ann, marker);
      await plant(store, bob, "bobtext");
      const places = await embedAll(store, ann);
      await embedAll(store, bob);
      const before = await readAll(store, sha256);
      for (const { method, name, other, at } of chosen) {
        const { call, name: methodName } = all[method] as (typeof all)[number];
        const [nameGiven, otherGiven] = [names[name] as string, names[other] as string];
        const attempt = {
          store,
          name: nameGiven,
          other: otherGiven,
          entryId: `ann-${otherGiven}`,
          sha256,
          places,
          at,
        };
        expect(`${methodName}: ${await outcomeOf(attempt, call)}`).not.toContain(marker);
      }
      expect(await readAll(store, sha256)).toEqual(before);
    } finally {
      await close();
    }
  });
  await fc.assert(property, { numRuns: Math.ceil(repetitions.propertyCases / 10) });
}

describe("whatever one user calls, another user's data is neither visible nor changed", () => {
  test("in memory", () =>
    checkTwoUsers(async () => {
      const store = await createStore({ memory: true });
      return { store, close: () => store.close() };
    }));

  test("on PostgreSQL, with the role that serves clients", async (context) => {
    const database = await (await postgresFor(context)).createDatabase();
    const store = await openPostgresStore({ url: database.url(), maxConnections: 2 });
    await checkTwoUsers(async () => ({
      store,
      close: async () => {
        for (const userId of ["ann", "bob"]) await store.purgeUser(userId);
      },
    }));
    await store.close();
    await database.drop();
  });
});
