import type { ContextOptions, SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { SessionKind } from "../core/keys.ts";
import type { Lookup } from "../core/references.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { SessionTree } from "../core/tree.ts";

/**
 * What a store must do, in five ports, so that storing messages does not require implementing a queue. The rules are ST*, RCH*,
 * SR*, SS*, SB* and SW* in SPEC.md; `conformance/` tests any store against them. Absence is `null` or an empty list. A refused
 * call throws a SkeinError and changes nothing.
 */
export interface Store {
  readonly sessions: SessionStore;
  readonly search: SearchStore;
  readonly state: StateStore;
  readonly blobs: BlobStore;
  readonly watch: WatchStore;
  /**
   * Deletes everything of a user permanently: sessions of every agent, trash, state and blobs. Takes no scope, so that an
   * omitted field can select neither the unnamed user nor a single agent.
   */
  purgeUser(userId: string): Promise<{ readonly sessions: number }>;
  /** Completes pending operations. Everything acknowledged is stored. */
  close(): Promise<void>;
}

/**
 * Selects the sessions of a user. A call cannot reach outside its scope. No user ID selects the unnamed user, never all users.
 */
export interface Scope {
  readonly userId?: string;
  /** Restricts the scope to one agent. */
  readonly agentId?: string;
}

/** A value that JSON can represent. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json };

/** Information about a session besides its entries. Fields that a later version adds are preserved. */
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
  /** The key of the session that spawned this one. Cannot change. */
  readonly spawnedBy?: string;
  /** The session that this one was forked from, and its entry; `null`: from before the root. Cannot change. */
  readonly forkedFrom?: { readonly sessionId: string; readonly entryId: string | null };
  readonly [field: string]: Json | undefined;
}

/** Changes to {@link SessionMeta}; `null` removes a field. */
export type MetaPatch = { readonly [Field in keyof SessionMeta]: SessionMeta[Field] | null };

/** A session without its entries. */
export interface SessionRecord extends SessionRef {
  readonly kind: SessionKind;
  readonly cwd: string;
  /** Increases with every change of `meta`. */
  readonly version: number;
  readonly meta: SessionMeta;
  readonly name: string | null;
  readonly createdAt: number;
  /** Time of the last conversation entry; metadata changes do not count. */
  readonly updatedAt: number;
  readonly leafId: string | null;
}

/** Totals over a session's entries, so that a list does not have to open sessions. */
export interface SessionDigest {
  /** Number of entries on all branches. */
  readonly entries: number;
  /** Size of all lines, including the header. */
  readonly bytes: number;
  /** The model of the last answer, or the one selected since. */
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  readonly thinkingLevel: string | null;
  /** Tokens spent under this session ID; entries copied by a fork do not count. */
  readonly totalTokens: number;
  /** `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** Tokens of the last request and reply; `null` before the first one and after a compaction. */
  readonly contextTokens: number | null;
  readonly compactions: number;
  /** The goal of the last compaction, or else the first user message; at most 200 characters. */
  readonly summary: string | null;
  /** Time of the last message from a person; messages from sessions and from the system do not count. */
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
  /** Entries that are now tombstones, by session: this session first, then sessions with copies. */
  readonly sessions: readonly { readonly sessionId: string; readonly entryIds: readonly string[] }[];
  /** Summaries that may repeat redacted text. */
  readonly mayRepeat: readonly { readonly sessionId: string; readonly entryId: string }[];
}

/** Initial values of a new session. */
export interface SessionInit {
  readonly key: string;
  /** Absent: a new ID is generated. */
  readonly sessionId?: string;
  readonly cwd: string;
  readonly meta?: SessionMeta;
}

/** The sessions of a user that an asker may access: one session with its tree, and all sessions of some agents. */
export interface SessionReach {
  /** This key and all its descendants by `spawnedBy`, of any agent; `null`: no tree. */
  readonly treeOf: string | null;
  /** `false`: without its descendants. */
  readonly descendants?: boolean;
  readonly agentIds: readonly string[] | "all";
}

/**
 * How a list is sorted: by the last conversation entry, creation, tokens spent or cost, highest first, or by name (display
 * name, name, label or key, ignoring the case of A to Z). Sessions with an unknown cost come last.
 */
export type SessionSort = "updated" | "created" | "tokens" | "cost" | "name";

