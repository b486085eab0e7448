import { basename } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { CorruptReason } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { splitLines } from "../../core/lines.ts";
import type { ParsedSession } from "../../core/parse-session.ts";
import { parseSession } from "../../core/parse-session.ts";
import { SessionTree } from "../../core/tree.ts";
import type { Disk } from "./disk.ts";
import { readWhole, replaceWhole } from "./disk-files.ts";

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
  const bytes = readWhole(disk, path);
  if (bytes === null) {
    throw new SkeinError("not_found", {
      what: "File",
      name: path,
      advice: "Check the path; it is taken from where you stand",
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
  const backup = `${path}.bak-${process.pid}-${clock.now()}`;
  await replaceWhole(disk, backup, bytes, newToken());
  await replaceWhole(disk, path, Buffer.from(repairedText(bytes, session, tree)), newToken());
  return { ...report, backup };
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
  const value = JSON.parse(text) as { id?: unknown };
  if (typeof value.id !== "string" || !bridged.has(value.id)) return text;
  return JSON.stringify({ ...value, parentId: tree.parentOf(value.id)?.id ?? null });
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
