import type { Entry } from "../../core/entries.ts";
import { isRecord } from "../../core/is-record.ts";
import type { TranscriptEntry } from "./contract.ts";
import { createShownState, toShownEntries } from "./shown-entries.ts";

/** An entry of this type contains one Claude Code entry, unchanged. It is never the session's leaf. */
export const transcriptType = "skein.claude-code.entry";

interface TranscriptRecord {
  readonly entry: TranscriptEntry;
  /** The last entry that shows the transcript entry or, if there is none, the last entry before it on its branch. */
  readonly end: string | null;
}

/** The entries of one transcript, in the order in which they were written. */
export class TranscriptIndex {
  readonly entries: TranscriptEntry[] = [];
  readonly shown = createShownState();
  /** The ID of the session's last entry, of any type. */
  lastId: string | null = null;
  readonly #ends = new Map<string, string | null>();
  #lastEnd: string | null = null;

  addEntry(entry: Entry): void {
    this.lastId = entry.id;
    if (entry.type !== "custom" || entry.customType !== transcriptType || !isRecord(entry.data)) return;
    const record = entry.data as unknown as TranscriptRecord;
    this.entries.push(record.entry);
    // An entry that this process has written is already known.
    if (record.entry.uuid === undefined || !this.has(record.entry.uuid))
      toShownEntries(record.entry, this.shown);
    this.setEnd(record.entry, record.end);
  }

  has(uuid: string): boolean {
    return this.#ends.has(uuid);
  }

  setEnd({ uuid }: TranscriptEntry, end: string | null): void {
    if (uuid !== undefined) this.#ends.set(uuid, end);
    this.#lastEnd = end;
  }

  /** Returns the entry after which the entries that show this transcript entry are appended. */
  parentEnd(entry: TranscriptEntry): string | null {
    const { parentUuid, isCompactSummary } = entry;
    if (isCompactSummary === true || parentUuid === undefined) return this.#lastEnd;
    if (parentUuid === null) return entry.logicalParentUuid === undefined ? null : this.#lastEnd;
    return typeof parentUuid === "string" && this.#ends.has(parentUuid)
      ? (this.#ends.get(parentUuid) ?? null)
      : this.#lastEnd;
  }
}
