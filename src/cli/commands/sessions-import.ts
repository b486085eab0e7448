import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { ImportPayload } from "../../protocol/interchange.ts";
import { SessionImporter } from "../../sessions/import-session.ts";
import type { Program } from "../../sessions/importing/read-source.ts";
import { programs } from "../../sessions/importing/read-source.ts";
import type { Sources } from "../../sessions/importing/sources.ts";
import { importAll } from "../../sessions/importing/sources.ts";
import type { OpenCalls } from "../folder/with-calls.ts";
import { withCalls } from "../folder/with-calls.ts";
import { defaultAgent } from "../folder/with-folder.ts";
import type { FoundSource } from "../import/find-sources.ts";
import { findSources } from "../import/find-sources.ts";
import { importOverCalls } from "../import/over-calls.ts";
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
  const done = await withCalls(
    terminal,
    options,
    (open) =>
      withProgress(terminal, "Importing", (update) => importFound(open, found, { from, isDry }, update)),
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

function together(found: readonly Sources<FoundSource>[]): Sources<FoundSource> {
  return {
    sources: found.flatMap((each) => each.sources),
    failed: found.flatMap((each) => each.failed),
  };
}

/** Into the folder itself files of any size go, byte for byte; to a gateway, what fits into its frames. */
async function importFound(
  { store, calls, asker, reader }: OpenCalls,
  found: Sources<FoundSource>,
  { from, isDry }: { readonly from: Program | null; readonly isDry: boolean },
  update: (done: number, total: number) => void,
): Promise<ImportPayload> {
  // The agent is that of sessions whose own nobody knows; others keep theirs.
  const { agentId } = asker;
  if (store === null) {
    const about = { ...reader, agentId, dryRun: isDry };
    return importOverCalls(calls, found, { from, about }, update);
  }
  const scope = present({ userId: reader.userId });
  const importer = new SessionImporter(store.sessions, scope, { agentId, dryRun: isDry });
  return importAll(importer, found, from, update);
}
