import { BoundedMap } from "../core/bounded-map.ts";
import { KeyedMutex } from "../core/concurrency.ts";
import type { Entry } from "../core/entries.ts";
import { codeOf } from "../core/errors.ts";
import type {
  AppendItem,
  AppendOptions,
  ListedSession,
  Scope,
  SessionInit,
  SessionQuery,
  SessionRecord,
  Store,
} from "../store/contract.ts";

/** Builds an index from a session's entries, in the order in which they were written. */
interface IndexRules<T> {
  createIndex(): T;
  addEntry(index: T, entry: Entry): void;
}

interface CachedIndex<T> {
  readonly value: T;
  lastId: string | null;
}

const maxCached = 100;
const pageSize = 1000;

/**
 * Reads sessions whose log is the only source of truth, such as the threads of a framework. The index of a session is
 * kept in memory, and each read adds the entries that this and other processes have appended since.
 */
export class SessionLog<T> {
  readonly #store: Pick<Store, "sessions">;
  readonly #scope: Scope;
  readonly #rules: IndexRules<T>;
  readonly #cached = new BoundedMap<CachedIndex<T>>(maxCached);
  readonly #mutex = new KeyedMutex();

  constructor(store: Pick<Store, "sessions">, scope: Scope, rules: IndexRules<T>) {
    this.#store = store;
    this.#scope = scope;
    this.#rules = rules;
  }

  find(key: string): Promise<SessionRecord | null> {
    return findSession(this.#store, this.#scope, key);
  }

  findOrCreate(init: SessionInit): Promise<SessionRecord> {
    return findOrCreateSession(this.#store, this.#scope, init);
  }

  read(sessionId: string): Promise<T> {
    return this.#mutex.run(sessionId, async () => {
      const index = this.#cached.take(sessionId) ?? { value: this.#rules.createIndex(), lastId: null };
      const add = (entries: readonly Entry[]) => {
        for (const entry of entries) this.#rules.addEntry(index.value, entry);
        index.lastId = entries.at(-1)?.id ?? index.lastId;
      };
      if (index.lastId === null) for (const page of await this.#readWhole(sessionId)) add(page);
      else
        for (let hasLater = true; hasLater; ) {
          const range = { along: "all", after: index.lastId, limit: pageSize } as const;
          const page = await this.#store.sessions.page(this.#scope, sessionId, range);
          add(page?.entries ?? []);
          hasLater = page?.hasLater === true;
        }
      this.#cached.set(sessionId, index);
      return index.value;
    });
  }

  /** Returns the ID of the last entry, without reading the rest of the log. */
  async lastId(sessionId: string): Promise<string | null> {
    const page = await this.#store.sessions.page(this.#scope, sessionId, { along: "all", limit: 1 });
    return page?.entries.at(-1)?.id ?? null;
  }

  /** Makes the next read start over. Waits for a read in progress, which would otherwise cache the index again. */
  forget(sessionId: string): Promise<void> {
    return this.#mutex.run(sessionId, async () => {
      this.#cached.take(sessionId);
    });
  }

  /** Appends entries after `parentId`. If `parentId` is not the leaf, this starts a branch. */
  async appendAfter(sessionId: string, parentId: string | null, items: readonly AppendItem[]): Promise<void> {
    const append = (options: AppendOptions) =>
      this.#store.sessions.append(this.#scope, sessionId, items, options);
    try {
      await append({ expectedLeafId: parentId });
    } catch (error) {
      if (codeOf(error) !== "conflict") throw error;
      await append({ parentId });
    }
  }

  /** Pages through all sessions, archived ones included. */
  async *list(query: Pick<SessionQuery, "channels" | "spawnedBy">): AsyncGenerator<ListedSession> {
    for (const archived of [false, true])
      for (let cursor: string | null = null, isFirst = true; isFirst || cursor !== null; isFirst = false) {
        const range: SessionQuery = { ...query, archived, sort: "created", limit: pageSize };
        const page = await this.#store.sessions.list(
          this.#scope,
          cursor === null ? range : { ...range, cursor },
        );
        yield* page.sessions;
        cursor = page.nextCursor;
      }
  }

  /**
   * Moves sessions to the trash, then permanently deletes every session there whose key matches, with its state. Such a
   * session might be in the trash already, because an earlier deletion was interrupted.
   */
  async erase(keys: readonly string[], isErased: (key: string) => boolean): Promise<void> {
    const { sessions } = this.#store;
    for (const key of keys) {
      const session = await this.find(key);
      if (session !== null) await sessions.remove(this.#scope, session.sessionId);
    }
    for (const { key, sessionId } of await sessions.trashed(this.#scope)) {
      if (!isErased(key)) continue;
      await sessions.purge(this.#scope, sessionId);
      await this.forget(sessionId);
    }
  }

  /** Reads from the end, because a store returns the newest page if no position is given. */
  async #readWhole(sessionId: string): Promise<(readonly Entry[])[]> {
    const pages: (readonly Entry[])[] = [];
    for (let before: string | undefined; ; ) {
      const range = { along: "all", limit: pageSize, ...(before === undefined ? {} : { before }) } as const;
      const page = await this.#store.sessions.page(this.#scope, sessionId, range);
      pages.push(page?.entries ?? []);
      before = page?.entries[0]?.id;
      if (page?.hasEarlier !== true || before === undefined) return pages.toReversed();
    }
  }
}

type Sessions = Pick<Store, "sessions">;

export async function findSession(
  { sessions }: Sessions,
  scope: Scope,
  key: string,
): Promise<SessionRecord | null> {
  const [found] = await sessions.find(scope, { by: "key", key });
  return found ?? null;
}

export async function findOrCreateSession(
  store: Sessions,
  scope: Scope,
  init: SessionInit,
): Promise<SessionRecord> {
  const found = await findSession(store, scope, init.key);
  if (found !== null) return found;
  try {
    return await store.sessions.create(scope, init);
  } catch (error) {
    // Another process might have created the session in the meantime.
    const created = codeOf(error) === "conflict" ? await findSession(store, scope, init.key) : null;
    if (created === null) throw error;
    return created;
  }
}
