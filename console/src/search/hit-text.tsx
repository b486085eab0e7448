import { Fragment } from "react";
import type { Result } from "skein/client";
import { sessionPath, userParam } from "../paths.ts";
import { withoutMarkup } from "../ui/preview.ts";

export type SearchHit = Result<"sessions.search">["hits"][number];

/** Returns the URL of a hit. The gateway chooses a branch that contains the entry and what follows it. */
export function hitPath({ key, entryId }: SearchHit, userId?: string): string {
  return sessionPath({ key, ...userParam({ userId }) }, "", { entry: entryId });
}

/** The kinds of entries that the transcript shows as Markdown. */
const markdownRoles = new Set(["user", "assistant", "summary"]);

/** Marks the beginning of a match while Markdown syntax is removed. */
const matchStart = "\ue000";
const matchEnd = "\ue001";

/** The snippet on one line, with the matching words marked. */
export function HitText({ hit: { snippet: given, ranges, role } }: { readonly hit: SearchHit }) {
  const snippet = given.replace(/[\ue000\ue001]/g, "\ufffd");
  let marked = "";
  let from = 0;
  for (const [start = 0, end = 0] of ranges) {
    if (start < from || end <= start) continue;
    marked += `${snippet.slice(from, start)}${matchStart}${snippet.slice(start, end)}${matchEnd}`;
    from = end;
  }
  marked += snippet.slice(from);
  const parts = (markdownRoles.has(role) ? withoutMarkup(marked) : marked)
    .replace(/\s+/g, " ")
    .split(matchStart);
  return parts.map((part, index) => {
    const end = index === 0 ? -1 : part.indexOf(matchEnd);
    return (
      <Fragment key={index}>
        {end > 0 && <mark>{part.slice(0, end)}</mark>}
        {part.slice(end + 1)}
      </Fragment>
    );
  });
}
