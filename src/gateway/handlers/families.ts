import type { HandledMethod } from "../calls/contract.ts";

/** Which methods need what: a command that only looks opens no more than a folder. */

export type ReadingMethod =
  | "sessions.list"
  | "sessions.get"
  | "sessions.resolve"
  | "sessions.preview"
  | "sessions.tree"
  | "sessions.entries"
  | "sessions.usage"
  | "sessions.search"
  | "sessions.context"
  | "sessions.export"
  | "sessions.trash"
  | "chat.history"
  | "blobs.get";

export type ChangingMethod =
  | "sessions.create"
  | "sessions.fork"
  | "sessions.branch"
  | "sessions.rename"
  | "sessions.archive"
  | "sessions.patch"
  | "sessions.reset"
  | "sessions.delete"
  | "sessions.restore"
  | "sessions.import"
  | "sessions.redact"
  | "maintenance.run"
  | "config.get"
  | "config.reload"
  | "users.list"
  | "users.remove";

/** Of the gateway's own: who may call it. */
export type TokenMethod = "tokens.create" | "tokens.list" | "tokens.revoke";

/** Those that a folder is enough for. */
export type FolderMethod = ReadingMethod | ChangingMethod;

/** Those that need agents, runs or tools. */
export type TalkingMethod = Exclude<HandledMethod, FolderMethod | TokenMethod>;
