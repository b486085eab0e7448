import type { Steps } from "../core/slices.ts";
import type { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, readJsonLines, textField, timeField } from "./json-lines.ts";

/** One line of a Claude Code session: part of the chain if it has a uuid, else bookkeeping. */
export interface ClaudeLine {
  readonly line: number;
  readonly type: string;
  /** `null` for lines outside the chain. */
  readonly uuid: string | null;
  /** Absent in the earliest versions, whose lines follow one another. */
  readonly parentUuid: string | null | undefined;
  readonly time: number;
  readonly sidechain: boolean;
  /** Right behind a damaged line. */
  readonly behindDamage: boolean;
  readonly value: JsonObject;
}

export interface ClaudeFile {
  readonly lines: readonly ClaudeLine[];
  readonly byUuid: ReadonlyMap<string, ClaudeLine>;
  /** The line with the summary, by the uuid of its compaction's boundary. */
  readonly summaries: ReadonlyMap<string, ClaudeLine>;
  /** The other way round. */
  readonly boundaries: ReadonlyMap<ClaudeLine, string>;
}

const messageTypes = ["user", "assistant"];

/** Reads the lines; damaged ones and repeated uuids are told of and passed over. */
export function* readClaudeLines(source: string | Uint8Array, losses: Losses): Steps<ClaudeFile> {
  const lines: ClaudeLine[] = [];
  const byUuid = new Map<string, ClaudeLine>();
  let time = 0;
  let damaged = false;
  for (const each of readJsonLines(source)) {
    yield each.length;
    const type = each.value === null ? null : textField(each.value, "type");
    if (each.value === null || type === null) {
      damaged = true;
      losses.add("A damaged line was passed over.", `line ${each.line}`);
      continue;
    }
    time = timeField(each.value, "timestamp") ?? time;
    const line = claudeLine(each.value, { line: each.line, type, time, behindDamage: damaged });
    damaged = false;
    if (line.uuid !== null && byUuid.has(line.uuid)) {
      losses.add("A line that repeats the uuid of an earlier one was passed over.", line.uuid);
      continue;
    }
    lines.push(line);
    if (line.uuid !== null) byUuid.set(line.uuid, line);
  }
  const summaries = summariesIn(lines, byUuid);
  const boundaries = new Map(Array.from(summaries, ([uuid, line]) => [line, uuid]));
  return { lines: parentsFirst(lines, byUuid), byUuid, summaries, boundaries };
}

function claudeLine(
  value: JsonObject,
  place: Pick<ClaudeLine, "line" | "type" | "time" | "behindDamage">,
): ClaudeLine {
  const isMessage = messageTypes.includes(place.type) && objectField(value, "message") !== null;
  const uuid = textField(value, "uuid") || (isMessage ? `line-${place.line}` : null);
  const { parentUuid } = value;
  return {
    ...place,
    uuid,
    parentUuid: typeof parentUuid === "string" ? parentUuid : parentUuid === null ? null : undefined,
    sidechain: value.isSidechain === true,
    value,
  };
}

/** The order of the file, but a line that names a later one as its parent waits for it; those in a circle come last. */
function parentsFirst(lines: readonly ClaudeLine[], byUuid: ReadonlyMap<string, ClaudeLine>): ClaudeLine[] {
  const taken = new Set<ClaudeLine>();
  const done = new Set<string>();
  const waiting = new Map<string, ClaudeLine[]>();
  const take = (first: ClaudeLine) => {
    const ready = [first];
    for (let line = ready.pop(); line !== undefined; line = ready.pop()) {
      if (taken.has(line)) continue;
      taken.add(line);
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
  const stuck = [...waiting.values()].flat().toSorted((a, b) => a.line - b.line);
  for (const line of stuck) if (!taken.has(line)) take(line);
  return [...taken];
}

/** A summary hangs on its boundary, with nothing said between the two. */
function summariesIn(
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
