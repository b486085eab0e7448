import { mapConcurrently } from "../core/concurrency.ts";
import { present } from "../core/present.ts";
import type { FamilyPayload } from "../protocol/family.ts";
import type { Run, RunStore } from "../runs/contract.ts";
import type { Scope, SessionQuery, SessionRecord, SessionStore } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { EdgeSource } from "./family-edges.ts";
import { FamilyEdges } from "./family-edges.ts";

export interface FamilySource extends EdgeSource {
  readonly sessions: SessionStore;
  readonly runs: Pick<RunStore, "list" | "work" | "replyWait">;
}

const maxNodes = 200;
const maxRunsPerSession = 200;
const maxSpans = 1000;
const maxEdges = 1000;
const readsAtATime = 8;

/** A family's sessions, keyed by uid. */
type Nodes = Map<string, SessionRecord>;

/**
 * Reads a session's family: its root, all sessions spawned or forked from it at any depth, and the sessions they
 * exchanged messages with. Only the same user's sessions are looked up. An edge is returned only if both of its ends
 * are nodes.
 */
export async function readFamily(source: FamilySource, session: SessionRecord): Promise<FamilyPayload> {
  const lineage = await findLineage(source.sessions, session);
  const members: Nodes = new Map(lineage.map((each) => [each.uid, each]));
  const isWhole = await addDescendants(source.sessions, members);
  const { runs, isComplete } = await readRuns(source.runs, [...members.values()]);
  const nodes: Nodes = new Map(members);
  const hasPartners = await addPartners(source.sessions, nodes, runs, scopeOfUser(session));
  const between = new FamilyEdges(nodes, runs, source);
  const edges = await between.read();
  const exchanged = new Set(edges.map(({ runId }) => runId));
  const partners = [...nodes.values()].filter(({ uid }) => !members.has(uid));
  const isShown = (run: Run) => members.has(run.session.uid) || exchanged.has(run.runId);
  const waiting = (await readWaitingRuns(source.runs, partners)).filter((run) => !isShown(run));
  const shown = [...runs.filter(isShown), ...waiting].sort((a, b) => a.seq - b.seq);
  const spans = shown.flatMap((run) => spanOf(run, nodes, between.preview(run)));
  return {
    rootKey: lineage[0]?.key ?? session.key,
    nodes: await nodesOf(source, members, nodes),
    spans: spans.slice(-maxSpans),
    edges: edges.slice(-maxEdges),
    truncated: !(isWhole && isComplete && hasPartners) || spans.length > maxSpans || edges.length > maxEdges,
  };
}

function scopeOfUser(session: SessionRecord): Scope {
  const { agentId: _agentId, ...scope } = scopeOfSession(session);
  return scope;
}

/** Returns the session and its ancestors, root first. Stops if the lineage is circular. */
async function findLineage(sessions: SessionStore, session: SessionRecord): Promise<SessionRecord[]> {
  const lineage = [session];
  const scope = scopeOfUser(session);
  for (let last = session; lineage.length < maxNodes; ) {
    const { spawnedBy, forkedFrom } = last.meta;
    const [parent] = spawnedBy === undefined ? [] : await sessions.find(scope, { by: "key", key: spawnedBy });
    const origin = forkedFrom === undefined ? null : await sessions.get(scope, forkedFrom.sessionId);
    const above = parent ?? origin;
    if (above === null || lineage.some(({ uid }) => uid === above.uid)) break;
    lineage.unshift(above);
    last = above;
  }
  return lineage;
}

/**
 * Adds the children and forks of all members, level by level. Returns `false` if not all of them fit, or if the store's
 * index is behind.
 */
async function addDescendants(sessions: SessionStore, members: Nodes): Promise<boolean> {
  let isUpToDate = true;
  for (let level = [...members.values()]; level.length > 0; ) {
    const next: SessionRecord[] = [];
    for (const query of descendantQueries(level)) {
      const limit = Math.min(1000, maxNodes - members.size + level.length + 1);
      const scope = scopeOfUser(level[0] as SessionRecord);
      const page = await sessions.list(scope, { ...query, limit });
      if (page.behind > 0) isUpToDate = false;
      for (const each of page.sessions.filter((session) => isForkIn(session, query))) {
        if (members.has(each.uid)) continue;
        if (members.size === maxNodes) return false;
        members.set(each.uid, each);
        next.push(each);
      }
    }
    level = next;
  }
  return isUpToDate;
}

