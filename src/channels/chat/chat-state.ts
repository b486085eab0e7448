import { AsyncLocalStorage } from "node:async_hooks";
import { createHash, randomUUID } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { Script, ScriptEngine } from "../../core/script.ts";
import { changeRows, queryRow } from "../../core/script.ts";

/** A lock of the Chat SDK. */
export interface ChatLock {
  readonly threadId: string;
  readonly token: string;
  readonly expiresAt: number;
}

/** The marks that one request sets. */
interface MarkScope {
  readonly marks: Map<string, { readonly value: string; readonly until: number }>;
  isOpen: boolean;
}

interface QueueEntry {
  readonly expiresAt: number;
}

interface ListOptions {
  readonly maxLength?: number;
  readonly ttlMs?: number;
}

const forever = 9_999_999_999_999;
const digits = 13;
const longestName = 500;
/** Locks and caches expire. Their rows are removed at intervals, because nothing reads them again. */
const sweepMs = 3_600_000;

/**
 * The state of one channel: subscriptions, locks, caches and marks of handled events. Implements the Chat SDK's
 * `StateAdapter` in the database that contains the runs, so the state survives restarts and is shared by all processes.
 * Each value is prefixed with its expiration time, so that one statement can check and replace it.
 */
export class ChatState {
  readonly #engine: Pick<ScriptEngine, "read" | "change">;
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #scope = new AsyncLocalStorage<MarkScope>();
  #sweptAt = 0;

  constructor(engine: Pick<ScriptEngine, "read" | "change">, clock: Clock, channel: string) {
    this.#engine = engine;
    this.#clock = clock;
    this.#prefix = `channel.${encodeURIComponent(channel)}.`;
  }

  async connect(): Promise<void> {
    await this.#sweep();
  }

  async disconnect(): Promise<void> {
    // The store owns the database and closes it.
  }

  /**
   * Stores the marks of handled events only after `act` has ended without an error. After an error, the platform
   * delivers the event again, and a mark would hide it.
   */
  async holdMarks<T>(act: () => Promise<T>): Promise<T> {
    const scope: MarkScope = { marks: new Map(), isOpen: true };
    try {
      const result = await this.#scope.run(scope, act);
      for (const [name, { value, until }] of scope.marks) await this.#put(name, value, until);
      return result;
    } finally {
      // Work that continues in the background stores its marks immediately.
      scope.isOpen = false;
    }
  }

  async get<T = unknown>(key: string): Promise<T | null> {
    const name = this.#name("value", key);
    const mark = this.#marks?.get(name);
    const stored = mark?.value ?? (await this.#read(name));
    return stored === null ? null : (JSON.parse(stored) as T);
  }

  async set(key: string, value: unknown, ttlMs?: number): Promise<void> {
    const name = this.#name("value", key);
    const pending = this.#marks;
    if (value === true && pending !== null) pending.set(name, { value: "true", until: this.#until(ttlMs) });
    else await this.#put(name, JSON.stringify(value ?? null), this.#until(ttlMs));
  }

  async setIfNotExists(key: string, value: unknown, ttlMs?: number): Promise<boolean> {
    const name = this.#name("value", key);
    const pending = this.#marks;
    const text = JSON.stringify(value ?? null);
    if (pending === null) return this.#claim(name, text, this.#until(ttlMs));
    if (pending.has(name) || (await this.#read(name)) !== null) return false;
    pending.set(name, { value: text, until: this.#until(ttlMs) });
    return true;
  }

  async delete(key: string): Promise<void> {
    const name = this.#name("value", key);
    this.#marks?.delete(name);
    await this.#remove(name);
  }

  async subscribe(threadId: string): Promise<void> {
    await this.#put(this.#name("subscribed", threadId), "true", forever, "synced");
  }

  async unsubscribe(threadId: string): Promise<void> {
    await this.#remove(this.#name("subscribed", threadId));
  }

  async isSubscribed(threadId: string): Promise<boolean> {
    return (await this.#read(this.#name("subscribed", threadId))) !== null;
  }

  async acquireLock(threadId: string, ttlMs: number): Promise<ChatLock | null> {
    const lock = { threadId, token: randomUUID(), expiresAt: this.#clock.now() + ttlMs };
    const isTaken = await this.#claim(
      this.#name("lock", threadId),
      JSON.stringify(lock.token),
      lock.expiresAt,
    );
    return isTaken ? lock : null;
  }

  async extendLock({ threadId, token }: ChatLock, ttlMs: number): Promise<boolean> {
    const [name, now] = [this.#name("lock", threadId), this.#clock.now()];
    const value = JSON.stringify(token);
    return this.#change(function* () {
      const held = unpack(yield* queryRow("SELECT value FROM facts WHERE name = ?", name), now);
      if (held !== value) return false;
      yield* changeRows("UPDATE facts SET value = ? WHERE name = ?", pack(value, now + ttlMs), name);
      return true;
    });
  }

  async releaseLock({ threadId, token }: ChatLock): Promise<void> {
    const [name, value] = [this.#name("lock", threadId), JSON.stringify(token)];
    await this.#change(function* () {
      yield* changeRows(`DELETE FROM facts WHERE name = ? AND substr(value, ${digits + 2}) = ?`, name, value);
    });
  }

  async forceReleaseLock(threadId: string): Promise<void> {
    await this.#remove(this.#name("lock", threadId));
  }

  async appendToList(key: string, value: unknown, { maxLength, ttlMs }: ListOptions = {}): Promise<void> {
    const keep = maxLength ?? Number.POSITIVE_INFINITY;
    await this.#changeList(key, this.#until(ttlMs), (list) => {
      const all = [...list, value];
      return all.slice(Math.max(0, all.length - keep));
    });
  }

  async getList<T = unknown>(key: string): Promise<T[]> {
    const stored = await this.#read(this.#name("list", key));
    return stored === null ? [] : (JSON.parse(stored) as T[]);
  }

  /** Returns the number of entries. The oldest ones are dropped if there are too many. */
  async enqueue(threadId: string, entry: QueueEntry, maxSize: number): Promise<number> {
    const queue = await this.#changeList(`queue:${threadId}`, forever, (list) =>
      [...list, entry].slice(-Math.max(1, maxSize)),
    );
    return queue.length;
  }

  async dequeue(threadId: string): Promise<QueueEntry | null> {
    let first: unknown = null;
    await this.#changeList(`queue:${threadId}`, forever, (list) => {
      first = list[0] ?? null;
      return list.slice(1);
    });
    return first as QueueEntry | null;
  }

  async queueDepth(threadId: string): Promise<number> {
    return (await this.getList(`queue:${threadId}`)).length;
  }

  get #marks(): MarkScope["marks"] | null {
    const scope = this.#scope.getStore();
    return scope?.isOpen === true ? scope.marks : null;
  }

