import { useMemo } from "react";
import type { Result } from "skein/client";
import { useCall, useGateway } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { useDesk } from "../frame.tsx";
import type { SessionPlace } from "../paths.ts";
import { ownerOf, sessionPath, userParam } from "../paths.ts";
import { assignThreads } from "../ui/theme.ts";

export type Family = Result<"sessions.family">;
export type Member = Family["nodes"][number];
export type Span = Family["spans"][number];
export type Edge = Family["edges"][number];

/** A session's family, read again shortly after an event from one of its members. */
export function useFamily(place: SessionPlace) {
  const { client } = useGateway();
  const family = useCall("sessions.family", place, { keepsPrevious: true, staleMs: 0 });
  const keys = useMemo(() => {
    const nodes = family.data?.nodes ?? [];
    const userId = ownerOf(client, place);
    assignThreads(
      nodes.map(({ key, sessionId, parentKey }) => ({ key, userId, sessionId, spawnedBy: parentKey })),
    );
    return new Set(nodes.map((member) => member.key));
  }, [client, family.data, place]);
  useRefresh(
    ["sessions.family"],
    // A child, a fork or a partner is unknown until it is read.
    ({ event, payload }) =>
      event === "session.created" ||
      event === "run.queued" ||
      ("sessionKey" in payload && keys.has(payload.sessionKey ?? "")),
  );
  return family;
}

/** A user's runs that are waiting for approval, and the keys of their sessions. */
export function useNeedsYou({ userId }: SessionPlace): ReadonlySet<string> {
  const { client } = useGateway();
  const { approvals } = useDesk();
  return useMemo(() => {
    const owner = ownerOf(client, { userId });
    const own = approvals.filter((approval) => ownerOf(client, approval) === owner);
    return new Set(own.flatMap(({ runId, sessionKey }) => [runId, sessionKey]));
  }, [client, approvals, userId]);
}

export type Tone = "done" | "failed" | "aborted" | "needs-you" | "waiting" | "queued" | "running";

export function toneOf({ runId, state }: Span, needsYou: ReadonlySet<string>): Tone {
  if (needsYou.has(runId)) return "needs-you";
  switch (state) {
    case "error":
    case "timeout":
      return "failed";
    case "waiting":
    case "sleeping":
      return "waiting";
    case "ok":
    case "merged":
      return "done";
    default:
      return state;
  }
}

/** Runs that need a person come first, then other open runs, then ended ones. Among equals, the latest run is used. */
const urgency: readonly (Tone | undefined)[] = ["queued", "waiting", "running", "needs-you"];

/** Returns what each session is doing, by key. Sessions without runs are omitted. */
export function findTones(
  { nodes, spans }: Family,
  needsYou: ReadonlySet<string>,
): ReadonlyMap<string, Tone> {
  const tones = new Map<string, Tone>();
  for (const span of spans) {
    const tone = toneOf(span, needsYou);
    if (urgency.indexOf(tone) >= urgency.indexOf(tones.get(span.key) ?? "done")) tones.set(span.key, tone);
  }
  for (const { key } of nodes) if (needsYou.has(key)) tones.set(key, "needs-you");
  return tones;
}

const collator = new Intl.Collator("en", { numeric: true });

/**
 * Returns the members in the order that every view uses. The root comes first. Each session precedes those that were
 * spawned or forked from it, and siblings are in creation order. Siblings that one answer spawned start in any order, so
 * they are sorted by label.
 */
export function orderMembers(family: Family): readonly { readonly member: Member; readonly depth: number }[] {
  const known = new Set(family.nodes.map(({ key }) => key));
  const parentOf = ({ key, parentKey, forkOf }: Member) => {
    const parent = parentKey ?? forkOf;
    return key === family.rootKey || parent === undefined || !known.has(parent) ? "" : parent;
  };
  const spawns = family.edges.filter(({ kind }) => kind === "spawn");
  const answers = new Map(spawns.map(({ toKey, fromEntryId }) => [toKey, fromEntryId]));
  const starts = new Map<string, number>();
  const answerOf = ({ key }: Member) => answers.get(key) ?? key;
  for (const member of family.nodes) {
    const answer = answerOf(member);
    starts.set(answer, Math.min(starts.get(answer) ?? member.createdAt, member.createdAt));
  }
  const startOf = (member: Member) => starts.get(answerOf(member)) ?? member.createdAt;
  const bySpawn = (a: Member, b: Member) =>
    startOf(a) - startOf(b) ||
    (answerOf(a) === answerOf(b) ? collator.compare(a.label ?? "", b.label ?? "") : 0) ||
    a.createdAt - b.createdAt;
  const children = Map.groupBy(family.nodes.toSorted(bySpawn), parentOf);
  const ordered: { member: Member; depth: number }[] = [];
  const seen = new Set<string>();
  const add = (member: Member, depth: number) => {
    if (seen.has(member.key)) return;
    seen.add(member.key);
    ordered.push({ member, depth });
    for (const child of children.get(member.key) ?? []) add(child, depth + 1);
  };
  const roots = children.get("") ?? [];
  for (const isRoot of [true, false])
    for (const member of roots) if ((member.key === family.rootKey) === isRoot) add(member, 0);
  return ordered;
}

export const toneNames: Record<Tone, string> = {
  done: "Done",
  failed: "Failed",
  aborted: "Aborted",
  "needs-you": "Needs you",
  waiting: "Waiting",
  queued: "Queued",
  running: "Running",
};

export const edgeNames: Record<Edge["kind"], string> = {
  spawn: "Spawn",
  send: "Message",
  reply: "Reply",
  announce: "Result",
  fork: "Fork",
};

/** Returns the URL for an edge: the entry that arrived or, if there is none, the entry that caused the edge. */
export function edgePath({ fromKey, fromEntryId, toKey, toEntryId }: Edge, { userId }: SessionPlace): string {
  const user = userParam({ userId });
  if (toEntryId === undefined && fromEntryId !== undefined) {
    return sessionPath({ key: fromKey, ...user }, "", { entry: fromEntryId });
  }
  return sessionPath({ key: toKey, ...user }, "", { entry: toEntryId });
}