function descendantQueries(level: readonly SessionRecord[]): SessionQuery[] {
  const spawnedBy = level.map(({ key }) => key);
  const forkedFrom = level.map(({ sessionId }) => sessionId);
  return [false, true].flatMap((archived) => [
    { spawnedBy, archived },
    { forkedFrom, archived },
  ]);
}

/** Applies the filter again, because a store from an older version ignores filters that it does not support. */
function isForkIn({ meta }: SessionRecord, { forkedFrom }: SessionQuery): boolean {
  return forkedFrom === undefined || forkedFrom.includes(meta.forkedFrom?.sessionId ?? "");
}

/** Reads the newest runs in the sessions and the input that these runs caused in other sessions. */
async function readRuns(
  runs: FamilySource["runs"],
  members: readonly SessionRecord[],
): Promise<{ readonly runs: readonly Run[]; readonly isComplete: boolean }> {
  const limit = maxRunsPerSession;
  const pages = await mapConcurrently(members, readsAtATime, async ({ uid, key, userId }) => [
    await runs.list({ sessionUid: uid, limit }, userId),
    await runs.list({ sourceKey: key, limit }, userId),
  ]);
  const found = new Map(pages.flat(2).map((run) => [run.runId, run]));
  return {
    runs: [...found.values()].sort((a, b) => a.seq - b.seq),
    isComplete: pages.flat().every((page) => page.length < limit),
  };
}

/** Reads the sessions' waiting runs, so that a partner that needs a person's answer is shown with the reason. */
async function readWaitingRuns(
  runs: FamilySource["runs"],
  partners: readonly SessionRecord[],
): Promise<readonly Run[]> {
  const pages = await mapConcurrently(partners, readsAtATime, ({ uid, userId }) =>
    runs.list({ sessionUid: uid, states: ["waiting"], limit: maxRunsPerSession }, userId),
  );
  return pages.flat();
}

/** Adds the sessions that members exchanged messages with, latest first. Returns `false` if not all of them fit. */
async function addPartners(
  sessions: SessionStore,
  nodes: Nodes,
  runs: readonly Run[],
  scope: Scope,
): Promise<boolean> {
  // Each session is looked up once, even if it no longer exists.
  const known = new Set([...nodes.values()].flatMap(({ uid, key }) => [uid, key]));
  for (const { session, provenance } of runs.toReversed()) {
    const { sourceSessionKey } = provenance ?? {};
    const byKey = sourceSessionKey === undefined ? [] : [{ by: "key", key: sourceSessionKey } as const];
    for (const lookup of [{ by: "uid", uid: session.uid } as const, ...byKey]) {
      const name = lookup.by === "uid" ? lookup.uid : lookup.key;
      if (known.has(name)) continue;
      known.add(name);
      const [partner] = await sessions.find(scope, lookup);
      if (partner === undefined || partner.key === "unknown" || nodes.has(partner.uid)) continue;
      if (nodes.size >= maxNodes) return false;
      nodes.set(partner.uid, partner);
    }
  }
  return true;
}

async function nodesOf(
  { runs, show }: FamilySource,
  members: Nodes,
  nodes: Nodes,
): Promise<FamilyPayload["nodes"]> {
  const all = [...nodes.values()];
  const works = await runs.work(all.map(({ uid }) => uid));
  const keys = new Set(all.map(({ key }) => key));
  const keysById = new Map(all.map(({ key, sessionId }) => [sessionId, key]));
  const [root, ...rest] = all;
  const sorted = rest.sort((a, b) => a.createdAt - b.createdAt || (a.uid < b.uid ? -1 : 1));
  return [...(root === undefined ? [] : [root]), ...sorted].map((record) => {
    const { uid, key, sessionId, agentId, kind, meta, name, createdAt, updatedAt } = record;
    const displayName = meta.displayName ?? name;
    const { spawnedBy, forkedFrom } = meta;
    return present({
      key,
      sessionId,
      agentId,
      kind,
      label: meta.label,
      displayName: displayName === null ? null : show(displayName),
      parentKey: spawnedBy !== undefined && keys.has(spawnedBy) ? spawnedBy : null,
      forkOf: forkedFrom === undefined ? null : keysById.get(forkedFrom.sessionId),
      isPartner: members.has(uid) ? null : true,
      createdAt,
      updatedAt,
      status: works.get(uid)?.status,
    });
  });
}

function spanOf(run: Run, nodes: Nodes, preview: string): FamilyPayload["spans"] {
  const { runId, state, createdAt, startedAt, endedAt, session } = run;
  const key = nodes.get(session.uid)?.key;
  return key === undefined ? [] : [present({ runId, key, state, createdAt, startedAt, endedAt, preview })];
}
