import { SkeinError } from "../../core/errors.ts";
import { Slices } from "../../core/slices.ts";
import type {
  FailedRow,
  IgnoredRow,
  ImportedRow,
  ImportPayload,
  SkippedRow,
} from "../../protocol/interchange.ts";
import type { ImportSettings, ImportWish, SessionImporter } from "../import-session.ts";
import { failedRow } from "./failed-row.ts";
import { splitPath } from "./paths.ts";
import type { Program } from "./read-source.ts";
import { otherProgram, readSource } from "./read-source.ts";

/** A transcript to be read, and what is known of it from beside. */
export interface Source {
  /** What it is called in reports: a path, or a name that somebody gave. */
  readonly file: string;
  readonly wish: ImportWish;
  /** Named by the user, not found in a folder. */
  readonly isNamed: boolean;
  /** Its content. Throws as a disk does. */
  read(): Uint8Array;
}

export interface Sources<S extends Source = Source> {
  readonly sources: readonly S[];
  /** What was seen to be amiss before any transcript was read. */
  readonly failed: readonly FailedRow[];
}

/** Refuses to give several sessions the same name, before any of them is imported. */
export function checkNamesOne({ key, label }: ImportSettings, { sources }: Sources): void {
  if (sources.length < 2 || (key === undefined && label === undefined)) return;
  const problem = `A key or a label names one session, and there are ${sources.length} files`;
  throw new SkeinError("invalid_arguments", { problem, advice: "Import that file alone" });
}

/** Imports one after the other; what fails costs nothing else. `from`: `null` finds out what each is. */
export async function importAll(
  importer: SessionImporter,
  { sources, failed: before }: Sources,
  from: Program | null,
  update: (done: number, total: number) => void = () => undefined,
): Promise<ImportPayload> {
  const slices = new Slices();
  const imported: ImportedRow[] = [];
  const skipped: SkippedRow[] = [];
  const ignored: IgnoredRow[] = [];
  const failed: FailedRow[] = [...before];
  for (const [index, source] of sources.entries()) {
    update(index, sources.length);
    const { file } = source;
    try {
      const bytes = source.read();
      const why = otherProgram(source, bytes, from);
      if (why !== null && source.isNamed) throw wrongProgram(file, why);
      if (why !== null) {
        ignored.push({ file, why });
        continue;
      }
      const session = await slices.run(readSource(source, bytes, from));
      const outcome = await importer.import(session, source.wish);
      if ("imported" in outcome) imported.push({ file, ...outcome.imported });
      else skipped.push({ file, ...outcome.skipped });
    } catch (error) {
      failed.push(failedRow(file, error));
    }
    await slices.turn();
  }
  update(sources.length, sources.length);
  return importPayload({ imported, failed, skipped, ignored });
}

/** Lists that may be absent are left out when they are empty. */
export function importPayload({
  imported,
  failed,
  skipped,
  ignored,
}: Required<ImportPayload>): ImportPayload {
  return {
    imported,
    failed,
    ...(skipped.length === 0 ? {} : { skipped }),
    ...(ignored.length === 0 ? {} : { ignored }),
  };
}

function wrongProgram(file: string, why: string): SkeinError {
  const advice = "Name its program, or none, and it is recognized";
  return new SkeinError("invalid_arguments", { problem: `${splitPath(file).name} is a file ${why}`, advice });
}
