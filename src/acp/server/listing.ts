import type { ListSessionsResponse, SessionInfo } from "@agentclientprotocol/sdk/unstable";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { SessionRow } from "../../protocol/session-list.ts";
import type { AcpParts } from "./contract.ts";

const pageSize = 50;
/** Behind a page that has nothing of the folder: as many as a list gives. */
const strideSize = 1000;
const longestTitle = 80;

export interface ListQuery {
  readonly cwd: string | null;
  readonly cursor: string | null;
}

/**
 * The sessions that a person would go on with: what other sessions, hooks and clocks began is left out. One call for a page;
 * the signal ends the search for the next one that has something of the folder.
 */
export async function listSessions(
  parts: AcpParts,
  { cwd, cursor }: ListQuery,
  signal: AbortSignal,
): Promise<ListSessionsResponse> {
  const { calls, whose } = parts;
  let limit = pageSize;
  for (let at = cursor; ; limit = strideSize) {
    const params = {
      ...whose,
      kinds: ["main" as const, "group" as const, "other" as const],
      limit,
      includeDetails: true,
      ...(at === null ? {} : { cursor: at }),
    };
    const page = await calls.call("sessions.list", params, { signal });
    const { sessions: rows, nextCursor = null } = page;
    const sessions = rows
      .filter((row) => row.spawnedBy === undefined && isIn(row, cwd))
      .map((row) => infoOf(parts, row, cwd));
    // An empty page with another behind it looks like the end to some editors.
    if (sessions.length > 0 || nextCursor === null) return { sessions, nextCursor };
    at = nextCursor;
  }
}

/** Who is no admin is told no paths: then none is another's. */
function isIn({ cwd: own }: SessionRow, cwd: string | null): boolean {
  return cwd === null || own === undefined || isSameFolder(own, cwd);
}

export function isSameFolder(one: string, other: string): boolean {
  return bare(one) === bare(other);
}

function bare(path: string): string {
  return path.length > 1 ? path.replace(/[/\\]+$/, "") : path;
}

function infoOf({ cwd: here }: AcpParts, row: SessionRow, asked: string | null): SessionInfo {
  return {
    sessionId: row.key,
    cwd: row.cwd ?? asked ?? here,
    title: titleOf(row),
    updatedAt: new Date(row.updatedAt).toISOString(),
  };
}

export function titleOf({
  displayName,
  label,
  summary,
  key,
}: Pick<SessionRow, "displayName" | "label" | "summary" | "key">): string {
  const words = escapeToLine((displayName ?? label ?? summary ?? key).replace(/\s+/g, " ").trim());
  return words.length > longestTitle ? `${cutText(words, longestTitle)}…` : words;
}
