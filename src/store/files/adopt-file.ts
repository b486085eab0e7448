import { basename, join } from "node:path";
import { isRecord } from "../../core/is-record.ts";
import { readAgentId, sessionIdProblem } from "../../core/names.ts";
import { parseSession } from "../../core/parse-session.ts";
import { Slices } from "../../core/slices.ts";
import { SessionTree } from "../../core/tree.ts";
import type { Json, Scope } from "../contract.ts";
import { claimsForDisplay, harmlessMeta, metaOf } from "../session-meta.ts";
import { copyTree } from "../session-trees.ts";
import { parseJson, readOwn, replaceWhole } from "./disk.ts";
import { finishFork } from "./fork-claims.ts";
import { listingName } from "./index-service.ts";
import type { FoundAgent } from "./layout.ts";
import { agentsIn, homeOf, namesIn, ownerOf, sessionPaths, sessionsFolder, sessionsIn } from "./layout.ts";
import { idFromName, notSessionReason } from "./lone-file.ts";
import type { StoreFolder } from "./rebuild.ts";
import { adoptedFrom, claimFreeNames, orProblem, userFrom } from "./rebuild.ts";
import type { SessionRow } from "./work-db.ts";
import { headerOf } from "./work-db.ts";
import { underLock, WriteLock } from "./write-lock.ts";

/**
 * Turns a session file from another program (pi, OpenClaw) in one of Skein's folders into a session. Its log is written
 * with the same entry IDs, and the file is kept as `<sessionId>.jsonl.orig`. The session becomes visible once it is
 * complete. The next start completes an interrupted adoption, or undoes it so that it can be repeated. Damaged lines
 * are kept only in the original. Of the file's metadata, only restrictions take effect. The session uses its agent's
 * working directory. If the file cannot be adopted, reports the reason and returns `null`.
 */
export async function adoptFile(
  folder: StoreFolder,
  agent: FoundAgent,
  name: string,
): Promise<SessionRow | null> {
  const { root, report } = folder;
  const path = join(sessionsFolder(root, agent), name);
  const refuse = (note: string) => {
    report({ kind: "not_taken_in", file: path, note });
    return null;
  };
  const file = lookAt(folder, agent, name);
  if (file === null) return null;
  if ("problem" in file) return refuse(file.problem);
  const lock = new WriteLock(sessionPaths(root, agent, file.sessionId).lock, folder.lock);
  try {
    await lock.acquire();
    const done = await adoptUnderLock(folder, file);
    return "problem" in done ? refuse(done.problem) : done.row;
  } catch (error) {
    // A full disk or a held lock must not prevent the store from opening.
    return refuse((error as Error).message);
  } finally {
    lock.release();
  }
}

/** Determines whether a file can be adopted, and as which session. Returns `null` if there is no such file. */
export function lookAt(
  folder: StoreFolder,
  agent: FoundAgent,
  name: string,
): ForeignFile | { readonly problem: string } | null {
  const path = join(sessionsFolder(folder.root, agent), name);
  const read = orProblem(() => readForeign(folder, path));
  if (read === null || "problem" in read) return read;
  const whose = userFrom(read.tree.header, agent.userId);
  if ("problem" in whose) return whose;
  return { agent: { ...agent, userId: whose.userId }, path, sessionId: read.sessionId };
}

interface ForeignFile {
  readonly agent: FoundAgent & { readonly userId: string | null };
  readonly path: string;
  readonly sessionId: string;
}

interface ForeignSession {
  readonly tree: SessionTree;
  readonly sessionId: string;
  readonly size: number;
  readonly damaged: number;
}

/** Returns `null` if there is no such file. */
function readForeign({ disk }: StoreFolder, path: string): ForeignSession | { problem: string } | null {
  const bytes = readOwn(disk, path);
  if (bytes === null) return null;
  const session = parseSession(bytes);
  const problem = notSessionReason(session);
  if (problem !== null) return { problem };
  if (session.readOnly)
    return {
      problem: `its version ${session.version} is newer than the latest version that this release of Skein supports`,
    };
  const tree = SessionTree.from(session, { lostHeader: { id: idFromName(path) } });
  const sessionId = [tree.header.id, idFromName(path)].find((id) => sessionIdProblem(id) === null);
  if (sessionId === undefined) return { problem: "its ID cannot be used as a session name" };
  const damaged = session.diagnostics.filter(({ code }) => code === "corrupt_line").length;
  return { tree, sessionId, size: bytes.length, damaged };
}

