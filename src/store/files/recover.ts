import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { SessionHeader } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { readKey } from "../../core/keys.ts";
import { parseSession } from "../../core/parse-session.ts";
import { userIdOfSegment } from "../../core/path-segment.ts";
import { isRecord } from "../../core/shape.ts";
import { SessionTree } from "../../core/tree.ts";
import type { SessionMeta } from "../contract.ts";
import { metaOf } from "../session-meta.ts";
import type { Disk } from "./disk.ts";
import { readWhole } from "./disk-files.ts";
import type { AgentPlace } from "./layout.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";

/** What had to be put right, or could not be. */
export interface Recovery {
  readonly kind: "set_aside" | "rebuilt" | "claim_changed" | "not_taken_in" | "not_indexed";
  readonly file: string;
  readonly note: string;
}

/** Opens a database; one that cannot be read is set aside, never overwritten, and begun anew. */
export function openOrSetAside<T>(
  path: string,
  open: (path: string) => T,
  now: number,
  report: (found: Recovery) => void,
): T {
  try {
    return open(path);
  } catch (error) {
    if (error instanceof SkeinError || !isDamage(error)) throw error;
    const aside = `${path}.unreadable-${now}`;
    for (const ending of ["", "-wal", "-shm"]) {
      if (existsSync(path + ending)) renameSync(path + ending, aside + ending);
    }
    const note = `it could not be read (${(error as Error).message}) and was set aside as ${aside}`;
    report({ kind: "set_aside", file: path, note });
    return open(path);
  }
}

function isDamage(error: unknown): boolean {
  return /malformed|not a database|corrupt|file is encrypted/i.test(String((error as Error)?.message));
}

/**
 * Takes the claims anew from the logs, for a `work.db` that was lost. What was waiting there is lost; what was said is
 * not.
 */
export function rebuildClaims(
  root: string,
  disk: Disk,
  work: WorkDb,
  newId: () => string,
  report: (found: Recovery) => void,
): void {
  let count = 0;
  for (const found of logsIn(root, disk)) {
    const row = rowOf(found, disk, newId);
    if (row === null) {
      report({
        kind: "not_taken_in",
        file: found.path,
        note: "it has no header that says which session it is",
      });
      continue;
    }
    count += 1;
    claimWhatIsFree(work, row, found.path, report);
  }
  if (count === 0) return;
  const note = `the claims of ${count} sessions were taken from their logs; what was waiting to be done is lost`;
  report({ kind: "rebuilt", file: join(root, "work.db"), note });
}

/** Two logs that claim one key or label: the first has it, the other gets a key of its own. */
function claimWhatIsFree(
  work: WorkDb,
  row: SessionRow,
  file: string,
  report: (found: Recovery) => void,
): void {
  const own = { ...row, key: `agent:${row.agentId}:session:${row.sessionId}`, label: null };
  for (const each of [row, { ...row, label: null }, own, { ...own, key: `${own.key}:${row.uid}` }]) {
    try {
      work.claim(each);
      if (each !== row)
        report({ kind: "claim_changed", file, note: `its key or label is taken; it is now ${each.key}` });
      return;
    } catch (error) {
      if (!(error instanceof SkeinError) || error.code !== "conflict") throw error;
    }
  }
  report({ kind: "not_taken_in", file, note: "another session has its id" });
}

interface FoundLog extends AgentPlace {
  readonly path: string;
  readonly sessionId: string;
  readonly trashed: boolean;
}

const logEnding = ".log.jsonl";

function* logsIn(root: string, disk: Disk): Generator<FoundLog> {
  yield* logsOfUser(root, null, disk);
  for (const segment of disk.list(join(root, "users"))) {
    const home = join(root, "users", segment);
    yield* logsOfUser(home, userIdOfSegment(segment) ?? userNamedIn(home, disk), disk);
  }
  for (const uid of disk.list(join(root, "trash"))) {
    for (const sessionId of logNames(join(root, "trash", uid), disk)) {
      const path = join(root, "trash", uid, `${sessionId}${logEnding}`);
      yield { path, sessionId, trashed: true, userId: null, agentId: "" };
    }
  }
}

function* logsOfUser(home: string, userId: string | null, disk: Disk): Generator<FoundLog> {
  for (const agentId of disk.list(join(home, "agents"))) {
    const folder = join(home, "agents", agentId, "sessions");
    for (const sessionId of logNames(folder, disk)) {
      yield { path: join(folder, `${sessionId}${logEnding}`), sessionId, trashed: false, userId, agentId };
    }
  }
}

function logNames(folder: string, disk: Disk): string[] {
  return disk
    .list(folder)
    .filter((name) => name.endsWith(logEnding) && !name.startsWith("."))
    .map((name) => name.slice(0, -logEnding.length));
}

function userNamedIn(home: string, disk: Disk): string | null {
  const bytes = readWhole(disk, join(home, "user.json"));
  const held: unknown = bytes === null ? null : JSON.parse(Buffer.from(bytes).toString("utf8"));
  return isRecord(held) && typeof held.userId === "string" ? held.userId : null;
}

function rowOf(found: FoundLog, disk: Disk, newId: () => string): SessionRow | null {
  const bytes = readWhole(disk, found.path);
  const session = parseSession(bytes ?? new Uint8Array(0));
  const { header } = session;
  if (header === null) return null;
  const { uid, key, user, agent } = header.skein ?? {};
  const agentId = found.agentId || (typeof agent === "string" ? agent : agentOf(key));
  if (agentId === null) return null;
  const { meta } = metaOf(header, SessionTree.from(session).entries());
  return {
    uid: typeof uid === "string" ? uid : newId(),
    userId: found.trashed ? (typeof user === "string" ? user : null) : found.userId,
    agentId,
    key:
      typeof key === "string" && !("problem" in readKey(key))
        ? key
        : `agent:${agentId}:session:${found.sessionId}`,
    sessionId: found.sessionId,
    label: meta.label ?? null,
    createdAt: Date.parse(header.timestamp ?? "") || 0,
    state: found.trashed ? "trashed" : "live",
    first: firstOf(header),
  };
}

function agentOf(key: unknown): string | null {
  const parsed = typeof key === "string" ? readKey(key) : { problem: "" };
  return "agentId" in parsed ? parsed.agentId : null;
}

function firstOf(header: SessionHeader): SessionRow["first"] {
  const meta = isRecord(header.skein?.meta) ? (header.skein.meta as SessionMeta) : {};
  const parent = header.parentSession === undefined ? {} : { parentSession: header.parentSession };
  return { cwd: header.cwd ?? "", meta, ...parent };
}
