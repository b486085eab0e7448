import type { ContextOptions, SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { SessionKind } from "../core/keys.ts";
import type { Lookup } from "../core/references.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { SessionTree } from "../core/tree.ts";

/**
 * What a store must do, in five ports, so that nobody has to write a queue in order to keep messages. The rules are
 * ST*, RCH*, SR*, SS*, SB* and SW* in SPEC.md; `conformance/` shows them for any store.
 * Absence is `null` or an empty list. What is refused is a SkeinError, and then nothing has changed.
 */
export interface Store {
  readonly sessions: SessionStore;
  readonly search: SearchStore;
  readonly state: StateStore;
  readonly blobs: BlobStore;
  readonly watch: WatchStore;
  /**
   * Everything of a user, for good: the sessions of every agent, trash, state, blobs. No scope, so that neither the
   * unnamed user nor one agent's part can be meant by leaving something out.
   */
  purgeUser(userId: string): Promise<{ readonly sessions: number }>;
  /** Everything acknowledged is kept; what is under way is finished first. */
  close(): Promise<void>;
}

/** Whose sessions. Nothing outside a scope can be reached with it; no user id is the unnamed user, never "all". */
export interface Scope {
  readonly userId?: string;
  /** Narrows further, to one agent. */
  readonly agentId?: string;
}

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json };

/** What is known of a session beside its entries. Fields that a later version adds are kept. */
export interface SessionMeta {
  /** Unique for a user's agent. */
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
  /** The key of the session that spawned this one. Lineage is written once. */
  readonly spawnedBy?: string;
  readonly [field: string]: Json | undefined;
}

/** Changes to {@link SessionMeta}; `null` takes a field away. */
export type MetaPatch = { readonly [Field in keyof SessionMeta]: SessionMeta[Field] | null };

/** A session as lists show it. */
export interface SessionRecord extends SessionRef {
  readonly kind: SessionKind;
  readonly cwd: string;
  /** Goes up with every change of `meta`. */
  readonly version: number;
  readonly meta: SessionMeta;
  readonly name: string | null;
  readonly createdAt: number;
  /** When the last conversation entry was appended; metadata does not count. */
  readonly updatedAt: number;
  readonly leafId: string | null;
}

/** What a session's entries come to, so that a list need not open any. */
export interface SessionDigest {
  /** Entries, on all branches. */
  readonly entries: number;
  /** Bytes of its lines, the header's too. */
  readonly bytes: number;
  /** The model that answered last, or was chosen since. */
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  readonly thinkingLevel: string | null;
  /** Spent under this session id: what a fork copied does not count. */
  readonly totalTokens: number;
  /** `null` where the price of something is not known. */
  readonly costUsd: number | null;
  /** What the last answer's request and reply came to; `null` before the first, and behind a compaction. */
  readonly contextTokens: number | null;
  readonly compactions: number;
  /** The last compaction's goal, else how the user began; at most 200 characters. */
  readonly summary: string | null;
  /** When a person said something last; messages between sessions and of the system do not count. */
  readonly lastInputAt: number | null;
}

/** A session as lists show it, with what its entries come to. */
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

/** What a redaction came to. */
export interface Redaction {
  /** Entries that are tombstones now, by session: this one first, then those that had a copy. */
  readonly sessions: readonly { readonly sessionId: string; readonly entryIds: readonly string[] }[];
  /** Summaries that were made of what is gone, and may repeat it. */
  readonly mayRepeat: readonly { readonly sessionId: string; readonly entryId: string }[];
}

/** What a new session begins with. */
export interface SessionInit {
  readonly key: string;
  /** Left out: a new one. */
  readonly sessionId?: string;
  readonly cwd: string;
  readonly meta?: SessionMeta;
}

/** What of its user's sessions an asker may reach: one session and its tree, and whole agents. Nothing else is found. */
export interface SessionReach {
  /** This key, and all that was spawned by it, by `spawnedBy`, at any depth, of any agent; `null`: none. */
  readonly treeOf: string | null;
  /** `false`: only itself of its tree. */
  readonly descendants?: boolean;
  readonly agentIds: readonly string[] | "all";
}

