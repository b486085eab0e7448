import { rowName, taskOf } from "../live/session-row.ts";
import type { SessionPlace } from "../paths.ts";
import { sessionPath, userParam } from "../paths.ts";
import { previewLine } from "../ui/preview.ts";
import { threadOf } from "../ui/theme.ts";
import { duration, fullTime } from "../ui/time.ts";
import type { Edge, Family, Span, Tone } from "./family-data.ts";
import { edgeNames, edgePath, findTones, orderMembers, toneNames, toneOf } from "./family-data.ts";
import type { Interval } from "./time-scale.ts";

/** A session as a lane. Its thread extends from its first to its last activity. */
export interface Lane {
  /** The session's key. */
  readonly id: string;
  readonly name: string;
  /** The task of a helper. */
  readonly task: string;
  readonly depth: number;
  readonly thread: number;
  readonly from: number;
  readonly to: number;
  /** The state of its most urgent open run or, if none is open, of its latest run. */
  readonly tone: Tone | null;
  readonly href: string;
}

interface MarkText {
  readonly id: string;
  readonly href: string;
  /** A description for the readout and for screen readers. */
  readonly title: string;
  readonly preview: string;
}

export interface SpanMark extends MarkText {
  readonly kind: "span";
  readonly key: string;
  readonly tone: Tone;
  readonly queuedAt: number;
  /** Absent while the run is queued. */
  readonly from: number | null;
  readonly to: number;
  readonly isOpen: boolean;
  /** `true` if nothing in the family caused the run. It came from a person, a schedule or a program. */
  readonly isFromOutside: boolean;
}

export interface EdgeMark extends MarkText {
  readonly kind: "edge";
  readonly edge: Edge["kind"];
  readonly fromKey: string;
  readonly toKey: string;
  readonly at: number;
  /** When the run that this edge answers for ended. `null` if the edge answers for no run. */
  readonly leftAt: number | null;
  /** When the run that this edge caused started. `null` if the run has not started or has joined another run. */
  readonly startedAt: number | null;
}

export type Mark = SpanMark | EdgeMark;

/**
 * Formats when a run took place and how long it took. Not part of the layout, because formatting thousands of dates
 * takes time.
 */
export function factsOf(mark: Mark): string {
  if (mark.kind === "edge") return fullTime(mark.at);
  return `${fullTime(mark.queuedAt)}, ${duration(mark.to - (mark.from ?? mark.queuedAt))}`;
}

export interface Lanes {
  readonly lanes: readonly Lane[];
  readonly spans: readonly SpanMark[];
  readonly edges: readonly EdgeMark[];
  readonly busy: readonly Interval[];
}

const isOpenState = new Set<Span["state"]>(["queued", "running", "waiting", "sleeping"]);

export function hasOpenRuns({ spans }: Family): boolean {
  return spans.some(({ state }) => isOpenState.has(state));
}

export function layOutLanes(
  family: Family,
  needsYou: ReadonlySet<string>,
  now: number,
  place: SessionPlace,
): Lanes {
  const names = new Map(family.nodes.map((member) => [member.key, rowName(member)]));
  const entryOfRun = new Map(
    family.edges.map(({ runId, toKey, toEntryId }) => [`${runId} ${toKey}`, toEntryId]),
  );
  const user = userParam(place);
  const spans = family.spans
    .filter(({ key }) => names.has(key))
    .map((span): SpanMark => {
      const tone = toneOf(span, needsYou);
      const { runId, key, createdAt, startedAt, endedAt } = span;
      const isOpen = isOpenState.has(span.state);
      const to = Math.max(createdAt, endedAt ?? (isOpen ? now : (startedAt ?? createdAt)));
      return {
        kind: "span",
        id: `run ${runId}`,
        key,
        tone,
        isOpen,
        isFromOutside: !entryOfRun.has(`${runId} ${key}`),
        queuedAt: createdAt,
        from: startedAt ?? (isOpen ? null : createdAt),
        to,
        href: sessionPath({ key, ...user }, "", { entry: entryOfRun.get(`${runId} ${key}`) }),
        title: `${names.get(key)}: ${toneNames[tone].toLowerCase()}`,
        preview: previewLine(span.preview, 240),
      };
    });
  const findStart = startFinder(family);
  const endsByKey = Map.groupBy(
    spans.filter(({ isOpen }) => !isOpen),
    ({ key }) => key,
  );
  const edges = family.edges
    .filter(({ fromKey, toKey }) => fromKey !== toKey && names.has(fromKey) && names.has(toKey))
    .map((edge, index): EdgeMark => {
      const { kind, fromKey, toKey, at } = edge;
      const isAnswer = kind === "reply" || kind === "announce";
      const answered = isAnswer ? endsByKey.get(fromKey)?.findLast(({ to }) => to <= at) : undefined;
      return {
        kind: "edge",
        id: `edge ${kind} ${fromKey} ${toKey} ${edge.toEntryId ?? edge.runId ?? index}`,
        edge: kind,
        fromKey,
        toKey,
        at,
        leftAt: answered?.to ?? null,
        startedAt: findStart(edge),
        href: edgePath(edge, place),
        title: `${edgeNames[kind]}: ${names.get(fromKey)} → ${names.get(toKey)}`,
        preview: previewLine(edge.preview, 240),
      };
    });
  return {
    lanes: findLanes(family, spans, edges, user, needsYou),
    spans,
    edges,
    busy: findBusy(family, spans, edges, now),
  };
}

