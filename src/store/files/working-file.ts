import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { TreeOptions } from "../../core/tree.ts";
import { SessionTree } from "../../core/tree.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { appendWhole, readWhole, replaceWhole } from "./disk-files.ts";
import type { LogFile } from "./log-file.ts";
import { cutMarksOf } from "./working-set.ts";

const lineBreak = 0x0a;

/**
 * The working set on disk: the log's second name, or a file of its own that is written after the log and never synced
 * alone. What is wrong with it is mended from the log.
 */
export class WorkingFile {
  readonly #path: string;
  readonly #disk: Disk;
  readonly #log: LogFile;
  /** `null` while it is the log's second name, or not in line with it. */
  #file: DiskFile | null = null;
  /** As far as the log is in it, and where it then ends. */
  #followed = 0;
  #end = 0;

  constructor(path: string, disk: Disk, log: LogFile) {
    this.#path = path;
    this.#disk = disk;
    this.#log = log;
  }

  get isOwnFile(): boolean {
    return this.#file !== null;
  }

  /** Whether it is only another name of the log. */
  isLog(): boolean {
    return this.#disk.stat(this.#path)?.identity === this.#log.identity;
  }

  /** Whether it needs no mending. */
  isInLine(): boolean {
    return this.#file !== null || this.isLog();
  }

  /** Whether nobody else has written to it since, and it has all of the log up to here. */
  isUntouched(logSize: number): boolean {
    const named = this.#disk.stat(this.#path);
    if (named === null) return false;
    if (named.identity === this.#log.identity) return true;
    return (
      this.#file?.stat().identity === named.identity && named.size === this.#end && this.#followed === logSize
    );
  }

  readWhole(): Uint8Array | null {
    try {
      return readWhole(this.#disk, this.#path);
    } catch (error) {
      if (!(error instanceof SkeinError) || error.code !== "unreadable_file") throw error;
      const advice = "Move it to another place; the next request builds the file from the session's log";
      throw new SkeinError("unreadable_file", { ...error.details, advice } as typeof error.details);
    }
  }

  /**
   * What it holds, if that says what the log says: its own lines at the cut, then the log's bytes behind it. From then
   * on it follows the log. `null`: it has to be made anew.
   */
  adopt(bytes: Uint8Array | null, options: TreeOptions): SessionTree | null {
    this.#drop();
    if (bytes === null || this.isLog()) return null;
    const session = parseSession(bytes);
    const headerEnd = bytes.indexOf(lineBreak) + 1;
    const marks = cutMarksOf(session.header) ?? { logBytes: 0, ownBytes: -headerEnd };
    const expected = this.#log.read(marks.logBytes, Math.max(0, this.#log.size - marks.logBytes));
    if (Buffer.compare(bytes.subarray(headerEnd + marks.ownBytes), expected) !== 0) return null;
    // The same bytes are not enough where the leaf moved to an entry that was left out, and a crash came before the cut.
    const tree = SessionTree.from(session, options);
    if (tree.diagnostics.some(({ code }) => code === "missing_parent")) return null;
    this.#file = this.#disk.openExisting(this.#path);
    this.#followed = marks.logBytes + expected.length;
    this.#end = bytes.length;
    return tree;
  }

  /** Copies what it does not have yet from the log. What went wrong, or `null`; the log has it all the same. */
  follow(logSize: number): string | null {
    if (this.#file === null || logSize <= this.#followed) return null;
    try {
      const bytes = this.#log.read(this.#followed, logSize - this.#followed);
      appendWhole(this.#file, bytes);
      this.#followed = logSize;
      this.#end += bytes.length;
      return null;
    } catch (error) {
      this.#drop();
      return `the working set could not follow: ${(error as Error).message}`;
    }
  }

  /**
   * Puts another one in its place, whole and durable. What somebody else has added to the old one until then comes back:
   * it is nowhere else.
   */
  async replace(text: string, logSize: number, token: string): Promise<Uint8Array | null> {
    await replaceWhole(this.#disk, this.#path, Buffer.from(text), token);
    const size = this.#file?.size() ?? 0;
    const late =
      this.#file !== null && size > this.#end ? this.#file.read(this.#end, size - this.#end) : null;
    this.#drop();
    this.#file = this.#disk.openExisting(this.#path);
    this.#followed = logSize;
    this.#end = Buffer.byteLength(text);
    return late;
  }

  close(): void {
    this.#drop();
  }

  #drop(): void {
    this.#file?.close();
    this.#file = null;
  }
}
