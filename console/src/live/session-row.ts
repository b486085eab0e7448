import type { Result, SkeinClient } from "skein/client";
import { oneLine } from "../ui/plain-text.ts";

export type SessionRow = Result<"sessions.list">["sessions"][number];

/** What people call it: the name or label, otherwise the key without `agent:`. */
export function rowName({
  displayName,
  label,
  key,
}: Pick<SessionRow, "displayName" | "label" | "key">): string {
  return oneLine(displayName ?? label ?? shortKey(key), 100);
}

/** With its user, for a token that sees those of several: keys and labels are unique only for one user. */
export function fullName(
  { hello }: SkeinClient,
  row: Pick<SessionRow, "displayName" | "label" | "key"> & { readonly userId?: string | undefined },
): string {
  const { userId } = row;
  return hello.allUsers && userId !== undefined ? `${rowName(row)} · ${oneLine(userId, 40)}` : rowName(row);
}

/** Generated IDs are cut to their last six digits, which tell sessions of the same time apart. */
function shortKey(key: string): string {
  return key
    .replace(/^agent:/, "")
    .replace(/:main$/, "")
    .replace(/(subagent:)[0-9a-f-]{36}:/, "$1")
    .replace(/(session:|subagent:)[0-9a-f-]{10,30}([0-9a-f]{6})$/, "$1$2");
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
