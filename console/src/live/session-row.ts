import type { Result, SkeinClient } from "skein/client";
import { isBlank, oneLine } from "../ui/plain-text.ts";

export type SessionRow = Result<"sessions.list">["sessions"][number];
export type NamedRow = Pick<SessionRow, "displayName" | "label" | "key"> & {
  readonly userId?: string | undefined;
};

/**
 * Returns a session's display name: its label or name, otherwise its key without `agent:`. The label comes first,
 * because agents refer to helpers by their labels, and a helper's name is only the beginning of its task.
 */
export function rowName({
  displayName,
  label,
  key,
}: Pick<SessionRow, "displayName" | "label" | "key">): string {
  return visibleLine(label) || visibleLine(displayName) || oneLine(shortKey(key), 100);
}

/**
 * Returns a name on one line. A name of blank characters is treated as missing, because a link with it would be
 * invisible.
 */
function visibleLine(name = ""): string {
  const line = oneLine(name, 100);
  return isBlank(line) ? "" : line;
}

/** Returns the task of a helper that is shown under its label, otherwise an empty string. */
export function taskOf({ displayName, label }: Pick<SessionRow, "displayName" | "label">): string {
  return visibleLine(label) === "" ? "" : visibleLine(displayName);
}

/** Returns the name with its user, for a token that covers several users. Keys and labels are unique only per user. */
export function fullName(client: SkeinClient, row: NamedRow): string {
  const user = shownUser(client, row);
  return user === null ? rowName(row) : `${rowName(row)} · ${user}`;
}

/** Returns the user to show with a session's name, or `null` if the token covers only one. */
export function shownUser({ hello }: SkeinClient, { userId }: Pick<NamedRow, "userId">): string | null {
  return hello.allUsers && userId !== undefined ? oneLine(userId, 40) : null;
}

/** Generated IDs are shortened to their last six digits, which distinguish sessions created at the same time. */
function shortKey(key: string): string {
  return key
    .replace(/^agent:/, "")
    .replace(/:main$/, "")
    .replace(/(subagent:)[0-9a-f-]{36}:/, "$1")
    .replace(/(session:|subagent:)[0-9a-f-]{10,30}([0-9a-f]{6})$/, "$1$2");
}

/** The kinds in plain words. The gateway counts sub-agents among the other sessions. */
export const kindWords: Readonly<Record<SessionRow["kind"], string>> = {
  main: "main",
  group: "group",
  cron: "schedule",
  hook: "hook",
  node: "node",
  other: "other",
};

export function kindWord({ key, kind }: Pick<SessionRow, "key" | "kind">): string {
  return /^agent:[^:]+:subagent:/.test(key) ? "sub-agent" : kindWords[kind];
}

/** Describes the state of a session's last run. */
export function stateWord({ status }: Pick<SessionRow, "status">): string {
  if (status === undefined || status === "idle") return "";
  return {
    queued: "queued",
    running: "working",
    waiting: "waiting",
    error: "failed",
    timeout: "timed out",
    aborted: "aborted",
  }[status];
}

/** Keys are unique per user. */
export function idOf({
  key,
  userId,
}: {
  readonly key: string;
  readonly userId?: string | undefined;
}): string {
  return `${userId ?? ""}\n${key}`;
}
