import type { ListSessionsResponse, SessionInfo } from "@agentclientprotocol/sdk/unstable";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { SessionDetailsPayload } from "../../protocol/session-details.ts";
import { inTurns } from "../../tools/reading/in-turns.ts";
import type { AcpParts } from "./contract.ts";

const pageSize = 50;
const atATime = 8;
const longestTitle = 80;

export interface ListQuery {
  readonly cwd: string | null;
  readonly cursor: string | null;
}

/** The sessions that a person would go on with: what other sessions, hooks and clocks began is left out. */
export async function listSessions(
  parts: AcpParts,
  { cwd, cursor }: ListQuery,
): Promise<ListSessionsResponse> {
  const { calls, whose } = parts;
  for (let at = cursor; ; ) {
    const { sessions: rows, nextCursor = null } = await calls.call("sessions.list", {
      ...whose,
      kinds: ["main", "group", "other"],
      limit: pageSize,
      ...(at === null ? {} : { cursor: at }),
    });
    const wanted = rows.filter(({ spawnedBy }) => spawnedBy === undefined);
    const seen = await inTurns(wanted, atATime, ({ key }) => detailsOf(parts, key));
    const sessions = seen.flatMap((each) =>
      each !== null && isIn(each, cwd) ? [infoOf(parts, each, cwd)] : [],
    );
    // An empty page with another behind it looks like the end to some editors.
    if (sessions.length > 0 || nextCursor === null) return { sessions, nextCursor };
    at = nextCursor;
  }
}

/** `null`: gone since it was listed. */
async function detailsOf({ calls, whose }: AcpParts, key: string): Promise<SessionDetailsPayload | null> {
  try {
    return await calls.call("sessions.get", { ...whose, key });
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === "not_found") return null;
    throw error;
  }
}

/** Who is no admin is told no paths: then none is another's. */
function isIn(details: SessionDetailsPayload, cwd: string | null): boolean {
  return cwd === null || details.cwd === undefined || bare(details.cwd) === bare(cwd);
}

function bare(path: string): string {
  return path.length > 1 ? path.replace(/[/\\]+$/, "") : path;
}

function infoOf({ cwd: here }: AcpParts, details: SessionDetailsPayload, asked: string | null): SessionInfo {
  return {
    sessionId: details.key,
    cwd: details.cwd ?? asked ?? here,
    title: titleOf(details),
    updatedAt: new Date(details.updatedAt).toISOString(),
  };
}

export function titleOf({ displayName, label, summary, key }: SessionDetailsPayload): string {
  const words = escapeToLine((displayName ?? label ?? summary ?? key).replace(/\s+/g, " ").trim());
  return words.length > longestTitle ? `${cutText(words, longestTitle)}…` : words;
}