async function adoptUnderLock(
  folder: StoreFolder,
  file: ForeignFile,
): Promise<{ row: SessionRow | null } | { problem: string }> {
  const { root, disk, work } = folder;
  const { agent, path, sessionId } = file;
  const paths = sessionPaths(root, agent, sessionId);
  const known = work.inFolder(agent.home, agent.agentId, sessionId);
  const read = readForeign(folder, path);
  // Another process adopted the file while this one was waiting.
  if (read === null) return { row: known?.state === "live" ? known : null };
  if ("problem" in read) return read;
  const original = `${paths.working}.orig`;
  const wanted = rowFor(folder, file, read.tree);
  if (known !== null && !isOf(known, wanted, read.tree))
    return { problem: `session ${sessionId} already exists` };
  if (known !== null && isWritten(folder, file, read.tree)) {
    if (disk.kind(original) === null) disk.rename(path, original);
    return { row: known };
  }
  for (const taken of [paths.log, original, paths.working]) {
    if (taken === path || disk.kind(taken) === null) continue;
    return { problem: `${basename(taken)} already exists` };
  }
  const row = known ?? claimFreeNames(folder, wanted, path);
  if (row === null) return { row: null };
  try {
    await writeLog(folder, file, row, read.tree);
  } catch (error) {
    work.release(row.uid);
    throw error;
  }
  const { damaged } = await putAside(folder, file, row, read, original);
  if (disk.link(paths.log, paths.working)) await disk.syncFolder(paths.folder);
  const live: SessionRow = { ...row, state: "live" };
  finishFork(work, live);
  const loss = damaged === 0 ? "" : `; ${damaged} damaged lines are only in the original`;
  const note = `it has been adopted as session ${row.key}; the original is next to it${loss}`;
  const { userId, key } = live;
  folder.report({ kind: "adopted", file: path, note, session: { userId, key, sessionId } });
  return { row: live };
}

/**
 * Whether an interrupted adoption has claimed the row for this file. Returns `false` for the session's own working set.
 */
function isOf(known: SessionRow, wanted: SessionRow, { header }: SessionTree): boolean {
  const isSame =
    known.createdAt === wanted.createdAt && adoptedFrom(known)?.file === adoptedFrom(wanted)?.file;
  const isTheirs = known.userId === wanted.userId && header.skein?.uid !== known.uid;
  return isSame && isTheirs && (known.state === "forking" || known.state === "live");
}

/** Whether the log is complete and only the rename remains. */
function isWritten({ root, disk }: StoreFolder, file: ForeignFile, tree: SessionTree): boolean {
  const bytes = readOwn(disk, sessionPaths(root, file.agent, file.sessionId).log);
  if (bytes === null) return false;
  const log = SessionTree.from(parseSession(bytes), { lostHeader: { id: file.sessionId } });
  return [...tree.entries()].every(({ id }) => log.entry(id) !== null);
}

async function writeLog(
  folder: StoreFolder,
  { agent, sessionId }: ForeignFile,
  row: SessionRow,
  tree: SessionTree,
): Promise<void> {
  const init = { id: sessionId, cwd: row.first.cwd };
  const whole = await Slices.underLock().run(copyTree(tree, init, {}));
  Object.assign(whole.header, headerOf(row));
  const bytes = Buffer.concat([...whole.encodeLines()].map((line) => Buffer.from(line)));
  await replaceWhole(folder.disk, sessionPaths(folder.root, agent, sessionId).log, bytes, folder.newId());
}

/**
 * Until the rename, a program that has the file open can still write entries to it. Those entries are also added to the
 * log.
 */
async function putAside(
  folder: StoreFolder,
  file: ForeignFile,
  row: SessionRow,
  first: ForeignSession,
  original: string,
): Promise<ForeignSession> {
  folder.disk.rename(file.path, original);
  let last = first;
  for (;;) {
    const now = readForeign(folder, original);
    if (now === null || "problem" in now || now.size === last.size) return last;
    await writeLog(folder, file, row, now.tree);
    last = now;
  }
}

/** Adopts all files from other programs in Skein's folders. */
export async function adoptAll(folder: StoreFolder): Promise<number> {
  let count = 0;
  for (const agent of [...agentsIn(folder.root, folder.disk)]) {
    const { logs, foreign } = sessionsIn(folder.root, agent, folder.disk);
    if (foreign.length > 0 && logs.length === 0) keepForeignListing(folder, agent);
    for (const name of foreign) if ((await adoptFile(folder, agent, name)) !== null) count += 1;
  }
  return count;
}

