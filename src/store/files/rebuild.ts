import { join } from "node:path";
import type { SessionHeader } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { readKey } from "../../core/keys.ts";
import { parseSession } from "../../core/parse-session.ts";
import { isRecord } from "../../core/shape.ts";
import { SessionTree } from "../../core/tree.ts";
import type { SessionMeta } from "../contract.ts";
import { metaOf } from "../session-meta.ts";
import type { Disk } from "./disk.ts";
import { readWhole } from "./disk-files.ts";
import type { FoundAgent } from "./folders.ts";
import { agentsIn, sessionsIn, trashIn } from "./folders.ts";
import type { Namespace } from "./layout.ts";
import { homeOf, sessionPaths, workDbName } from "./layout.ts";
import type { Recovery } from "./recover.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";

export interface RebuildParts {
  readonly root: string;
  readonly disk: Disk;
  readonly work: WorkDb;
  readonly namespace: Namespace;
  readonly report: (found: Recovery) => void;
  newId(): string;
}

/**
 * Takes the claims anew from the logs, for a `work.db` that was lost. What was waiting there is lost; what was said is
 * not.
 */
export function rebuildClaims(parts: RebuildParts): void {
  const { root, disk, report } = parts;
  let count = 0;
  for (const agent of agentsIn(root, disk)) {
    for (const sessionId of sessionsIn(root, agent, disk).logs) {
      const path = sessionPaths(root, agent, sessionId).log;
      if (claimLog(parts, path, { ...agent, sessionId }) !== null) count += 1;
    }
  }
  for (const { uid, sessionId, path } of trashIn(root, disk)) {
    if (claimTrash(parts, path, uid, sessionId) !== null) count += 1;
  }
  if (count === 0) return;
  const note = `the claims of ${count} sessions were taken from their logs; what was waiting to be done is lost`;
  report({ kind: "rebuilt", file: join(root, workDbName), note });
}

/** Claims for a log that `work.db` does not know. `null`: it cannot be told which session it is. */
export function claimLog(
  parts: RebuildParts,
  path: string,
  found: FoundAgent & { readonly sessionId: string },
): SessionRow | null {
  const read = readLog(parts, path);
  if (read === null) return null;
  const { header, meta, key } = read;
  const { user } = header.skein ?? {};
  const { agentId, sessionId, home } = found;
  const userId = typeof user === "string" ? user : home === "" ? null : found.userId;
  const named = keyOf(key ?? header.skein?.key) ?? `agent:${agentId}:session:${sessionId}`;
  const row = { ...baseRow(parts, header, meta), userId, agentId, home, sessionId, key: named };
  return claimWhatIsFree(parts, row, path);
}

function claimTrash(parts: RebuildParts, path: string, uid: string, sessionId: string): SessionRow | null {
  const read = readLog(parts, path);
  if (read === null) return null;
  const { header, meta, key } = read;
  const { user, agent } = header.skein ?? {};
  const named = keyOf(key ?? header.skein?.key);
  const agentId = typeof agent === "string" ? agent : agentOf(named);
  if (agentId === null) {
    parts.report({ kind: "not_taken_in", file: path, note: "it does not say which agent it belongs to" });
    return null;
  }
  const userId = typeof user === "string" ? user : null;
  const row: SessionRow = {
    ...baseRow(parts, header, meta),
    uid,
    userId,
    agentId,
    home: homeOf(parts.namespace, userId),
    sessionId,
    key: named ?? `agent:${agentId}:session:${sessionId}`,
    state: "trashed",
    removedAt: parts.disk.stat(path)?.modifiedAt ?? 0,
  };
  return claimWhatIsFree(parts, row, path);
}

function readLog(
  { disk, report }: RebuildParts,
  path: string,
): { header: SessionHeader; meta: SessionMeta; key: string | null } | null {
  const session = parseSession(readWhole(disk, path) ?? new Uint8Array(0));
  const { header } = session;
  if (header === null) {
    report({ kind: "not_taken_in", file: path, note: "it has no header that says which session it is" });
    return null;
  }
  return { header, ...metaOf(header, SessionTree.from(session).entries()) };
}

function baseRow(
  { newId }: RebuildParts,
  header: SessionHeader,
  meta: SessionMeta,
): Omit<SessionRow, "userId" | "agentId" | "home" | "sessionId" | "key"> {
  const uid = header.skein?.uid;
  const parent = header.parentSession === undefined ? {} : { parentSession: header.parentSession };
  const first = isRecord(header.skein?.meta) ? (header.skein.meta as SessionMeta) : {};
  return {
    uid: typeof uid === "string" ? uid : newId(),
    label: meta.label ?? null,
    createdAt: Date.parse(header.timestamp ?? "") || 0,
    state: "live",
    first: { cwd: header.cwd ?? "", meta: first, ...parent },
    removedAt: null,
    todo: null,
  };
}

/** Two logs that claim one key or label: the first has it, the other gets a key of its own. */
export function claimWhatIsFree(
  { work, report }: RebuildParts,
  row: SessionRow,
  file: string,
): SessionRow | null {
  const own = { ...row, key: `agent:${row.agentId}:session:${row.sessionId}`, label: null };
  for (const each of [row, { ...row, label: null }, own, { ...own, key: `${own.key}:${row.uid}` }]) {
    try {
      work.claim(each);
      if (each !== row)
        report({ kind: "claim_changed", file, note: `its key or label is taken; it is now ${each.key}` });
      return each;
    } catch (error) {
      if (!(error instanceof SkeinError) || error.code !== "conflict") throw error;
    }
  }
  report({ kind: "not_taken_in", file, note: "another session has its id" });
  return null;
}

function keyOf(key: unknown): string | null {
  return typeof key === "string" && !("problem" in readKey(key)) ? key : null;
}

function agentOf(key: string | null): string | null {
  const parsed = key === null ? { problem: "" } : readKey(key);
  return "agentId" in parsed ? parsed.agentId : null;
}