/** Filters of a list. */
export interface SessionQuery {
  /** Only the sessions with these uids. */
  readonly uids?: readonly string[];
  /** Only sessions of these channels, as `channelOf` determines them. */
  readonly channels?: readonly string[];
  readonly kinds?: readonly SessionKind[];
  readonly label?: string;
  /** Searched in key, session ID, label, display name and name, ignoring case. */
  readonly text?: string;
  /** `true`: only archived sessions. Otherwise: only the others. */
  readonly archived?: boolean;
  readonly activeSince?: number;
  /** Spawned by this session, or by one of these. */
  readonly spawnedBy?: string | readonly string[];
  /** `meta.forkedFrom` names one of these session IDs. */
  readonly forkedFrom?: readonly string[];
  /** Only these sessions. */
  readonly reach?: SessionReach;
  /** Includes the session that belongs to no agent. */
  readonly includeGlobal?: boolean;
  readonly includeUnknown?: boolean;
  /** Default: `updated`. */
  readonly sort?: SessionSort;
  /** 1 to 1000; default 100. */
  readonly limit?: number;
  /** The cursor of the previous page with the same `sort`. Stays valid while sessions are added and move. */
  readonly cursor?: string;
}

/** A page of sessions. */
export interface SessionPage {
  /** Newest first, or as `sort` says. */
  readonly sessions: readonly ListedSession[];
  readonly nextCursor: string | null;
  /** Number of sessions for which the result may be out of date; 0 if the store has no such lag. */
  readonly behind: number;
}

/** An entry to append. With an ID, appending it again changes nothing. */
export interface AppendItem {
  readonly draft: EntryDraft;
  readonly id?: string;
}

/** Conditions of an append. */
export interface AppendOptions {
  /** `conflict` unless this is the current leaf; `null` is before the root. */
  readonly expectedLeafId?: string | null;
  /** Parent of the first item, instead of the tip: a branch and its entries in one write. `null`: before the root. */
  readonly parentId?: string | null;
  /** Called under the same lock as the write; `false` refuses it with `fenced`. */
  readonly fence?: () => boolean;
}

/** The result of an append. */
export interface Appended {
  /** One per item, as stored. */
  readonly entries: readonly Entry[];
  readonly leafId: string | null;
}

/** Selects entries of a session. */
export interface EntryRange {
  /** The active branch, or all entries in the order they were written. */
  readonly along: "branch" | "all";
  readonly before?: string;
  readonly after?: string;
  readonly limit: number;
  /** Size limit in bytes. A page that reaches it ends early and reports that there are more entries. */
  readonly bytes?: number;
}

/** A page of entries. */
export interface EntryPage {
  /** Oldest first. */
  readonly entries: readonly Entry[];
  readonly hasEarlier: boolean;
  readonly hasLater: boolean;
  /** The leaf at the time of reading. */
  readonly leafId: string | null;
}

