import { Fragment } from "react";
import type { Result } from "skein/client";
import { sessionPath, userParam } from "../paths.ts";
import { plainText } from "../ui/plain-text.ts";

export type SearchHit = Result<"sessions.search">["hits"][number];

/** Returns the URL of a hit. The gateway chooses a branch that contains the entry and what follows it. */
export function hitPath({ key, entryId }: SearchHit, userId?: string): string {
  return sessionPath({ key, ...userParam({ userId }) }, "", { entry: entryId });
}

/** The snippet on one line, with the matching words marked. */
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
