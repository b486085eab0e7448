import type { EntryPage, SessionRecord, SessionStore, Store } from "../store/contract.ts";

/** A store with a deliberate defect that the kit must detect. */
export interface Saboteur {
  readonly name: string;
  /** The rule that must detect it. */
  readonly breaks: string;
  wrap(store: Store): Store;
}

/** Replaces some of the methods of a store's sessions. */
function withSessions(store: Store, replace: (sessions: SessionStore) => Partial<SessionStore>): Store {
  const { sessions } = store;
  const replaced = replace(sessions);
  const altered = new Proxy(sessions, {
    get: (target, name) => Reflect.get(replaced, name) ?? Reflect.get(target, name, target),
  });
  return { ...store, sessions: altered };
}

const anyone =
  (sessions: SessionStore, users: readonly (string | undefined)[]) => async (sessionId: string) => {
    for (const userId of users) {
      const found = await sessions.get(userId === undefined ? {} : { userId }, sessionId);
      if (found !== null) return found;
    }
    return null;
  };

/**
 * Deliberately broken stores. The kit must detect each store by the rule that it breaks.
 *
 * @example
 * ```ts
 * import { saboteurs, storeConformance } from "skein/conformance";
 * import { createStore } from "skein/store";
 * for (const { wrap } of saboteurs) {
 *   const create = async () => ({ store: wrap(await createStore({ memory: true })) });
 *   storeConformance({ create, capabilities: { reopen: false, powerCut: false } });
 * }
 * ```
 */
