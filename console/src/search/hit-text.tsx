import { Fragment } from "react";
import type { Result } from "skein/client";
import { userParam } from "../connect/user-param.ts";
import { sessionPath } from "../session/session-place.ts";
import { plainText } from "../ui/plain-text.ts";

export type SearchHit = Result<"sessions.search">["hits"][number];

const roleWords: Readonly<Record<string, string>> = {
  user: "message",
  assistant: "answer",
  toolResult: "tool result",
  bashExecution: "shell",
  compaction: "summary",
};

export function roleWord(role: string): string {
  return roleWords[role] ?? plainText(role);
}

/** Where a hit is: its entry, on its own branch if that is not the active one. */
export function hitPath({ key, entryId, active }: SearchHit, userId?: string): string {
  return sessionPath({ key, ...userParam({ userId }) }, "", {
    entry: entryId,
    branch: active ? undefined : entryId,
  });
}

/** The snippet on one line, with the words marked. */
export function HitText({ hit: { snippet, ranges } }: { readonly hit: SearchHit }) {
  const parts: { readonly text: string; readonly isMarked: boolean }[] = [];
  let from = 0;
  for (const [start = 0, end = 0] of ranges) {
    if (start < from || end <= start) continue;
    parts.push(
      { text: snippet.slice(from, start), isMarked: false },
      { text: snippet.slice(start, end), isMarked: true },
    );
    from = end;
  }
  parts.push({ text: snippet.slice(from), isMarked: false });
  return parts.map(({ text, isMarked }, index) => {
    const shown = plainText(text.replace(/\s+/g, " "));
    return <Fragment key={index}>{isMarked ? <mark>{shown}</mark> : shown}</Fragment>;
  });
}
