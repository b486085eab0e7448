import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { keptBehindDamage } from "../../core/context.ts";
import type { Compaction, CorruptReason } from "../../core/entries.ts";
import { encodeEntry, isCorrupt, keepExact, withParentId } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { splitLines } from "../../core/lines.ts";
import type { ParsedSession } from "../../core/parse-session.ts";
import { parseSession } from "../../core/parse-session.ts";
import { SessionTree } from "../../core/tree.ts";
import type { Disk } from "./disk.ts";
import { readWhole, refuseSpecialFile, replaceWhole } from "./disk-files.ts";
import { workDbName } from "./layout.ts";

/** What a repair found and did. */
export interface RepairReport {
  readonly file: string;
  readonly damaged: readonly { readonly line: number; readonly reason: CorruptReason }[];
  readonly headerRebuilt: boolean;
  /** Entries that hang on another parent now, because theirs was on a damaged line. */
  readonly bridged: readonly string[];
  /** Entries that are in the file. */
  readonly kept: number;
  /** Where the file is as it was; `null`: there was nothing to repair, and it was not touched. */
  readonly backup: string | null;
}

export interface RepairSettings {
  readonly disk: Disk;
  readonly clock: Clock;
  newToken(): string;
}

/**
 * Writes a session file anew without its damaged lines, a copy of it beside. Whole lines stay to the letter, but for
 * the parents of those that hung on damage. To be called with the file's lock held. A file that is no session is
 * refused and not touched.
 */
export async function repairFile(path: string, settings: RepairSettings): Promise<RepairReport> {
  const { disk, clock, newToken } = settings;
  refuseSpecialFile(path);
  refuseStoreFile(path);
  const bytes = readWhole(disk, path);
  if (bytes === null) {
    throw new SkeinError("not_found", {
      what: "File",
      name: path,
      advice: "Check the path; it is relative to the working directory",
    });
  }
  const session = parseSession(bytes);
  const problem = foreignness(session);
  if (problem !== null) throw new SkeinError("not_a_session", { file: path, problem });
  const tree = SessionTree.from(session, { lostHeader: { id: idFromName(path) } });
  const damaged = session.lines.filter(isCorrupt).map(({ line, reason }) => ({ line, reason }));
  const bridged = tree.diagnostics
    .filter(({ code }) => code === "bridged_parent")
    .map(({ entryId = "" }) => entryId);
  const headerRebuilt = session.header === null;
  const report = { file: path, damaged, headerRebuilt, bridged, kept: tree.size };
  if (damaged.length === 0 && !headerRebuilt) return { ...report, backup: null };
  const repaired = Buffer.from(repairedText(bytes, session, tree));
  refuseLoss(path, session, repaired);
  const backup = `${path}.bak-${process.pid}-${clock.now()}`;
  await replaceWhole(disk, backup, bytes, newToken());
  await replaceWhole(disk, path, repaired, newToken());
  return { ...report, backup };
}

/** A store reads its logs by their places and repairs them under its own locks. */
function refuseStoreFile(path: string): void {
  const whole = existsSync(path) ? realpathSync(path) : resolve(path);
  if (!/[/\\](?:sessions|trash[/\\][^/\\]+)[/\\][^/\\]+$/.test(whole)) return;
  for (let folder = dirname(whole); folder !== dirname(folder); folder = dirname(folder)) {
    if (!existsSync(join(folder, workDbName))) continue;
    throw new SkeinError("read_only", {
      name: path,
      problem: `it belongs to the store in ${folder}, which repairs it by itself; \`skein sessions repair <session> --dir ${folder}\` shows what is damaged`,
    });
  }
}

/** Every entry that reading finds is in the file that is written. */
function refuseLoss(path: string, session: ParsedSession, repaired: Uint8Array): void {
  const countOf = ({ lines }: ParsedSession) => lines.filter((line) => !isCorrupt(line)).length;
  const [before, after] = [countOf(session), countOf(parseSession(repaired))];
  if (after >= before) return;
  throw new SkeinError("conflict", {
    problem: `${path} has ${before} entries, and a repaired file would have ${after}`,
    advice: "Nothing was written. Give entries that share an ID different ones, then repair it again",
  });
}

function repairedText(bytes: Uint8Array, session: ParsedSession, tree: SessionTree): string {
  // Lines of version 1 are known by their number, which changes when one is left out: they are written as version 3.
  if (session.diagnostics.some(({ code }) => code === "migrated")) return tree.encode();
  const linesWith = (code: string) =>
    new Set(session.diagnostics.filter((each) => each.code === code).map(({ line }) => line));
  const [damaged, foreign] = [linesWith("corrupt_line"), linesWith("foreign_line")];
  const bridged = new Set(
    tree.diagnostics.filter(({ code }) => code === "bridged_parent").map(({ entryId }) => entryId),
  );
  const before: string[] = [];
  const lines = session.header === null ? [JSON.stringify(tree.header)] : [];
  for (const { line, text } of splitLines(bytes)) {
    if (foreign.has(line)) before.push(text ?? "");
    else if (text !== null && !damaged.has(line)) lines.push(bridgedLine(text, bridged, tree));
  }
  return `${[...before, ...lines].join("\n")}\n`;
}

function bridgedLine(text: string, bridged: ReadonlySet<string | undefined>, tree: SessionTree): string {
  const id = String((JSON.parse(text) as { id?: unknown }).id);
  const entry = tree.entry(id);
  if (entry === null) return text;
  const kept = entry.type === "compaction" ? keptEntry(tree, entry) : null;
  if (!bridged.has(id) && kept === null) return text;
  const moved = withParentId(entry, tree.parentOf(id)?.id ?? null);
  if (kept === null || moved.type !== "compaction") return encodeEntry(moved);
  const compaction: Compaction = { ...moved, firstKeptEntryId: kept };
  keepExact(compaction, entry);
  return encodeEntry(compaction);
}

/** What a compaction keeps first, where the entry that it names is lost; `null`: it is there, or nothing is left of it. */
function keptEntry(tree: SessionTree, compaction: Compaction): string | null {
  if (compaction.firstKeptEntryId === undefined || tree.entry(compaction.firstKeptEntryId) !== null)
    return null;
  const path = tree.path(compaction.id).slice(0, -1);
  return path[keptBehindDamage(path, compaction)]?.id ?? null;
}

/** Why this is no session at all; `null`: it is one. Without a header, at least one entry must make sense. */
export function foreignness(session: ParsedSession): string | null {
  if (session.header !== null) return null;
  if (session.lines.some((line) => !isCorrupt(line) && line.type !== "opaque")) return null;
  const empty = session.lines.length === 0 && session.diagnostics.every(({ line }) => line === undefined);
  return empty ? "it is empty" : "no line of it is a session header or an entry";
}

/** `<time>_<id>.jsonl`, as pi names its files, or `<id>.jsonl`. */
export function idFromName(path: string): string {
  const stem = basename(path).replace(/(\.log)?\.jsonl$/, "");
  return /^\d{4}-\d\d-\d\dT[\d-]+Z_(.+)$/.exec(stem)?.[1] ?? stem;
}
