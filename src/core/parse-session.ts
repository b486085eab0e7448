import type { Diagnostic } from "./diagnostics.ts";
import type { CorruptLine, CorruptReason, Entry, OpaqueEntry, SessionHeader } from "./entries.ts";
import { currentVersion, entryProblem, entryTypes, headerProblem, isCorrupt, keepExact } from "./entries.ts";
import { isRecord } from "./is-record.ts";
import { parseExactly } from "./json.ts";
import type { RawLine } from "./lines.ts";
import { splitLines } from "./lines.ts";
import type { LineNeighbors } from "./migrate.ts";
import { migrateEntry, normalizeEntry, normalizeHeader, textIds } from "./migrate.ts";
import type { Steps } from "./slices.ts";
import { atOnce } from "./slices.ts";
import { cutText } from "./text.ts";

/** A parsed session file. Every line is represented. */
export interface ParsedSession {
  /** `null` if the header is lost. */
  readonly header: SessionHeader | null;
  /** The version stated in the file. */
  readonly version: number;
  /** `true` if the file's version is newer than Skein supports. The file can then be read but not written. */
  readonly readOnly: boolean;
  /** Entries and damaged lines, in file order. */
  readonly lines: readonly (Entry | CorruptLine)[];
  readonly diagnostics: readonly Diagnostic[];
  /** The location of each line in the source. */
  readonly places: readonly LinePlace[];
}

/** In bytes or, for a string, UTF-16 code units. The line break is not included. */
export interface LinePlace {
  readonly offset: number;
  readonly length: number;
}

/**
 * Parses a session file in version 1, 2 or 3, and the known parts of a later version. Never throws. A damaged line
 * becomes a value in `lines`, and all problems are in `diagnostics`.
 *
 * @example
 * ```ts
 * import { readFile } from "node:fs/promises";
 * import { parseSession } from "skein";
 * const { header, lines, diagnostics } = parseSession(await readFile("trip.jsonl"));
 * ```
 */
export function parseSession(source: string | Uint8Array): ParsedSession {
  return atOnce(parsingSession(source));
}

/** Like `parseSession`, but line by line, for large files. */
export function* parsingSession(source: string | Uint8Array): Steps<ParsedSession> {
  // Lines without an ID get a generated one. If it clashes with another line's ID, all IDs are generated again.
  for (let attempt = 1; ; attempt += 1) {
    const reader = new Reader(attempt);
    let read = 0;
    for (const raw of splitLines(source)) {
      reader.read(raw);
      read += raw.length;
      if (read < stepBytes) continue;
      yield read;
      read = 0;
    }
    if (!reader.hasClash) return reader.finish();
  }
}

/** Short lines share a step, because a step costs more than reading one of them. */
const stepBytes = 16 * 1024;

const knownTypes = new Set(entryTypes);

class Reader {
  #header: SessionHeader | null = null;
  readonly #lines: (Entry | CorruptLine)[] = [];
  readonly #places: LinePlace[] = [];
  readonly #diagnostics: Diagnostic[] = [];
  #previousId: string | null = null;
  /** IDs by their index in version 1, which counts the header and damaged lines. */
  #idByIndex: (string | null)[] = [];
  #migrated = 0;
  readonly #attempt: number;
  readonly #generatedIds = new Set<string>();
  #line = 0;
  /** For an entry without an ID or a parent. */
  readonly #neighbors: LineNeighbors;

  constructor(attempt: number) {
    this.#attempt = attempt;
    this.#neighbors = {
      newId: () => `line-${this.#line}${this.#attempt === 1 ? "" : `-${this.#attempt}`}`,
      previousId: () => this.#previousId,
      idAtIndex: (index) => this.#idByIndex[index] ?? null,
    };
  }