/** Which sessions a list shows. */
export interface SessionQuery {
  readonly kinds?: readonly SessionKind[];
  readonly label?: string;
  /** In key, session id, label, display name or name; without regard to case. */
  readonly text?: string;
  /** `true`: the archived ones alone. Left out or `false`: the others alone. */
  readonly archived?: boolean;
  readonly activeSince?: number;
  /** By this session, or by any of these. */
  readonly spawnedBy?: string | readonly string[];
  /** Of these alone. */
  readonly reach?: SessionReach;
  /** The session that belongs to no agent. Left out of lists unless asked for. */
  readonly includeGlobal?: boolean;
  readonly includeUnknown?: boolean;
  /** 1 to 1000; by default 100. */
  readonly limit?: number;
  /** From the page before; stays right while sessions come and move. */
  readonly cursor?: string;
}

/** A page of a list. */
export interface SessionPage {
  /** Newest first. */
  readonly sessions: readonly ListedSession[];
  readonly nextCursor: string | null;
  /** How many sessions the answer may be behind for; 0 where the store has no such lag. */
  readonly behind: number;
}

/** An entry to be written; with an id of the caller's, writing it again changes nothing. */
export interface AppendItem {
  readonly draft: EntryDraft;
  readonly id?: string;
}

/** On what condition something is appended. */
export interface AppendOptions {
  /** `conflict` unless this is the leaf now; `null` is before the root. */
  readonly expectedLeafId?: string | null;
  /** Where the first item hangs, instead of on the tip: a branch and its entries in one write. `null`: before the root. */
  readonly parentId?: string | null;
  /** Asked under the same exclusion as the write; `false` refuses it with `fenced`. */
  readonly fence?: () => boolean;
}

/** What an append came to. */
export interface Appended {
  /** One for each item, as it stands in the session. */
  readonly entries: readonly Entry[];
  readonly leafId: string | null;
}

/** Which entries of a session. */
export interface EntryRange {
  /** The active branch, or everything in the order it was written. */
  readonly along: "branch" | "all";
  readonly before?: string;
  readonly after?: string;
  readonly limit: number;
  /** A page may end sooner, where its entries come to more than so much, and then says that there are more. */
  readonly bytes?: number;
}

/** A page of a session. */
export interface EntryPage {
  /** Oldest first. */
  readonly entries: readonly Entry[];
  readonly hasEarlier: boolean;
  readonly hasLater: boolean;
  /** Where the session stood when the page was read. */
  readonly leafId: string | null;
}

/** Sessions and entries. */
export interface SessionStore {
  /** `conflict` when the key, the session id (without regard to case) or the label is taken. */
  create(scope: Scope, init: SessionInit): Promise<SessionRecord>;
  get(scope: Scope, sessionId: string): Promise<SessionRecord | null>;
  /** All that a lookup finds, archived ones too; `resolveReference` asks in order. */
  find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]>;
  list(scope: Scope, query: SessionQuery): Promise<SessionPage>;
  /** How many sessions a list would show in all; `limit` and `cursor` do not matter. */
  count(scope: Scope, query: SessionQuery): Promise<number>;
  /** The agents that have sessions in the scope, archived ones too, in order. */
  agentIds(scope: Scope): Promise<readonly string[]>;
  /** `conflict` when `ifVersion` or `ifUpdatedAt` is not what it is now, or the label is taken. */
  patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options?: { ifVersion?: number; ifUpdatedAt?: number },
  ): Promise<SessionRecord>;
  /** Appends entries in order, all or none; acknowledged ones are kept. Raw: `guardedAppend` checks that results answer calls. */
  append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options?: AppendOptions,
  ): Promise<Appended>;
  /** Moves the leaf, and remembers it. */
  branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options?: Pick<AppendOptions, "fence">,
  ): Promise<SessionRecord>;
  /** A new session with the path to an entry. */
  fork(scope: Scope, sessionId: string, entryId: string | null, init: SessionInit): Promise<SessionRecord>;
  context(scope: Scope, sessionId: string, options?: ContextOptions): Promise<SessionContext | null>;
  /** One entry, on whatever branch; `null`: there is none of this id. */
  entry(scope: Scope, sessionId: string, entryId: string): Promise<Entry | null>;
  page(scope: Scope, sessionId: string, range: EntryRange): Promise<EntryPage | null>;
  /** A hint that a session will be wanted soon. Does nothing that anybody could see. */
  prewarm(scope: Scope, sessionId: string): Promise<void>;
  /** Into the trash: in no list, lookup or search, its key and label free again. `false`: was not there. `conflict` when it was used
   * since `ifUpdatedAt`. */
  remove(scope: Scope, sessionId: string, options?: { ifUpdatedAt?: number }): Promise<boolean>;
  /** Back out of the trash; `conflict` when its key or label has been taken since. */
  restore(scope: Scope, sessionId: string): Promise<SessionRecord>;
  /** What is in the trash, the last removed first. */
  trashed(scope: Scope): Promise<readonly TrashedSession[]>;
  /** Out of the trash for good, with its state; its session id is free again. `false`: was not in the trash. */
  purge(scope: Scope, sessionId: string, options?: { ifRemovedAt?: number }): Promise<boolean>;
  /** A new session with the entries of a tree that was made elsewhere, under their ids. */
  adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord>;
  /**
   * A new session under the same key, with the same metadata and label; the old one stays readable under
   * `agent:<id>:reset:<old sessionId>`.
   */
  reset(
    scope: Scope,
    sessionId: string,
    options?: { sessionId?: string } & Pick<AppendOptions, "fence">,
  ): Promise<{ readonly old: SessionRecord; readonly fresh: SessionRecord }>;
  /**
   * Makes tombstones of entries, here and in every copy that the user's other sessions and trash have: place, role and
   * pairing stay, what was said is gone for good. The one thing that rewrites a session.
   */
  redact(scope: Scope, sessionId: string, entryIds: readonly string[]): Promise<Redaction>;
}

