import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { FailedRow, ImportedRow, ImportPayload, SkippedRow } from "../../protocol/interchange.ts";
import { SessionImporter } from "../../sessions/import-session.ts";
import { defaultAgent, withFolder } from "../folder/with-folder.ts";
import { failedRow } from "../import/failed-row.ts";
import type { FoundSources } from "../import/find-sources.ts";
import { findSources } from "../import/find-sources.ts";
import type { Program } from "../import/read-source.ts";
import { programs, readSource } from "../import/read-source.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { printImport } from "../output/import-report.ts";
import { withProgress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom, printJson } from "../output/terminal.ts";

export interface ImportOptions extends GlobalOptions {
  readonly from?: string;
  readonly dryRun?: boolean;
}

/** Brings in sessions of other programs. `false`: something could not be imported. */
export async function importCommand(
  terminal: Terminal,
  paths: readonly string[],
  options: ImportOptions,
): Promise<boolean> {
  const from = programOf(options.from);
  const isDry = options.dryRun === true;
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  const found = together(paths.map((path) => findSources(pathFrom(terminal, path), agentId)));
  const done = await withFolder(
    terminal,
    options,
    ({ store }) => {
      // The agent is that of sessions whose own nobody knows; others keep theirs.
      const scope = present({ userId: options.user });
      const importer = new SessionImporter(store.sessions, scope, { agentId, dryRun: isDry });
      return withProgress(terminal, "Importing", (update) => importAll(importer, found, from, update));
    },
    isDry ? "scratch" : "create",
  );
  if (options.json === true) printJson(terminal, done);
  else printImport(terminal, done, { isDry });
  return done.failed.length === 0;
}

function programOf(text: string | undefined): Program | null {
  if (text === undefined) return null;
  const program = programs.find((each) => each === text.toLowerCase());
  if (program !== undefined) return program;
  const problem = `Sessions of "${text}" cannot be imported`;
  throw new SkeinError("invalid_arguments", { problem, advice: `Use one of ${programs.join(", ")}` });
}

function together(found: readonly FoundSources[]): FoundSources {
  return {
    sources: found.flatMap((each) => each.sources),
    failed: found.flatMap((each) => each.failed),
  };
}

async function importAll(
  importer: SessionImporter,
  { sources, failed: before }: FoundSources,
  from: Program | null,
  update: (done: number, total: number) => void,
): Promise<ImportPayload> {
  const imported: ImportedRow[] = [];
  const skipped: SkippedRow[] = [];
  const failed: FailedRow[] = [...before];
  for (const [index, source] of sources.entries()) {
    update(index, sources.length);
    const { file } = source;
    try {
      const session = readSource(source, from);
      if (session === null) continue;
      const outcome = await importer.import(session, source.wish);
      if ("imported" in outcome) imported.push({ file, ...outcome.imported });
      else skipped.push({ file, ...outcome.skipped });
    } catch (error) {
      failed.push(failedRow(file, error));
    }
  }
  update(sources.length, sources.length);
  return { imported, failed, ...(skipped.length === 0 ? {} : { skipped }) };
}