/**
 * Adopts a log that is missing from an intact `work.db`. This store did not write the log, so it is treated like a file
 * from another program. If it cannot be adopted, all files keep their names.
 */
export async function adoptLog(
  folder: StoreFolder,
  agent: FoundAgent,
  sessionId: string,
): Promise<SessionRow | null> {
  const { root, disk, work } = folder;
  const { log, working, lock } = sessionPaths(root, agent, sessionId);
  const ending = `.bak-${process.pid}-${folder.lock.clock.now()}`;
  const moves = [
    // The original from an earlier adoption. This log is kept under its name.
    [`${working}.orig`, `${log}${ending}`],
    [working, `${working}${ending}`],
    [log, working],
  ] as const;
  const isMoved = await underLock(lock, folder.lock, async () => {
    const isKnown = work.inFolder(agent.home, agent.agentId, sessionId) !== null;
    if (isKnown || disk.kind(log) !== "file") return false;
    for (const [from, to] of moves) if (disk.kind(from) !== null) disk.rename(from, to);
    return true;
  });
  if (!isMoved) return null;
  const row = await adoptFile(folder, agent, basename(working));
  if (row !== null) return row;
  await underLock(lock, folder.lock, async () => {
    if (disk.kind(log) !== null || disk.kind(working) !== "file") return;
    for (const [from, to] of moves.toReversed()) if (disk.kind(to) !== null) disk.rename(to, from);
  });
  return null;
}

/** Adopts an unclaimed session file in one of the scope's folders. Returns `null` if there is none. */
export async function adoptBySessionId(
  folder: StoreFolder,
  scope: Scope,
  sessionId: string,
): Promise<SessionRow | null> {
  const { root, disk, namespace } = folder;
  const home = homeOf(namespace, scope.userId ?? null);
  const owner = ownerOf(root, home, disk);
  const agents = scope.agentId === undefined ? namesIn(disk, join(root, home, "agents")) : [scope.agentId];
  for (const agentId of agents.filter((each) => readAgentId(each) === each)) {
    const agent = { home, agentId, userId: owner };
    const { log, working } = sessionPaths(root, agent, sessionId);
    if (disk.kind(log) !== null || disk.kind(working) !== "file") continue;
    const row = await adoptFile(folder, agent, basename(working));
    if (row?.sessionId === sessionId && row.userId === (scope.userId ?? null)) return row;
  }
  return null;
}

/** Preserves another program's listing, which would otherwise be overwritten. */
function keepForeignListing({ root, disk }: StoreFolder, agent: FoundAgent): void {
  const path = join(sessionsFolder(root, agent), listingName);
  if (disk.kind(path) === "file" && disk.kind(`${path}.orig`) === null) disk.rename(path, `${path}.orig`);
}

function rowFor(folder: StoreFolder, { agent, path, sessionId }: ForeignFile, tree: SessionTree): SessionRow {
  const { userId, agentId, home } = agent;
  const { id, timestamp, cwd, parentSession, skein } = tree.header;
  const parent = parentSession === undefined ? {} : { parentSession };
  const own = metaOf(tree.header, tree.entries());
  const key = own.key ?? listedKey(folder, agent, id) ?? undefined;
  const importedFrom: Json = {
    source: skein === undefined ? "pi" : "skein",
    sessionId: id,
    entries: tree.size,
    file: basename(path),
    adoptedAt: new Date(folder.lock.clock.now()).toISOString(),
    claimed: claimsForDisplay({ key, cwd, ...own.meta }),
  };
  return {
    uid: folder.newId(),
    userId,
    agentId,
    home,
    sessionId,
    key: `agent:${agentId}:session:${sessionId}`,
    label: null,
    createdAt: Date.parse(timestamp ?? "") || 0,
    state: "forking",
    first: {
      cwd: folder.cwdFor({ userId, agentId }),
      meta: { ...harmlessMeta(own.meta, { lineage: true }), importedFrom },
      ...parent,
    },
    removedAt: null,
    todo: null,
  };
}

/** Returns the key that another program's `sessions.json` lists for a session. */
function listedKey({ root, disk }: StoreFolder, agent: FoundAgent, sessionId: string): string | null {
  const sessions = sessionsFolder(root, agent);
  const bytes =
    readOwn(disk, join(sessions, `${listingName}.orig`)) ?? readOwn(disk, join(sessions, listingName));
  const rows = bytes === null ? null : parseJson(bytes);
  const found = isRecord(rows) ? Object.entries(rows) : [];
  return found.find(([, row]) => isRecord(row) && row.sessionId === sessionId)?.[0] ?? null;
}