/** What to look for. */
export interface SearchQuery {
  readonly text: string;
  readonly sessionId?: string;
  /** In these sessions alone. */
  readonly reach?: SessionReach;
  readonly role?: string;
  readonly since?: number;
  readonly until?: number;
  /** 1 to 50; by default 10. */
  readonly limit?: number;
  /** The text of an entry as the asker sees it; `null`: none. Other words of the entry neither match nor rank it. */
  shownText?(entry: Entry): string | null;
}

/** An entry that was found. */
export interface SearchHit {
  readonly sessionId: string;
  readonly key: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
  /** Text around the first match. */
  readonly snippet: string;
}

/** Full text over whole sessions, tool results too. */
export interface SearchStore {
  /**
   * Best first: entries with all words, then those with any of them. The order depends on no entry outside of the scope and
   * the reach of the query.
   */
  search(
    scope: Scope,
    query: SearchQuery,
  ): Promise<{ readonly hits: readonly SearchHit[]; readonly behind: number }>;
}

/** A state module's value as it is kept. */
export interface StateValue {
  readonly value: Json;
  /** From 1 up; goes up with every change. */
  readonly version: number;
}

/** Snapshots of an agent's state modules, by session. */
export interface StateStore {
  get(scope: Scope, sessionId: string, key: string): Promise<StateValue | null>;
  /** `ifVersion` null: only if there is none yet. Returns the new version. */
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

/** Large contents, by their hash. */
export interface BlobStore {
  /** The SHA-256 of the bytes; the same bytes again change nothing. */
  put(scope: Scope, bytes: Uint8Array): Promise<string>;
  get(scope: Scope, sha256: string): Promise<Uint8Array | null>;
}

/** What has changed in a store. */
export type StoreChange =
  | {
      readonly type: "created" | "removed" | "restored" | "redacted";
      readonly session: SessionRecord;
    }
  /** `changed`: the fields of its metadata that are not as they were; left out: not known. */
  | {
      readonly type: "patched";
      readonly session: SessionRecord;
      readonly changed?: readonly string[];
    }
  /** Its key has moved on to `fresh`; both have been told of as `patched` and `created` before. */
  | { readonly type: "reset"; readonly session: SessionRecord; readonly fresh: SessionRecord }
  | { readonly type: "purged"; readonly session: TrashedSession }
  | { readonly type: "appended"; readonly session: SessionRecord; readonly entries: readonly Entry[] };

/** What this process changes. */
export interface WatchStore {
  /** Called after a change is kept, in order for each session, and never again after the returned function. */
  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void;
}
