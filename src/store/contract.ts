import type { Clock } from "../core/clock.ts";
import type { ContextOptions, SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { IdSource } from "../core/ids.ts";
import type { SessionKind } from "../core/keys.ts";
import type { Lookup } from "../core/references.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { SessionTree } from "../core/tree.ts";

/**
 * The interface that a store must implement. It has five ports and does not include a queue, so a store can be written
 * without one. Rules ST*, RCH*, SR*, SS*, SB* and SW* in SPEC.md define its behavior. `conformance/` tests a store
 * against these rules. Missing values are `null` or an empty list. A rejected call throws a SkeinError and changes
 * nothing.
 */
export interface Store {
  readonly sessions: SessionStore;
  readonly search: SearchStore;
  readonly state: StateStore;
  readonly blobs: BlobStore;
  readonly watch: WatchStore;
  /**
   * Permanently deletes all of a user's data: sessions of every agent, trash, state and blobs. Takes a user ID instead
   * of a scope, so that an omitted field cannot select the unnamed user and an additional one cannot limit the deletion
   * to one agent.
   */
  purgeUser(userId: string): Promise<{ readonly sessions: number }>;
  /** Completes pending operations. Everything that was acknowledged has already been stored. */
  close(): Promise<void>;
}

/**
 * A database that any number of machines share. It holds everything that `createSkein` and a gateway store: sessions,
 * runs, tokens and events.
 */
export interface Backend {
  /**
   * Opens a store for direct use of the sessions. Several stores can be open at the same time. They share the back
   * end's connections. If `clock` is absent, they use the database's time.
   */
  openStore(options?: { readonly clock?: Clock; readonly newId?: IdSource }): Store;
  /** Returns the reasons why this process should not receive work now, as sentences. */
  findProblems(): Promise<readonly string[]>;
  /** Closes the connections. Close everything that uses the back end first. */
  close(): Promise<void>;
}

/**
 * Selects a user's sessions. A call cannot reach outside its scope. If the user ID is absent, the scope selects the
 * unnamed user, never all users.
 */
export interface Scope {
  readonly userId?: string;
  /** Restricts the scope to one agent. */
  readonly agentId?: string;
}

/** A value that can be represented in JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json };

/** Information about a session in addition to its entries. Fields added by later versions are preserved. */
export interface SessionMeta {
  /** Unique per user and agent. */
  readonly label?: string;
  readonly displayName?: string;
  readonly archived?: boolean;
  readonly sandboxed?: boolean;
  readonly channel?: string;
  readonly delivery?: {
    readonly channel: string;
    readonly to?: string;
    readonly accountId?: string;
    readonly threadId?: string;
  };
  readonly model?: string;
  readonly thinkingLevel?: string;
  readonly verboseLevel?: "off" | "on" | "full";
  readonly sendPolicy?: "allow" | "deny";
  /** The key of the session that spawned this one. Immutable. */
  readonly spawnedBy?: string;
  /**
   * The session and entry that this session was forked from. The entry is `null` if the fork starts before the root.
   * Immutable.
   */
  readonly forkedFrom?: { readonly sessionId: string; readonly entryId: string | null };
  readonly [field: string]: Json | undefined;
}

/** Changes to {@link SessionMeta}. `null` removes a field. */
export type MetaPatch = { readonly [Field in keyof SessionMeta]: SessionMeta[Field] | null };

/** A session without its entries. */
export interface SessionRecord extends SessionRef {
  readonly kind: SessionKind;
  readonly cwd: string;
  /** Increases with every change to `meta`. */
  readonly version: number;
  readonly meta: SessionMeta;
  readonly name: string | null;
  readonly createdAt: number;
  /** Time of the last conversation entry. Metadata changes do not affect it. */
  readonly updatedAt: number;
  readonly leafId: string | null;
}

/** Totals for a session's entries, so that a list does not have to open each session. */
export interface SessionDigest {
  /** Number of entries on all branches. */
  readonly entries: number;
  /** Total size of all lines, including the header. */
  readonly bytes: number;
  /** The model that produced the last answer, or the model that has been selected since. */
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  readonly thinkingLevel: string | null;
  /** Tokens spent under this session ID, excluding entries copied by a fork. */
  readonly totalTokens: number;
  /** `null` if any price is unknown. */
  readonly costUsd: number | null;
  /** Tokens in the last request and reply. `null` before the first request and after a compaction. */
  readonly contextTokens: number | null;
  readonly compactions: number;
  /** The goal from the last compaction, otherwise the first user message, in at most 200 characters. */
  readonly summary: string | null;
  /** Time of the last message from a person. Messages from other sessions and from the system do not count. */
  readonly lastInputAt: number | null;
}

/** A session in a list. */
export interface ListedSession extends SessionRecord {
  readonly digest: SessionDigest;
}

/** A session in the trash. */
export interface TrashedSession extends SessionRef {
  readonly kind: SessionKind;
  readonly label: string | null;
  readonly removedAt: number;
  readonly bytes: number;
}

/** The result of a redaction. */
export interface Redaction {
  /** Entries that are now tombstones, by session. This session comes first, then the sessions with copies. */
  readonly sessions: readonly { readonly sessionId: string; readonly entryIds: readonly string[] }[];
  /** Summaries that might still contain redacted text. */
  readonly mayRepeat: readonly { readonly sessionId: string; readonly entryId: string }[];
}

/** Initial values for a new session. */
export interface SessionInit {
  readonly key: string;
  /** If absent, a new ID is generated. */
  readonly sessionId?: string;
  readonly cwd: string;
  readonly meta?: SessionMeta;
}

/**
 * The part of a user's sessions that a caller can access: one session with its tree, and all sessions of certain
 * agents.
 */
export interface SessionReach {
  /** This key and all its descendants by `spawnedBy`, for any agent. `null` means no tree. */
  readonly treeOf: string | null;
  /** `false` excludes the descendants. */
  readonly descendants?: boolean;
  readonly agentIds: readonly string[] | "all";
}

/**
 * How a list is sorted. `updated` (the last conversation entry), `created`, `tokens` and `cost` sort the highest value
 * first, and sessions with an unknown cost come last. `name` sorts by display name, name, label or key, ignoring the
 * case of A to Z.
 */
export type SessionSort = "updated" | "created" | "tokens" | "cost" | "name";

/** Filters for a list of sessions. */
export interface SessionQuery {
  /** Only the sessions with these uids. */
  readonly uids?: readonly string[];
  /** Only sessions on these channels, as determined by `channelOf`. */
  readonly channels?: readonly string[];
  readonly kinds?: readonly SessionKind[];
  readonly label?: string;
  /** Matched against key, session ID, label, display name and name, ignoring case. */
  readonly text?: string;
  /** `true` selects only archived sessions. Otherwise, archived sessions are excluded. */
  readonly archived?: boolean;
  readonly activeSince?: number;
  /** Only sessions spawned by this session, or by one of these sessions. */
  readonly spawnedBy?: string | readonly string[];
  /** Only sessions whose `meta.forkedFrom` contains one of these session IDs. */
  readonly forkedFrom?: readonly string[];
  /** Restricts the list to these sessions. */
  readonly reach?: SessionReach;
  /** Whether to include the session that belongs to no agent. */
  readonly includeGlobal?: boolean;
  readonly includeUnknown?: boolean;
  /** Defaults to `updated`. */
  readonly sort?: SessionSort;
  /** From 1 to 1000. Defaults to 100. */
  readonly limit?: number;
  /**
   * The cursor from the previous page with the same `sort`. Stays valid while sessions are added or change position.
   */
  readonly cursor?: string;
}

/** A page of sessions. */
export interface SessionPage {
  /** Newest first, or in the order of `sort`. */
  readonly sessions: readonly ListedSession[];
  readonly nextCursor: string | null;
  /** The number of sessions whose data might be outdated. Always 0 in a store whose lists are never outdated. */
  readonly behind: number;
}

/** An entry to append. If it has an ID, appending it again changes nothing. */
export interface AppendItem {
  readonly draft: EntryDraft;
  readonly id?: string;
}

/** Options for an append. */
export interface AppendOptions {
  /** Throws `conflict` unless this is the current leaf. `null` means before the root. */
  readonly expectedLeafId?: string | null;
  /**
   * The parent of the first item, instead of the tip. This creates a branch and its entries in one write. `null` means
   * before the root.
   */
  readonly parentId?: string | null;
  /** Called under the same lock as the write. If it returns `false`, the write is rejected with `fenced`. */
  readonly fence?: () => boolean;
}

/** The result of an append. */
export interface Appended {
  /** The stored entry for each item. */
  readonly entries: readonly Entry[];
  readonly leafId: string | null;
}

/** Selects a range of a session's entries. */
export interface EntryRange {
  /** The active branch, or all entries in the order they were written. */
  readonly along: "branch" | "all";
  readonly before?: string;
  readonly after?: string;
  readonly limit: number;
  /** Size limit in bytes. A page that reaches the limit ends early and reports that there are more entries. */
  readonly bytes?: number;
}

/** A page of entries. */
export interface EntryPage {
  /** Oldest first. */
  readonly entries: readonly Entry[];
  readonly hasEarlier: boolean;
  readonly hasLater: boolean;
  /** The leaf at the time the page was read. */
  readonly leafId: string | null;
}

/** Sessions and entries. */
export interface SessionStore {
  /** Throws `conflict` if the key, the session ID (ignoring case) or the label is taken. */
  create(scope: Scope, init: SessionInit): Promise<SessionRecord>;
  get(scope: Scope, sessionId: string): Promise<SessionRecord | null>;
  /** Returns all matches, including archived sessions. `resolveReference` tries several lookups in order. */
  find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]>;
  list(scope: Scope, query: SessionQuery): Promise<SessionPage>;
  /** Counts the matching sessions. `limit` and `cursor` are ignored. */
  count(scope: Scope, query: SessionQuery): Promise<number>;
  /** Returns the agents that have sessions in the scope, including archived ones, sorted. */
  agentIds(scope: Scope): Promise<readonly string[]>;
  /** Throws `conflict` if `ifVersion` or `ifUpdatedAt` is outdated, or the label is taken. */
  patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options?: { ifVersion?: number; ifUpdatedAt?: number },
  ): Promise<SessionRecord>;
  /**
   * Appends entries in order. Either all of them are appended or none. Unlike `guardedAppend`, does not check that tool
   * results match calls.
   */
  append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options?: AppendOptions,
  ): Promise<Appended>;
  /** Moves the leaf and records the move in the log. */
  branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options?: Pick<AppendOptions, "fence">,
  ): Promise<SessionRecord>;
  /** Creates a session that contains the branch up to an entry. */
  fork(scope: Scope, sessionId: string, entryId: string | null, init: SessionInit): Promise<SessionRecord>;
  context(scope: Scope, sessionId: string, options?: ContextOptions): Promise<SessionContext | null>;
  /** Returns an entry on any branch, or `null` if it does not exist. */
  entry(scope: Scope, sessionId: string, entryId: string): Promise<Entry | null>;
  page(scope: Scope, sessionId: string, range: EntryRange): Promise<EntryPage | null>;
  /** Hints that a session will be used soon. Has no visible effect. */
  prewarm(scope: Scope, sessionId: string): Promise<void>;
  /**
   * Moves a session to the trash. Lists, lookups and searches no longer find it, and its key and label become
   * available. Returns `false` if the session does not exist. Throws `conflict` if it has been used since
   * `ifUpdatedAt`.
   */
  remove(scope: Scope, sessionId: string, options?: { ifUpdatedAt?: number }): Promise<boolean>;
  /** Moves a session out of the trash. Throws `conflict` if its key or label has been taken since. */
  restore(scope: Scope, sessionId: string): Promise<SessionRecord>;
  /** Returns the sessions in the trash, most recently removed first. */
  trashed(scope: Scope): Promise<readonly TrashedSession[]>;
  /**
   * Permanently deletes a session in the trash, along with its state. Its session ID becomes available. Returns `false`
   * if it is not in the trash.
   */
  purge(scope: Scope, sessionId: string, options?: { ifRemovedAt?: number }): Promise<boolean>;
  /** Creates a session with the entries of another tree, keeping their IDs. */
  adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord>;
  /**
   * Creates a session under the same key, with the same metadata and label. The old session can still be read under
   * `agent:<id>:reset:<old sessionId>`.
   */
  reset(
    scope: Scope,
    sessionId: string,
    options?: { sessionId?: string } & Pick<AppendOptions, "fence">,
  ): Promise<{ readonly old: SessionRecord; readonly fresh: SessionRecord }>;
  /**
   * Replaces entries with tombstones, along with every copy of them in the user's other sessions and trash. The
   * position, the role and the link between a call and its result are kept. The content is permanently removed. This is
   * the only operation that rewrites a session.
   */
  redact(scope: Scope, sessionId: string, entryIds: readonly string[]): Promise<Redaction>;
}

