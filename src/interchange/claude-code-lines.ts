import type { Steps } from "../core/slices.ts";
import type { Losses } from "./imported-session.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, readJsonLines, textField, timeField } from "./json-lines.ts";

/**
 * One line in a Claude Code session. A line with a uuid is part of the conversation. All other lines are bookkeeping.
 */
export interface ClaudeLine {
  readonly line: number;
  readonly type: string;
  readonly uuid: string | null;
  /** Absent in the earliest versions, where each line follows the previous one. */
  readonly parentUuid: string | null | undefined;
  readonly time: number;
  readonly isSidechain: boolean;
  readonly isAfterDamage: boolean;
  readonly value: JsonObject;
}

export interface ClaudeFile {
  /** Parents come before their children. */
  readonly lines: readonly ClaudeLine[];
  readonly byUuid: ReadonlyMap<string, ClaudeLine>;
  /** The line with the summary, by the uuid of its compaction boundary. */
  readonly summaries: ReadonlyMap<string, ClaudeLine>;
  /** The uuid of the compaction boundary, by the line with its summary. */
  readonly boundaries: ReadonlyMap<ClaudeLine, string>;
}

const messageTypes = ["user", "assistant"];

export function* readClaudeLines(source: string | Uint8Array, losses: Losses): Steps<ClaudeFile> {
  const lines: ClaudeLine[] = [];
  const byUuid = new Map<string, ClaudeLine>();
  let time = 0;
  let isAfterDamage = false;
  for (const each of readJsonLines(source)) {
    yield each.length;
    const type = each.value === null ? null : textField(each.value, "type");
    if (each.value === null || type === null) {
      isAfterDamage = true;
      losses.add("A damaged line was skipped.", `line ${each.line}`);
      continue;
    }
    time = timeField(each.value, "timestamp") ?? time;
    const line = toClaudeLine(each.value, { line: each.line, type, time, isAfterDamage });
    isAfterDamage = false;
    if (line.uuid !== null && byUuid.has(line.uuid)) {
      losses.add("A line with a duplicate uuid was skipped.", line.uuid);
      continue;
    }
    lines.push(line);
    if (line.uuid !== null) byUuid.set(line.uuid, line);
  }
  const summaries = findSummaries(lines, byUuid);
  const boundaries = new Map(Array.from(summaries, ([uuid, line]) => [line, uuid]));
  return { lines: sortParentsFirst(lines, byUuid), byUuid, summaries, boundaries };
}

function toClaudeLine(
  value: JsonObject,
  place: Pick<ClaudeLine, "line" | "type" | "time" | "isAfterDamage">,
): ClaudeLine {
  const isMessage = messageTypes.includes(place.type) && objectField(value, "message") !== null;
  const uuid = textField(value, "uuid") || (isMessage ? `line-${place.line}` : null);
  const { parentUuid } = value;
  return {
    ...place,
    uuid,
    parentUuid: typeof parentUuid === "string" || parentUuid === null ? parentUuid : undefined,
    isSidechain: value.isSidechain === true,
    value,
  };
}

/** Keeps the file's order, except that a line that precedes its parent is moved after it. Lines in cycles come last. */
function sortParentsFirst(
  lines: readonly ClaudeLine[],
  byUuid: ReadonlyMap<string, ClaudeLine>,
): ClaudeLine[] {
  const sorted = new Set<ClaudeLine>();
  const done = new Set<string>();
  const waiting = new Map<string, ClaudeLine[]>();
  const take = (first: ClaudeLine) => {
    const ready = [first];
    for (let line = ready.pop(); line !== undefined; line = ready.pop()) {
      if (sorted.has(line)) continue;
      sorted.add(line);
      if (line.uuid === null) continue;
      done.add(line.uuid);
      for (const child of waiting.get(line.uuid)?.toReversed() ?? []) ready.push(child);
      waiting.delete(line.uuid);
    }
  };
  for (const line of lines) {
    const { parentUuid } = line;
    if (typeof parentUuid !== "string" || done.has(parentUuid) || !byUuid.has(parentUuid)) take(line);
    else if (waiting.has(parentUuid)) waiting.get(parentUuid)?.push(line);
    else waiting.set(parentUuid, [line]);
  }
  const inCycle = [...waiting.values()].flat().toSorted((a, b) => a.line - b.line);
  for (const line of inCycle) take(line);
  return [...sorted];
}

/** A summary is a descendant of its boundary, with no message between the two. */
function findSummaries(
  lines: readonly ClaudeLine[],
  byUuid: ReadonlyMap<string, ClaudeLine>,
): Map<string, ClaudeLine> {
  const summaries = new Map<string, ClaudeLine>();
  for (const line of lines) {
    if (line.value.isCompactSummary !== true) continue;
    let above = byUuid.get(line.parentUuid ?? "");
    for (let steps = 0; above !== undefined && steps < 100; steps++) {
      if (above.value.subtype === "compact_boundary" || messageTypes.includes(above.type)) break;
      above = byUuid.get(above.parentUuid ?? "");
    }
    if (above?.uuid != null && above.value.subtype === "compact_boundary" && !summaries.has(above.uuid))
      summaries.set(above.uuid, line);
  }
  return summaries;
}

/** The field that contains a title, by line type. The best kind comes first. */
const titleFields = new Map([
  ["custom-title", "customTitle"],
  ["ai-title", "aiTitle"],
  ["agent-name", "agentName"],
  ["summary", "summary"],
]);

export function isTitle(type: string): boolean {
  return titleFields.has(type);
}

/**
 * Returns the last title of the best kind. A summary is considered only if it belongs to a conversation in this file.
 */
export function findTitle(file: ClaudeFile, losses: Losses): string | null {
  const lastByType = new Map<string, string>();
  let count = 0;
  for (const { type, value } of file.lines) {
    const field = titleFields.get(type);
    if (field === undefined) continue;
    count += 1;
    const title = textField(value, field)?.trim() ?? "";
    const isInFile = type !== "summary" || file.byUuid.has(textField(value, "leafUuid") ?? "");
    if (title !== "" && isInFile) lastByType.set(type, title);
  }
  const name = [...titleFields.keys()].flatMap((type) => lastByType.get(type) ?? [])[0] ?? null;
  const unused = count - (name === null ? 0 : 1);
  if (unused > 0) losses.add("A title that was replaced later was left out.", undefined, unused);
  return name;
}
