import "./check-node.ts";

export { createStore, type StoreOptions } from "./app/folder.ts";
export {
  type GuardDeps,
  type GuardedAppend,
  type GuardNote,
  type GuardOptions,
  guardedAppend,
} from "./sessions/append.ts";
export { type CompactionDeps, compactSession } from "./sessions/compact.ts";
export type {
  CompactionDone,
  CompactionNotDone,
  CompactionOptions,
  CompactionOutcome,
} from "./sessions/compaction-summary.ts";
export type {
  Appended,
  AppendItem,
  AppendOptions,
  BlobStore,
  EmbeddedEntry,
  Embedding,
  EntryPage,
  EntryRange,
  Json,
  ListedSession,
  MetaPatch,
  Redaction,
  Scope,
  SearchHit,
  SearchQuery,
  SearchStore,
  SessionDigest,
  SessionInit,
  SessionMeta,
  SessionPage,
  SessionQuery,
  SessionReach,
  SessionRecord,
  SessionSort,
  SessionStore,
  StateStore,
  StateValue,
  Store,
  StoreChange,
  TrashedSession,
  UnembeddedEntry,
  WatchStore,
} from "./store/contract.ts";
export type { CheckFinding, Progress } from "./store/files/check.ts";
export type { Disk } from "./store/files/disk.ts";
export type { Namespace } from "./store/files/layout.ts";
export type { Recovery } from "./store/files/recover.ts";
export type { FilesStore } from "./store/files/store.ts";
export type { FilesUpkeep, HealthProblem } from "./store/files/upkeep.ts";
export { channelOf } from "./store/list-query.ts";
export type { SummaryUsage } from "./transcript/compaction/summarize.ts";
export type { Summarize, SummaryRequest } from "./transcript/compaction/summarize-piece.ts";
