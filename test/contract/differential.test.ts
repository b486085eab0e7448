import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import type { ContextOptions } from "../../src/core/context.ts";
import type { EntryRange, Scope, SessionReach, Store } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { SessionTree, SkeinError } from "../../src/index.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { openPostgresStore, postgresFor } from "../support/postgres.ts";
import { repetitions } from "../support/repetitions.ts";
import { SimStore } from "../support/sim-store.ts";
import { answered, said } from "../support/store-calls.ts";

const users: Scope[] = [{ userId: "alice", agentId: "main" }, { agentId: "main" }];
const names = ["a", "B", "c"];

/** A change or a query. Everything that varies is a number. */
const step = fc.record({
  do: fc.constantFrom(
    "create",
    "say",
    "say",
    "say",
    "many",
    "label",
    "compact",
    "branch",
    "beside",
    "fork",
    "answer",
    "model",
    "name",
    "patch",
    "remove",
    "restore",
    "purge",
    "trash",
    "reset",
    "redact",
    "adopt",
    "page",
    "list",
    "search",
    "lineage",
    "child",
    "child",
    "reached",
    "reached",
    "sought",
    "state",
    "reopen",
  ),
  user: fc.nat(1),
  name: fc.nat(2),
  at: fc.nat(),
  to: fc.nat(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function entryIds(store: Store, scope: Scope, sessionId: string): Promise<string[]> {
  const page = await store.sessions.page(scope, sessionId, { along: "all", limit: 1000 });
  return (page?.entries ?? []).map((entry) => entry.id);
}

/** A reach that consists of trees, agents or both and can start at any session. */
function reachOf({ name, at, to }: Step): SessionReach {
  const agents = [[], ["other"], ["main"], ["main", "other"], [], "all"] as const;
  const itself = at % 5 === 0 ? { descendants: false } : {};
  const treeOf = to % 4 === 0 ? null : `agent:main:session:${names[name]}`;
  return { treeOf, agentIds: agents[to % 6] ?? [], ...itself };
}

/**
 * Runs a step and returns everything observable about it. IDs are derived from the step's number so that both stores
 * agree.
 */
async function perform(store: Store, step: Step, number: number): Promise<unknown> {
  const { do: act, user, name, at, to } = step;
  const scope = users[user] as Scope;
  const { agentId: _agentId, ...wide } = scope;
  const sessionId = names[name] as string;
  const { sessions } = store;
  const ids = await entryIds(store, scope, sessionId);
  const pick = (which: number) => ids[which % Math.max(1, ids.length)] ?? "nowhere";
  const append = (...drafts: EntryDraft[]) =>
    sessions.append(
      scope,
      sessionId,
      drafts.map((draft, index) => ({ draft, id: `n${number}-${index}` })),
    );
  const key = `agent:main:session:${sessionId}`;
  switch (act) {
    case "create":
      return sessions.create(scope, {
        key,
        sessionId,
        cwd: "/w",
        meta: at % 2 === 0 ? {} : { label: `l${to % 2}` },
      });
    case "say":
      return append(said(`word${at % 5} text`));
    case "many":
      return append(...Array.from({ length: at % 9 }, (_, index) => said(`word${index} many`)));
    case "label":
      return append({ type: "label", targetId: pick(at), label: to % 2 === 0 ? "x" : "" });
    case "compact":
      return append({ type: "compaction", summary: "S", firstKeptEntryId: pick(at), tokensBefore: 1 });
    case "branch":
      return sessions.branch(scope, sessionId, at % 7 === 0 ? null : pick(at));
    case "beside":
      return sessions.append(scope, sessionId, [{ draft: said("word1 beside"), id: `n${number}-0` }], {
        parentId: at % 7 === 0 ? null : pick(at),
      });
    case "model":
      return append({ type: "model_change", provider: "p", modelId: `m${at % 3}` });
    case "name":
      return append({ type: "session_info", name: at % 2 === 0 ? `Name ${at % 5}` : "" });
    case "answer":
      return append(answered(`word${at % 5} answer`));
    case "fork": {
      const target = to % 2 === 0 ? (names[to % 3] as string) : `fork${number}`;
      return sessions.fork(scope, sessionId, pick(at), {
        key: `agent:main:session:${target}`,
        sessionId: target,
        cwd: "/w",
      });
    }
    case "patch":
      return sessions.patch(
        scope,
        sessionId,
        at % 3 === 0 ? { label: null } : { label: `l${to % 2}`, archived: at % 2 === 0 },
      );
    case "purge":
      return sessions.purge(scope, sessionId);
    case "trash": {
      const found = await sessions.trashed(scope);
      return found.map(({ uid: _uid, bytes: _bytes, ...rest }) => rest);
    }
    case "reset":
      return sessions.reset(scope, sessionId, to % 2 === 0 ? {} : { sessionId: `reset${number}` });
    case "redact": {
      const { sessions: changed, mayRepeat } = await sessions.redact(scope, sessionId, [pick(at)]);
      return { changed: changed.map((each) => JSON.stringify(each)).toSorted(), mayRepeat: mayRepeat.length };
    }
    case "adopt": {
      const tree = SessionTree.create(
        { cwd: "/elsewhere", id: "theirs" },
        { clock: { now: () => at % 1e6 } },
      );
      tree.append(said("word1 adopted"), { id: `n${number}-0` });
      if (to % 2 === 0) tree.append({ type: "session_info", name: "Theirs" }, { id: `n${number}-1` });
      const adopted = `adopted${number}`;
      return sessions.adopt(
        scope,
        { key: `agent:main:session:${adopted}`, sessionId: adopted, cwd: "/w" },
        tree,
      );
    }
    case "remove":
      return sessions.remove(scope, sessionId);
    case "restore":
      return sessions.restore(scope, sessionId);
    case "page": {
      const ends = [{}, { before: pick(at) }, { after: pick(to) }, { before: pick(at), after: pick(to) }];
      const range: EntryRange = {
        along: at % 2 === 0 ? "branch" : "all",
        limit: 1 + (to % 6),
        ...ends[at % 4],
      };
      return sessions.page(scope, sessionId, range);
    }
    case "list":
      return sessions.list(scope, { ...(at % 2 === 0 ? { limit: 1 } : {}), archived: to % 2 === 0 });
    case "search": {
      const { hits } = await store.search.search(scope, { text: `word${at % 5}`, limit: 50 });
      return hits.map((hit) => `${hit.sessionId} ${hit.entryId} ${hit.snippet}`).toSorted();
    }
    case "lineage":
      return sessions.patch(scope, sessionId, { spawnedBy: `agent:main:session:${names[to % 3]}` });
    case "child":
      return sessions.create(wide, {
        key: `agent:other:session:child${at % 4}`,
        sessionId: `child${at % 4}`,
        cwd: "/w",
        meta: {
          spawnedBy: to % 3 === 0 ? `agent:other:session:child${to % 4}` : key,
          archived: to % 5 === 0,
        },
      });
    case "reached": {
      const query = { reach: reachOf(step), archived: at % 3 === 0, ...(at % 2 === 0 ? { limit: 2 } : {}) };
      const asked = at % 4 < 3 ? wide : scope;
      const page = await sessions.list(asked, query);
      const rest =
        page.nextCursor === null ? null : await sessions.list(asked, { ...query, cursor: page.nextCursor });
      return [page, rest, await sessions.count(asked, query), await sessions.agentIds(asked)];
    }
    case "sought": {
      const query = { text: `word${at % 5}`, limit: 50, reach: reachOf(step) };
      const { hits } = await store.search.search(wide, query);
      return hits.map((hit) => `${hit.sessionId} ${hit.entryId}`).toSorted();
    }
    case "state":
      return store.state.set(scope, sessionId, "k", number, at % 3 === 0 ? { ifVersion: to % 3 } : {});
    default:
      return null;
  }
}

/** Waits until the index is up to date. On a busy machine, a list might not wait for the whole index. */
async function caughtUp(store: Store): Promise<Store> {
  for (let tries = 0; tries < 100; tries++) {
    const { behind } = await store.sessions.list({}, { limit: 1 });
    if (behind === 0) return store;
  }
  throw new Error("the index stays behind");
}

/**
 * Returns the observable result without expected differences, such as uids and generated IDs of bookkeeping entries.
 */
function comparable(value: unknown): unknown {
  const known = new Map<string, string>();
  const text = JSON.stringify(value, (field, each) =>
    ["uid", "nextCursor", "bytes", "parentSession"].includes(field) ? undefined : each,
  );
  return text?.replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}/g, (id) => {
    if (!known.has(id)) known.set(id, `made-${known.size}`);
    return known.get(id) as string;
  });
}

async function outcome(act: () => Promise<unknown>): Promise<unknown> {
  try {
    return comparable(await act());
  } catch (error) {
    if (error instanceof SkeinError) return { refused: error.code };
    throw error;
  }
}

/** A store that is compared with the memory store. */
interface ComparedStore {
  open(): Promise<Store>;
  dispose(): Promise<void>;
}

/** Runs the steps on both stores and compares everything observable after each step. */
async function compare(
  steps: readonly Step[],
  compared: (clock: Clock) => Promise<ComparedStore>,
): Promise<void> {
  let time = Date.UTC(2026, 0, 1);
  const clock = { now: () => time };
  const { open, dispose } = await compared(clock);
  const memory = createMemoryStore({ clock });
  let store = await open();
  const begin = users.flatMap((_, user) =>
    names.map((__, name): Step => ({ do: "create", user, name, at: 0, to: 0 })),
  );
  for (const [number, each] of [...begin, ...steps].entries()) {
    time += 1000;
    if (each.do === "reopen") {
      await store.close();
      store = await open();
    }
    const expected = await outcome(() => perform(memory, each, number));
    const found = await outcome(async () => perform(await caughtUp(store), each, number));
    expect({ step: each, found }).toEqual({ step: each, found: expected });
  }
  for (const scope of users) {
    for (const name of names) {
      for (const ask of asked(scope, name))
        expect(await outcome(async () => ask(await caughtUp(store)))).toEqual(
          await outcome(() => ask(memory)),
        );
    }
  }
  await store.close();
  await dispose();
}

/** What is compared at the end, for each session. */
function asked(scope: Scope, name: string): ((store: Store) => Promise<unknown>)[] {
  const context = (store: Store, options?: ContextOptions) =>
    store.sessions.context(scope, name, options).then((found) => found && { ...found, diagnostics: [] });
  return [
    (store) => store.sessions.get(scope, name),
    (store) => context(store),
    (store) => context(store, { byteBudget: 500 }),
    (store) => store.sessions.page(scope, name, { along: "branch", limit: 1000 }),
    (store) => store.sessions.list(scope, {}),
    (store) => store.state.get(scope, name, "k"),
  ];
}

const steps = fc.array(step, { maxLength: 40 });

describe("for any operations, also after a reopen, the same results as the memory store", () => {
  const runs = repetitions.storeComparisons;

  test(
    "from the files store",
    async () => {
      const sizes = fc.constantFrom(300, 1000, 100_000);
      const property = fc.asyncProperty(steps, sizes, (each, tailBytes) =>
        compare(each, async (clock) => {
          const sim = new SimStore();
          const { disk, databases } = sim;
          const options = { root: "/store", databases, disk, durability: "os", clock, tailBytes } as const;
          return { open: () => openFilesStore(options), dispose: () => sim.dispose() };
        }),
      );
      await fc.assert(property, { numRuns: runs });
    },
    Math.max(300_000, runs * 2000),
  );

  test("from the PostgreSQL store", async (context) => {
    const server = await postgresFor(context);
    const property = fc.asyncProperty(steps, (each) =>
      compare(each, async (clock) => {
        const database = await server.createDatabase();
        return { open: () => openPostgresStore({ url: database.url(), clock }), dispose: database.drop };
      }),
    );
    await fc.assert(property, { numRuns: Math.ceil(runs / 20) });
  });
});