/** Sessions and entries. */
export interface SessionStore {
  /** `conflict` when the key, the session ID (ignoring case) or the label is taken. */
  create(scope: Scope, init: SessionInit): Promise<SessionRecord>;
  get(scope: Scope, sessionId: string): Promise<SessionRecord | null>;
  /** All matches, including archived sessions; `resolveReference` tries lookups in order. */
  find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]>;
  list(scope: Scope, query: SessionQuery): Promise<SessionPage>;
  /** Number of sessions that match; `limit` and `cursor` are ignored. */
  count(scope: Scope, query: SessionQuery): Promise<number>;
  /** The agents with sessions in the scope, including archived ones, sorted. */
  agentIds(scope: Scope): Promise<readonly string[]>;
  /** `conflict` when `ifVersion` or `ifUpdatedAt` is outdated, or the label is taken. */
  patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options?: { ifVersion?: number; ifUpdatedAt?: number },
  ): Promise<SessionRecord>;
  /** Appends entries in order, all or none. Does not check that tool results answer calls; `guardedAppend` does. */
  append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options?: AppendOptions,
  ): Promise<Appended>;
  /** Moves the leaf and records the move. */
  branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options?: Pick<AppendOptions, "fence">,
  ): Promise<SessionRecord>;
  /** Creates a session with the path to an entry. */
  fork(scope: Scope, sessionId: string, entryId: string | null, init: SessionInit): Promise<SessionRecord>;
  context(scope: Scope, sessionId: string, options?: ContextOptions): Promise<SessionContext | null>;
  /** One entry on any branch; `null`: not found. */
  entry(scope: Scope, sessionId: string, entryId: string): Promise<Entry | null>;
  page(scope: Scope, sessionId: string, range: EntryRange): Promise<EntryPage | null>;
  /** A hint that a session will be used soon. Has no visible effect. */
  prewarm(scope: Scope, sessionId: string): Promise<void>;
  /**
   * Moves a session to the trash: lists, lookups and searches no longer find it, and its key and label are free again. `false`:
   * not found. `conflict` when it was used since `ifUpdatedAt`.
   */
  remove(scope: Scope, sessionId: string, options?: { ifUpdatedAt?: number }): Promise<boolean>;
  /** Moves a session out of the trash; `conflict` when its key or label has been taken since. */
  restore(scope: Scope, sessionId: string): Promise<SessionRecord>;
  /** The sessions in the trash, the last removed first. */
  trashed(scope: Scope): Promise<readonly TrashedSession[]>;
  /** Deletes a session in the trash and its state permanently; its session ID is free again. `false`: not in the trash. */
  purge(scope: Scope, sessionId: string, options?: { ifRemovedAt?: number }): Promise<boolean>;
  /** Creates a session with the entries of another tree, under the same entry IDs. */
  adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord>;
  /**
   * Creates a session under the same key, with the same metadata and label. The old session stays readable under
   * `agent:<id>:reset:<old sessionId>`.
   */
  reset(
    scope: Scope,
    sessionId: string,
    options?: { sessionId?: string } & Pick<AppendOptions, "fence">,
  ): Promise<{ readonly old: SessionRecord; readonly fresh: SessionRecord }>;
  /**
   * Replaces entries with tombstones, here and in every copy in the user's other sessions and trash. Position, role and
   * pairing stay; the content is gone permanently. The only operation that rewrites a session.
   */
  redact(scope: Scope, sessionId: string, entryIds: readonly string[]): Promise<Redaction>;
}

/** A full-text query. */
export interface SearchQuery {
  readonly text: string;
  readonly sessionId?: string;
  /** Only in these sessions. */
  readonly reach?: SessionReach;
  readonly role?: string;
  readonly since?: number;
  readonly until?: number;
  /** 1 to 100; default 10. */
  readonly limit?: number;
  /** Skips this many of the best hits. */
  readonly offset?: number;
  /** The text of an entry as the asker sees it; `null`: hidden. Other words of the entry neither match nor affect its rank. */
  shownText?(entry: Entry): string | null;
}

/** An entry that matches. */
export interface SearchHit {
  readonly sessionId: string;
  readonly key: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
  /** Text around the first match. */
  readonly snippet: string;
}

/** Full-text search over all entries, including tool results. */
export interface SearchStore {
  /**
   * Best first: entries with all words, then entries with some. The order does not depend on entries outside the scope and
   * reach.
   */
  search(
    scope: Scope,
    query: SearchQuery,
  ): Promise<{ readonly hits: readonly SearchHit[]; readonly behind: number }>;
}

/** A stored value of a state module. */
export interface StateValue {
  readonly value: Json;
  /** Starts at 1 and increases with every change. */
  readonly version: number;
}

/** Snapshots of state modules, per session. */
export interface StateStore {
  get(scope: Scope, sessionId: string, key: string): Promise<StateValue | null>;
  /** `ifVersion: null`: only if there is no value yet. Returns the new version. */
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

/** Large contents, addressed by hash. */
export interface BlobStore {
  /** Returns the SHA-256 of the bytes. Storing the same bytes again changes nothing. */
  put(scope: Scope, bytes: Uint8Array): Promise<string>;
  get(scope: Scope, sha256: string): Promise<Uint8Array | null>;
}

/** A change in a store. */
export type StoreChange =
  | {
      readonly type: "created" | "removed" | "restored" | "redacted";
      readonly session: SessionRecord;
    }
  /** `changed`: the metadata fields that changed; absent: unknown. */
  | {
      readonly type: "patched";
      readonly session: SessionRecord;
      readonly changed?: readonly string[];
    }
  /** Its key moved to `fresh`. `patched` and `created` were published before. */
  | { readonly type: "reset"; readonly session: SessionRecord; readonly fresh: SessionRecord }
  | { readonly type: "purged"; readonly session: TrashedSession }
  | { readonly type: "appended"; readonly session: SessionRecord; readonly entries: readonly Entry[] };

/** Changes made in this process. */
export interface WatchStore {
  /** Calls the listener after a change is stored, in order per session, until the returned function is called. */
  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void;
}