export const saboteurs: readonly Saboteur[] = [
  {
    name: "remove does nothing",
    breaks: "ST15",
    wrap: (store) => withSessions(store, () => ({ remove: async () => true })),
  },
  {
    name: "remove deletes permanently",
    breaks: "ST15",
    wrap: (store) =>
      withSessions(store, (sessions) => ({ restore: (scope) => sessions.restore(scope, "no-such-session") })),
  },
  {
    name: "a label is never rejected",
    breaks: "ST2",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        create: async (scope, init) => {
          const { label: _label, ...meta } = init.meta ?? {};
          const made = await sessions.create(scope, { ...init, meta });
          return { ...made, meta: init.meta ?? {} };
        },
      })),
  },
  {
    name: "session IDs are case-sensitive",
    breaks: "ST1",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        get: async (scope, sessionId) => {
          const found = await sessions.get(scope, sessionId);
          return found?.sessionId === sessionId ? found : null;
        },
      })),
  },
  {
    name: "the user is ignored when reading",
    breaks: "ST3",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        page: async (scope, sessionId, range) => {
          const found = await anyone(sessions, ["alice", "bob", undefined])(sessionId);
          return sessions.page(found?.userId ? { userId: found.userId } : scope, sessionId, range);
        },
      })),
  },
  {
    name: "the agent of a scope is ignored",
    breaks: "ST4",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        get: ({ userId }, sessionId) => sessions.get(userId === undefined ? {} : { userId }, sessionId),
      })),
  },
  {
    name: "a batch is always attached to the tip",
    breaks: "ST8",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        append: (scope, sessionId, items, { parentId: _parent, ...options } = {}) =>
          sessions.append(scope, sessionId, items, options),
      })),
  },
  {
    name: "a batch is written item by item",
    breaks: "ST5",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        append: async (scope, sessionId, items, options) => {
          let result = await sessions.append(scope, sessionId, [], options);
          for (const item of items) {
            const { entries, leafId } = await sessions.append(scope, sessionId, [item]);
            result = { entries: [...result.entries, ...entries], leafId };
          }
          return result;
        },
      })),
  },
  {
    name: "an entry with the same ID is written again under a new one",
    breaks: "ST6",
    wrap: (store) => {
      const used = new Set<string>();
      return withSessions(store, (sessions) => ({
        append: (scope, sessionId, items, options) => {
          const fresh = items.map(({ draft, id }) =>
            id === undefined || used.has(`${sessionId} ${id}`) ? { draft } : { draft, id },
          );
          for (const { id } of items) used.add(`${sessionId} ${id}`);
          return sessions.append(scope, sessionId, fresh, options);
        },
      }));
    },
  },
  {
    name: "expectedLeafId is ignored",
    breaks: "ST7",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        append: (scope, sessionId, items, { expectedLeafId: _, ...options } = {}) =>
          sessions.append(scope, sessionId, items, options),
      })),
  },
  {
    name: "the leaf does not move",
    breaks: "ST8",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        branch: async (scope, sessionId) => (await sessions.get(scope, sessionId)) as SessionRecord,
      })),
  },
  {
    name: "the context forgets its first message",
    breaks: "ST9",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        context: async (...args) => {
          const context = await sessions.context(...args);
          return (
            context && {
              ...context,
              messages: context.messages.slice(1),
              entryIds: context.entryIds.slice(1),
            }
          );
        },
      })),
  },
  {
    name: "a page before an entry includes it",
    breaks: "ST10",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        page: async (scope, sessionId, range) => {
          const page = await sessions.page(scope, sessionId, range);
          if (page === null || range.before === undefined) return page;
          const whole = await sessions.page(scope, sessionId, { along: range.along, limit: 1000 });
          return {
            ...page,
            entries: [...page.entries, ...(whole?.entries ?? []).filter(({ id }) => id === range.before)],
          };
        },
      })),
  },
  {
    name: "a fork is the whole session",
    breaks: "ST11",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        fork: async (scope, sessionId, entryId, init) => {
          const source = await sessions.get(scope, sessionId);
          return sessions.fork(scope, sessionId, entryId === null ? null : (source?.leafId ?? null), init);
        },
      })),
  },
  {
    name: "ifVersion is ignored",
    breaks: "ST12",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        patch: (scope, sessionId, changes) => sessions.patch(scope, sessionId, changes),
      })),
  },
  {
    name: "lists are in order of creation",
    breaks: "ST13",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, query) => {
          const page = await sessions.list(scope, query);
          return {
            ...page,
            sessions: page.sessions.toSorted((a, b) => b.createdAt - a.createdAt || (a.uid > b.uid ? -1 : 1)),
          };
        },
      })),
  },
  {
    name: "the cursor is an offset",
    breaks: "ST14",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, { cursor, limit = 100, ...query }) => {
          const from = cursor === undefined || !/^\d+$/.test(cursor) ? 0 : Number(cursor);
          const all = await sessions.list(scope, {
            ...query,
            ...(from === 0 && cursor !== undefined ? { cursor } : {}),
            limit: limit < 1 ? limit : 1000,
          });
          const next = from + limit;
          return {
            ...all,
            sessions: all.sessions.slice(from, next),
            nextCursor: next < all.sessions.length ? String(next) : null,
          };
        },
      })),
  },
  {
    name: "the fence is checked after the write",
    breaks: "ST16",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        append: async (scope, sessionId, items, { fence, ...options } = {}) => {
          const done = await sessions.append(scope, sessionId, items, options);
          if (fence?.() === false) await sessions.append(scope, sessionId, [], { fence });
          return done;
        },
      })),
  },
  {
    name: "a missing session is created implicitly",
    breaks: "ST17",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        append: async (scope, sessionId, items, options) => {
          const there = await sessions.get(scope, sessionId);
          if (there === null)
            await sessions.create(scope, { key: `agent:main:session:${sessionId}`, sessionId, cwd: "/" });
          return sessions.append(scope, sessionId, items, options);
        },
      })),
  },
  {
    name: "text is trimmed",
    breaks: "ST22",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        page: async (...args) => {
          const page = await sessions.page(...args);
          return page && (JSON.parse(JSON.stringify(page).replaceAll("\\u0000", "")) as typeof page);
        },
      })),
  },
  {
    name: "a reset loses the old session",
    breaks: "ST25",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        reset: async (scope, sessionId, options) => {
          const done = await sessions.reset(scope, sessionId, options);
          await sessions.remove(scope, done.old.sessionId);
          return done;
        },
      })),
  },
  {
    name: "redaction leaves the forks alone",
    breaks: "ST27",
    wrap: (store) => {
      const kept = new Map<string, EntryPage | null>();
      return withSessions(store, (sessions) => ({
        redact: async (scope, sessionId, entryIds) => {
          for (const other of (await sessions.list(scope, {})).sessions) {
            if (other.sessionId === sessionId) continue;
            const page = await sessions.page(scope, other.sessionId, { along: "all", limit: 1000 });
            kept.set(other.sessionId, page);
          }
          return sessions.redact(scope, sessionId, entryIds);
        },
        page: async (scope, sessionId, range) =>
          kept.get(sessionId) ?? (await sessions.page(scope, sessionId, range)),
      }));
    },
  },
  {
    name: "purging only hides",
    breaks: "ST28",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        purge: async (scope, sessionId) =>
          (await sessions.trashed(scope)).some((each) => each.sessionId === sessionId),
      })),
  },
  {
    name: "purging a user removes every user",
    breaks: "ST29",
    wrap: (store) => ({
      ...store,
      purgeUser: async (userId) => {
        await store.purgeUser("bob");
        return store.purgeUser(userId);
      },
    }),
  },
  {
    name: "an adopted session gets new IDs",
    breaks: "ST26",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        adopt: async (scope, init, tree) => {
          const made = await sessions.create(scope, init);
          const items = tree.path().map(() => ({ draft: { type: "session_info" as const, name: "?" } }));
          await sessions.append(scope, made.sessionId, items);
          return made;
        },
      })),
  },
  {
    name: "messages between sessions count as input",
    breaks: "ST30",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, query) => {
          const page = await sessions.list(scope, query);
          const count = (each: (typeof page.sessions)[number]) => each.digest.entries;
          return {
            ...page,
            sessions: page.sessions.map((each) => ({
              ...each,
              digest: { ...each.digest, lastInputAt: count(each) },
            })),
          };
        },
      })),
  },
  {
    name: "search uses only the first word",
    breaks: "SR1",
    wrap: (store) => ({
      ...store,
      search: {
        search: async (scope, query) =>
          store.search.search(scope, { ...query, text: query.text.split(" ")[0] ?? "" }),
      },
    }),
  },
  {
    name: "search ranks by words that are hidden from the requester",
    breaks: "SR3",
    wrap: (store) => ({
      ...store,
      search: {
        search: async (scope, { shownText, ...query }) => {
          const found = await store.search.search(scope, query);
          if (shownText === undefined) return found;
          const shown = await store.search.search(scope, { ...query, shownText, limit: 50 });
          return {
            ...found,
            hits: found.hits.flatMap(({ entryId }) => shown.hits.filter((hit) => hit.entryId === entryId)),
          };
        },
      },
    }),
  },
  {
    name: "search puts entries that contain all words last",
    breaks: "SR1",
    wrap: (store) => ({
      ...store,
      search: {
        search: async (scope, query) => {
          const found = await store.search.search(scope, query);
          return { ...found, hits: found.hits.toReversed() };
        },
      },
    }),
  },
  {
    name: "search sees other users",
    breaks: "ST3",
    wrap: (store) => ({
      ...store,
      search: {
        search: async (scope, query) => {
          const own = await store.search.search(scope, query);
          return own.hits.length > 0 ? own : store.search.search({ userId: "alice" }, query);
        },
      },
    }),
  },
  {
    name: "every list is sorted by the last conversation",
    breaks: "ST31",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: (scope, { sort: _sort, ...query }) => sessions.list(scope, query),
      })),
  },
  {
    name: "a reach ends at grandchildren",
    breaks: "RCH1",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, { reach, ...query }) => {
          if (reach === undefined) return sessions.list(scope, query);
          const page = await sessions.list(scope, { ...query, reach });
          const near = ({ key, agentId, meta }: SessionRecord) =>
            [key, meta.spawnedBy].includes(reach.treeOf ?? undefined) || reach.agentIds.includes(agentId);
          return { ...page, sessions: page.sessions.filter(near) };
        },
      })),
  },
  {
    name: "a lineage stays within the scope's agent",
    breaks: "RCH2",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, query) => {
          const { agentId } = scope;
          if (agentId === undefined || query.reach === undefined) return sessions.list(scope, query);
          const page = await sessions.list(scope, query);
          const isOurs = ({ meta }: SessionRecord) => meta.spawnedBy?.startsWith(`agent:${agentId}:`) ?? true;
          return { ...page, sessions: page.sessions.filter(isOurs) };
        },
      })),
  },
  {
    name: "an archived session cuts a lineage",
    breaks: "RCH2",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, query) => {
          const page = await sessions.list(scope, query);
          if (query.reach === undefined) return page;
          const { sessions: away } = await sessions.list(scope, { archived: true });
          const isCut = ({ meta }: SessionRecord) => away.some(({ key }) => key === meta.spawnedBy);
          return { ...page, sessions: page.sessions.filter((each) => !isCut(each)) };
        },
      })),
  },
  {
    name: "a reach is applied after paging",
    breaks: "RCH2",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, { reach, ...query }) => {
          const page = await sessions.list(scope, query);
          if (reach === undefined) return page;
          const { limit: _limit, cursor: _cursor, ...whole } = query;
          const { sessions: reached } = await sessions.list(scope, { ...whole, reach, limit: 1000 });
          const isReached = ({ uid }: SessionRecord) => reached.some((each) => each.uid === uid);
          return { ...page, sessions: page.sessions.filter(isReached) };
        },
      })),
  },
  {
    name: "a reach leads to another user's sessions",
    breaks: "RCH3",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        list: async (scope, query) => {
          const own = await sessions.list(scope, query);
          if (query.reach === undefined) return own;
          const theirs = await sessions.list({ userId: "bob" }, query);
          return { ...own, sessions: [...own.sessions, ...theirs.sessions] };
        },
      })),
  },
  {
    name: "a search applies its reach after its limit",
    breaks: "RCH4",
    wrap: (store) => ({
      ...store,
      search: {
        search: async (scope, { reach, ...query }) => {
          const found = await store.search.search(scope, query);
          if (reach === undefined) return found;
          const { sessions } = await store.sessions.list(scope, { reach, limit: 1000 });
          const isReached = (key: string) => sessions.some((each) => each.key === key);
          return { ...found, hits: found.hits.filter(({ key }) => isReached(key)) };
        },
      },
    }),
  },
  {
    name: "a count includes archived sessions",
    breaks: "RCH5",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        count: async (scope, query) =>
          (await sessions.count(scope, query)) + (await sessions.count(scope, { ...query, archived: true })),
      })),
  },
  {
    name: "a count covers only one page",
    breaks: "RCH5",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        count: async (scope, query) => (await sessions.list(scope, query)).sessions.length,
      })),
  },
  {
    name: "an agent whose sessions are archived is forgotten",
    breaks: "RCH6",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        agentIds: async (scope) => {
          const { sessions: shown } = await sessions.list(scope, { limit: 1000 });
          return [...new Set(shown.map(({ agentId }) => agentId))].toSorted();
        },
      })),
  },
  {
    name: "a reset forgets who spawned the session",
    breaks: "RCH7",
    wrap: (store) =>
      withSessions(store, (sessions) => ({
        reset: async (scope, sessionId, options) => {
          const { old, fresh } = await sessions.reset(scope, sessionId, options);
          const { spawnedBy: _spawnedBy, ...meta } = fresh.meta;
          return { old, fresh: { ...fresh, meta } };
        },
      })),
  },
  {
    name: "absent state has version 0",
    breaks: "SS2",
    wrap: (store) => ({
      ...store,
      state: {
        ...store.state,
        set: async (scope, sessionId, key, value, { ifVersion } = {}) =>
          store.state.set(
            scope,
            sessionId,
            key,
            value,
            ifVersion === 0 || ifVersion === undefined ? {} : { ifVersion },
          ),
      },
    }),
  },
  {
    name: "blobs are shared by all users",
    breaks: "SB1",
    wrap: (store) => {
      const everybody = { userId: "shared", agentId: "shared" };
      return {
        ...store,
        blobs: {
          put: (_, bytes) => store.blobs.put(everybody, bytes),
          get: (_, sha256) => store.blobs.get(everybody, sha256),
        },
      };
    },
  },
  {
    name: "unsubscribing does nothing",
    breaks: "SW1",
    wrap: (store) => ({
      ...store,
      watch: {
        subscribe: (scope, listener) => {
          store.watch.subscribe(scope, listener);
          return () => undefined;
        },
      },
    }),
  },
];