/** A full-text query. */
export interface SearchQuery {
  /**
   * Words or a question. The stores of this package also support quoted phrases, `-word`, `role:assistant`,
   * `since:2026-03-29` and `until:2026-03-29`.
   */
  readonly text: string;
  readonly sessionId?: string;
  /** Restricts the search to these sessions. */
  readonly reach?: SessionReach;
  readonly role?: string;
  readonly since?: number;
  readonly until?: number;
  /** From 1 to 100. Defaults to 10. */
  readonly limit?: number;
  /** Skips this many of the best hits. */
  readonly offset?: number;
  /** Returns only the best hit of each session. */
  readonly bySession?: boolean;
  /**
   * Returns the text of an entry as the caller sees it, or `null` if it is hidden. Hidden words neither match nor
   * affect the rank.
   */
  shownText?(entry: Entry): string | null;
}

/** A matching entry. */
export interface SearchHit {
  readonly sessionId: string;
  readonly key: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
  /** The text around the first match. */
  readonly snippet: string;
}

/** Full-text search over all entries, including tool results. */
export interface SearchStore {
  /**
   * Returns the best hits first. Entries that contain all words come before entries that contain only some of them. If
   * the query is a sentence, messages next to a match can also be hits. The order does not depend on entries outside
   * the scope and reach.
   */
  search(
    scope: Scope,
    query: SearchQuery,
  ): Promise<{ readonly hits: readonly SearchHit[]; readonly behind: number }>;
  /**
   * Returns the hits whose embeddings are nearest to `embedding`, nearest first. Of the query's text, only filters,
   * quoted phrases and excluded words apply. A store without embeddings omits `nearest`, `unembedded` and `embed`.
   */
  nearest?(scope: Scope, query: SearchQuery, embedding: Embedding): Promise<readonly SearchHit[]>;
  /** Returns entries that have no embedding from this model, newest first. */
  unembedded?(
    scope: Scope,
    model: string,
    among: { readonly sessionId?: string; readonly limit: number },
  ): Promise<readonly UnembeddedEntry[]>;
  /** Stores embeddings. Entries that have since been removed are ignored. */
  embed?(scope: Scope, model: string, embedded: readonly EmbeddedEntry[]): Promise<void>;
}