/** Finds when the run that an edge caused started. Returns `null` if another run was still in progress in between. */
function startFinder({ spans }: Family): (edge: Edge) => number | null {
  const starts = new Map<string, { readonly at: number; readonly freeFrom: number }>();
  const ends = new Map<string, number>();
  for (const { runId, key, startedAt, endedAt } of spans) {
    const freeFrom = ends.get(key) ?? 0;
    if (startedAt === undefined) continue;
    starts.set(`${runId} ${key}`, { at: startedAt, freeFrom });
    ends.set(key, Math.max(freeFrom, endedAt ?? Number.POSITIVE_INFINITY));
  }
  return ({ runId, toKey, at }) => {
    const start = starts.get(`${runId} ${toKey}`);
    return start === undefined || start.freeFrom > at || start.at < at ? null : start.at;
  };
}

function findLanes(
  family: Family,
  spans: readonly SpanMark[],
  edges: readonly EdgeMark[],
  user: { readonly userId?: string },
  needsYou: ReadonlySet<string>,
): readonly Lane[] {
  const times = new Map(family.nodes.map(({ key, createdAt }) => [key, { from: createdAt, to: createdAt }]));
  const extend = (key: string, at: number) => {
    const range = times.get(key);
    if (range === undefined) return;
    range.from = Math.min(range.from, at);
    range.to = Math.max(range.to, at);
  };
  for (const { key, queuedAt, to } of spans) {
    extend(key, queuedAt);
    extend(key, to);
  }
  for (const { fromKey, toKey, at } of edges) {
    extend(fromKey, at);
    extend(toKey, at);
  }
  const tones = findTones(family, needsYou);
  return orderMembers(family).map(({ member, depth }) => {
    const { key, sessionId, createdAt } = member;
    const { from, to } = times.get(key) ?? { from: createdAt, to: createdAt };
    const href = sessionPath({ key, ...user });
    return {
      id: key,
      name: rowName(member),
      task: taskOf(member),
      depth,
      thread: threadOf(sessionId),
      from,
      to,
      tone: tones.get(key) ?? null,
      href,
    };
  });
}

/** A waiting run is idle between its start and now. A run that is working or has ended is busy throughout. */
function findBusy(
  family: Family,
  spans: readonly SpanMark[],
  edges: readonly EdgeMark[],
  now: number,
): readonly Interval[] {
  const busy: Interval[] = family.nodes.map(({ createdAt }) => ({ from: createdAt, to: createdAt }));
  let hasOpen = false;
  for (const { queuedAt, from, to, isOpen, tone } of spans) {
    hasOpen ||= isOpen;
    if (isOpen && tone !== "running") busy.push({ from: queuedAt, to: from ?? queuedAt });
    else busy.push({ from: from ?? queuedAt, to: isOpen ? roundUp(from ?? queuedAt, now) : to });
    if (from !== null && queuedAt < from) busy.push({ from: queuedAt, to: queuedAt });
  }
  for (const { at } of edges) busy.push({ from: at, to: at });
  if (hasOpen) busy.push({ from: now, to: now });
  return busy;
}

/** Extends a running span in increasing steps so that the scale does not move every second. */
function roundUp(from: number, now: number): number {
  const passed = Math.max(1000, now - from);
  return from + 1000 * 1.4 ** Math.ceil(Math.log(passed / 1000) / Math.log(1.4) + 1e-9);
}