  /** Whether a generated ID equals another line's ID. */
  get hasClash(): boolean {
    if (this.#generatedIds.size === 0) return false;
    const isGenerated = (line: Entry | CorruptLine) => !isCorrupt(line) && this.#generatedIds.has(line.id);
    return this.#lines.filter(isGenerated).length > this.#generatedIds.size;
  }

  read(raw: RawLine): void {
    this.#idByIndex.push(null);
    const parsed = parseJson(raw);
    if (typeof parsed === "string") this.#corrupt(raw, parsed);
    else if (parsed.value.type === "session") this.#readHeader(parsed.value, raw);
    else this.#readEntry(parsed.value, raw, parsed.exact);
  }

  finish(): ParsedSession {
    if (this.#header === null) this.#report("header_missing", "no header line was found");
    const version = this.#header === null ? currentVersion : (this.#header.version ?? 1);
    if (this.#migrated > 0) {
      this.#report("migrated", `${this.#migrated} entries from an earlier version were read as version 3`);
    }
    if (version > currentVersion) {
      this.#report(
        "newer_version",
        `version ${version} is newer than ${currentVersion}, so the session was opened read-only`,
      );
    }
    return {
      header: this.#header,
      version,
      readOnly: version > currentVersion,
      lines: this.#lines,
      places: this.#places,
      diagnostics: this.#diagnostics,
    };
  }

  #readHeader(value: Record<string, unknown>, raw: RawLine): void {
    if (this.#header !== null) {
      this.#report("extra_header", "a second header was skipped", raw.line);
      return;
    }
    const problem = headerProblem(value);
    const header = problem === null ? value : normalizeHeader(value);
    if (headerProblem(header) !== null) {
      this.#corrupt(raw, "not_entry");
      return;
    }
    if (problem !== null)
      this.#report("normalized_entry", `the header was repaired while being read; ${problem}`, raw.line);
    this.#header = header as unknown as SessionHeader;
    this.#idByIndex = [null];
    this.#ignoreForeignLines();
    if (this.#lines.length === 0) return;
    const count = this.#lines.filter((line) => !isCorrupt(line)).length;
    const before = count === 1 ? "1 entry is" : `${count} entries are`;
    this.#report("late_header", `${before} before the header`, raw.line);
  }

  /** Lines before the header belong to another program, unless one of them is an entry. */
  #ignoreForeignLines(): void {
    if (!this.#lines.every(isCorrupt)) return;
    this.#lines.length = 0;
    this.#places.length = 0;
    for (const [index, found] of this.#diagnostics.entries()) {
      if (found.code !== "corrupt_line") continue;
      this.#diagnostics[index] = { ...found, code: "foreign_line", note: foreignNote };
    }
  }

  #readEntry(given: Record<string, unknown>, raw: RawLine, exact: unknown): void {
    const value = textIds(given);
    const known = typeof value.type === "string" && knownTypes.has(value.type);
    const named = typeof value.type === "string" && typeof value.id === "string" && value.id !== "";
    if (!named && !(known && (value.id ?? null) === null)) {
      if (this.#header === null && this.#lines.length === 0) {
        this.#report("foreign_line", foreignNote, raw.line);
      } else this.#corrupt(raw, "not_entry");
      return;
    }
    this.#line = raw.line;
    const migrated = migrateEntry(value, this.#neighbors);
    if (migrated !== value) this.#migrated += 1;
    const entry = this.#shaped(migrated, known, raw.line);
    if (!named) this.#generatedIds.add(entry.id);
    keepExact(entry, { exact });
    this.#lines.push(entry);
    this.#places.push({ offset: raw.offset, length: raw.length });
    this.#previousId = entry.id;
    this.#idByIndex[this.#idByIndex.length - 1] = entry.id;
  }

  #shaped(value: Record<string, unknown>, known: boolean, line: number): Entry {
    let entry = value;
    let problem = entryProblem(entry);
    if (problem !== null) {
      entry = normalizeEntry(value);
      const remaining = entryProblem(entry);
      if (remaining === null)
        this.#report("normalized_entry", `repaired while being read; ${problem}`, line, String(value.id));
      else
        this.#report(
          "invalid_entry",
          `cannot be used as ${String(value.type)}: ${remaining}`,
          line,
          String(value.id),
        );
      problem = remaining;
    }
    return known && problem === null ? (entry as unknown as Entry) : opaque(entry, value, problem);
  }

  #corrupt(raw: RawLine, reason: CorruptReason): void {
    const corrupt = cutText(raw.text ?? "(not UTF-8)", 120).toWellFormed();
    this.#lines.push({ corrupt, line: raw.line, reason });
    this.#places.push({ offset: raw.offset, length: raw.length });
    this.#report("corrupt_line", `the line was skipped: ${corruptReasonText[reason]}`, raw.line);
  }

  #report(code: Diagnostic["code"], note: string, line?: number, entryId?: string): void {
    const place = line === undefined ? {} : { line };
    this.#diagnostics.push({ code, note, ...place, ...(entryId === undefined ? {} : { entryId }) });
  }
}

const foreignNote = "a line before the header belongs to another program";

/** Explains to users why a line could not be read. */
export const corruptReasonText: Readonly<Record<CorruptReason, string>> = {
  not_utf8: "it is not valid UTF-8",
  not_json: "it is not valid JSON",
  torn: "it is cut off at the end of the file",
  not_object: "it is JSON, but not an object",
  not_entry: "it lacks the type and ID of an entry",
};

function parseJson(
  raw: RawLine,
): { readonly value: Record<string, unknown>; readonly exact: unknown } | CorruptReason {
  if (raw.text === null) return "not_utf8";
  try {
    const { value, exact } = parseExactly(raw.text);
    return isRecord(value) ? { value, exact } : "not_object";
  } catch {
    return raw.complete ? "not_json" : "torn";
  }
}

function opaque(
  entry: Record<string, unknown>,
  original: Record<string, unknown>,
  problem: string | null,
): OpaqueEntry {
  return {
    type: "opaque",
    id: String(entry.id),
    parentId: typeof entry.parentId === "string" ? entry.parentId : null,
    timestamp: typeof entry.timestamp === "string" ? entry.timestamp : "",
    original,
    problem,
  };
}