/** The meaning of a text as a vector. Only embeddings from the same model can be compared. */
export interface Embedding {
  readonly model: string;
  readonly vector: readonly number[];
}

/** An entry that can be embedded. */
export interface UnembeddedEntry {
  /** Identifies the entry in its store. */
  readonly place: string;
  readonly entry: Entry;
}

/** An entry's embedding. An empty vector means that the entry has no text to embed. */
export interface EmbeddedEntry {
  readonly place: string;
  readonly vector: readonly number[];
}

/** A state module's stored value. */
export interface StateValue {
  readonly value: Json;
  /** Starts at 1 and increases with every change. */
  readonly version: number;
}

/** State module snapshots, per session. */
export interface StateStore {
  get(scope: Scope, sessionId: string, key: string): Promise<StateValue | null>;
  /** `ifVersion: null` requires that no value exists yet. Returns the new version. */
  set(
    scope: Scope,
    sessionId: string,
    key: string,
    value: Json,
    options?: { ifVersion?: number | null },
  ): Promise<number>;
  delete(scope: Scope, sessionId: string, key: string): Promise<boolean>;
  keys(scope: Scope, sessionId: string): Promise<readonly string[]>;
}

/** Large content, addressed by hash. */
export interface BlobStore {
  /** Stores the bytes and returns their SHA-256. Storing the same bytes again changes nothing. */
  put(scope: Scope, bytes: Uint8Array): Promise<string>;
  get(scope: Scope, sha256: string): Promise<Uint8Array | null>;
}

/** A change in a store. */
export type StoreChange =
  | {
      readonly type: "created" | "removed" | "restored" | "redacted";
      readonly session: SessionRecord;
    }
  /** `changed` lists the metadata fields that changed. Absent if unknown. */
  | {
      readonly type: "patched";
      readonly session: SessionRecord;
      readonly changed?: readonly string[];
    }
  /** The key has moved to `fresh`. `patched` and `created` are published first. */
  | { readonly type: "reset"; readonly session: SessionRecord; readonly fresh: SessionRecord }
  | { readonly type: "purged"; readonly session: TrashedSession }
  | { readonly type: "appended"; readonly session: SessionRecord; readonly entries: readonly Entry[] };

/** Changes made in this process. */
export interface WatchStore {
  /**
   * Calls the listener after each stored change, in order per session. Returns a function that unsubscribes the
   * listener.
   */
  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void;
}