  async #changeList(
    key: string,
    until: number,
    change: (list: readonly unknown[]) => readonly unknown[],
  ): Promise<readonly unknown[]> {
    const [name, now] = [this.#name("list", key), this.#clock.now()];
    return this.#change(function* () {
      const stored = unpack(yield* queryRow("SELECT value FROM facts WHERE name = ?", name), now);
      const list = change(stored === null ? [] : (JSON.parse(stored) as unknown[]));
      if (list.length === 0) yield* changeRows("DELETE FROM facts WHERE name = ?", name);
      else yield* changeRows(upsert, name, pack(JSON.stringify(list), until));
      return list;
    });
  }

  async #read(name: string): Promise<string | null> {
    const now = this.#clock.now();
    return this.#engine.read(function* () {
      return unpack(yield* queryRow("SELECT value FROM facts WHERE name = ?", name), now);
    });
  }

  async #put(
    name: string,
    value: string,
    until: number,
    durability: "synced" | "unsynced" = "unsynced",
  ): Promise<void> {
    await this.#engine.change(durability, null, function* () {
      yield* changeRows(upsert, name, pack(value, until));
    });
    if (this.#clock.now() - this.#sweptAt > sweepMs) await this.#sweep();
  }

  /** Stores a value unless one exists that has not expired. */
  async #claim(name: string, value: string, until: number): Promise<boolean> {
    const text = `${upsert} WHERE substr(facts.value, 1, ${digits}) <= ?`;
    const now = pack("", this.#clock.now()).slice(0, digits);
    return this.#engine.change("unsynced", null, function* () {
      return (yield* changeRows(text, name, pack(value, until), now)) === 1;
    });
  }

  async #remove(name: string): Promise<void> {
    await this.#engine.change("unsynced", null, function* () {
      yield* changeRows("DELETE FROM facts WHERE name = ?", name);
    });
  }

  /** Runs several statements and excludes other processes that change the same rows. */
  #change<T>(script: () => Script<T>): Promise<T> {
    return this.#engine.change("unsynced", "gateway", script);
  }

  async #sweep(): Promise<void> {
    this.#sweptAt = this.#clock.now();
    const [from, to] = [this.#prefix, `${this.#prefix.slice(0, -1)}/`];
    const now = pack("", this.#sweptAt).slice(0, digits);
    await this.#engine.change("unsynced", null, function* () {
      const expired = `DELETE FROM facts WHERE name >= ? AND name < ? AND substr(value, 1, ${digits}) <= ?`;
      yield* changeRows(expired, from, to, now);
    });
  }

  #until(ttlMs: number | undefined): number {
    return ttlMs === undefined ? forever : Math.min(forever, this.#clock.now() + Math.ceil(ttlMs));
  }

  #name(kind: string, key: string): string {
    const name = `${this.#prefix}${kind}:${key}`;
    if (name.length <= longestName) return name;
    return `${this.#prefix}${kind}#${createHash("sha256").update(key).digest("hex")}`;
  }
}

const upsert =
  "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

function pack(value: string, until: number): string {
  return `${String(Math.trunc(until)).padStart(digits, "0")} ${value}`;
}

/** Returns `null` if there is no row, or if its value has expired. */
function unpack(row: { readonly value?: unknown } | undefined, now: number): string | null {
  if (row === undefined) return null;
  const text = String(row.value);
  return Number(text.slice(0, digits)) <= now ? null : text.slice(digits + 1);
}
