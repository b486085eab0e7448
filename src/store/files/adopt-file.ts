import { basename, join } from "node:path";
import { readKey } from "../../core/keys.ts";
import { sessionIdProblem } from "../../core/names.ts";
import { parseSession } from "../../core/parse-session.ts";
import { isRecord } from "../../core/shape.ts";
import { SessionTree } from "../../core/tree.ts";
import { adoptedTree } from "../adopted.ts";
import type { Scope } from "../contract.ts";
import { makeFolderDurably, readWhole, replaceWhole } from "./disk-files.ts";
import type { FoundAgent } from "./folders.ts";
import { agentsIn, sessionsIn } from "./folders.ts";
import { homeOf, sessionPaths, sessionsFolder } from "./layout.ts";
import { listingName } from "./listings.ts";
import type { RebuildParts } from "./rebuild.ts";
import { claimWhatIsFree } from "./rebuild.ts";
import { foreignness, idFromName } from "./repair.ts";
import { headerOf } from "./session-record.ts";
import type { SessionRow } from "./work-db.ts";

/**
 * A session file that somebody else (pi, OpenClaw) put into one of our folders becomes one of ours: its log is made from
 * it, under the same entry ids, and the file itself is kept as `<sessionId>.jsonl.orig`. Done again after a crash it
 * comes to the same. Damage is not copied: the original has it.
 */
export async function adoptFile(
  parts: RebuildParts,
  agent: FoundAgent,
  name: string,
): Promise<SessionRow | null> {
  const { root, disk, report, newId } = parts;
  const folder = sessionsFolder(root, agent);
  const path = join(folder, name);
  const refuse = (note: string) => {
    report({ kind: "not_taken_in", file: path, note });
    return null;
  };
  const bytes = readWhole(disk, path);
  if (bytes === null) return null;
  const session = parseSession(bytes);
  const problem = foreignness(session);
  if (problem !== null) return refuse(problem);
  if (session.readOnly) return refuse(`its version ${session.version} is newer than ours`);
  const tree = SessionTree.from(session, { lostHeader: { id: idFromName(path) } });
  const sessionId = [tree.header.id, idFromName(path)].find((id) => sessionIdProblem(id) === null);
  if (sessionId === undefined) return refuse("its id cannot be the name of a session");
  const paths = sessionPaths(root, agent, sessionId);
  if (disk.stat(paths.log) !== null) return refuse(`session ${sessionId} is there already`);
  const original = `${paths.working}.orig`;
  if (disk.stat(original) !== null) return refuse(`${basename(original)} is there already`);
  const row = claimWhatIsFree(parts, rowFor(parts, agent, tree, sessionId), path);
  if (row === null) return null;
  await makeFolderDurably(disk, folder);
  const whole = adoptedTree(tree, { id: sessionId, cwd: tree.header.cwd ?? "" }, {});
  Object.assign(whole.header, headerOf(row));
  await replaceWhole(
    disk,
    paths.log,
    Buffer.concat([...whole.encodeLines()].map((line) => Buffer.from(line))),
    newId(),
  );
  disk.rename(path, original);
  if (disk.link(paths.log, paths.working)) await disk.syncFolder(folder);
  const damaged = session.diagnostics.filter(({ code }) => code === "corrupt_line").length;
  const loss = damaged === 0 ? "" : `; ${damaged} damaged lines are only in the original`;
  report({
    kind: "adopted",
    file: path,
    note: `it is session ${row.key} now, the original is beside it${loss}`,
  });
  return row;
}

/** Every file of another program in our folders. */
export async function adoptAll(parts: RebuildParts): Promise<number> {
  let count = 0;
  for (const agent of [...agentsIn(parts.root, parts.disk)]) {
    const { logs, foreign } = sessionsIn(parts.root, agent, parts.disk);
    if (foreign.length > 0 && logs.length === 0) keepForeignListing(parts, agent);
    for (const name of foreign) if ((await adoptFile(parts, agent, name)) !== null) count += 1;
  }
  return count;
}

/** The file of a session that nobody has claimed, in a folder of the scope; `null`: there is none. */
export async function adoptNamed(
  parts: RebuildParts,
  scope: Scope,
  sessionId: string,
): Promise<SessionRow | null> {
  const { root, disk, namespace } = parts;
  const userId = scope.userId ?? null;
  const home = homeOf(namespace, userId);
  const agents = scope.agentId === undefined ? disk.list(join(root, home, "agents")) : [scope.agentId];
  for (const agentId of agents) {
    const agent = { home, agentId, userId };
    const { log, working } = sessionPaths(root, agent, sessionId);
    if (disk.stat(log) !== null || disk.stat(working) === null) continue;
    const row = await adoptFile(parts, agent, basename(working));
    if (row?.sessionId === sessionId) return row;
  }
  return null;
}

/** A listing of another program is not to be overwritten by ours. */
function keepForeignListing({ root, disk }: RebuildParts, agent: FoundAgent): void {
  const path = join(sessionsFolder(root, agent), listingName);
  if (disk.stat(path) !== null && disk.stat(`${path}.orig`) === null) disk.rename(path, `${path}.orig`);
}

function rowFor(parts: RebuildParts, agent: FoundAgent, tree: SessionTree, sessionId: string): SessionRow {
  const { userId, agentId, home } = agent;
  const { timestamp, cwd = "", parentSession } = tree.header;
  const parent = parentSession === undefined ? {} : { parentSession };
  return {
    uid: parts.newId(),
    userId,
    agentId,
    home,
    sessionId,
    key: listedKey(parts, agent, tree.header.id) ?? `agent:${agentId}:session:${sessionId}`,
    label: null,
    createdAt: Date.parse(timestamp ?? "") || 0,
    state: "live",
    first: { cwd, meta: {}, ...parent },
    removedAt: null,
    todo: null,
  };
}

/** The key that another program's `sessions.json` has for a session, where it is one of this agent's. */
function listedKey({ root, disk }: RebuildParts, agent: FoundAgent, sessionId: string): string | null {
  const folder = sessionsFolder(root, agent);
  const bytes =
    readWhole(disk, join(folder, `${listingName}.orig`)) ?? readWhole(disk, join(folder, listingName));
  if (bytes === null) return null;
  try {
    const rows: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    const found = isRecord(rows) ? Object.entries(rows) : [];
    for (const [key, row] of found) {
      if (!isRecord(row) || row.sessionId !== sessionId) continue;
      const parsed = readKey(key);
      if ("agentId" in parsed && parsed.agentId === agent.agentId) return key;
    }
  } catch {
    return null; // another program's file, and damaged: it says nothing
  }
  return null;
}
