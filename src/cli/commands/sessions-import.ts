import { configuredFileBoundary } from "../../app/files.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { ImportPayload } from "../../protocol/interchange.ts";
import type { ImportSettings } from "../../sessions/import.ts";
import { SessionImporter } from "../../sessions/import.ts";
import type { Program, Sources } from "../../sessions/import-sources.ts";
import { checkNamesOne, importAll, programs } from "../../sessions/import-sources.ts";
import { chosenCwd } from "../../sessions/runtime-context.ts";
import { parseModel } from "../../transcript/parse-model.ts";
import type { OpenFolderCalls } from "../connection/with-calls.ts";
import { withCalls } from "../connection/with-calls.ts";
import { defaultAgent, processFolder } from "../connection/with-folder.ts";
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
  readonly key?: string;
  readonly label?: string;
  readonly cwd?: string;
  readonly model?: string;
  readonly sendPolicy?: string;
  readonly deliverTo?: string;
  readonly keepMetadata?: boolean;
}

/** Brings in sessions of other programs. `false`: something could not be imported, or there was nothing to import. */
export async function importCommand(
  terminal: Terminal,
  paths: readonly string[],
  options: ImportOptions,
): Promise<boolean> {
  const from = programOf(options.from);
  const isDry = options.dryRun === true;
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  const settings = settingsFrom(terminal, options);
  const found = together(paths.map((path) => findSources(pathFrom(terminal, path), agentId)));
  checkNamesOne(settings, found);
  const { done, toType } = await withCalls(
    terminal,
    options,
    async (open) => ({
      done: await withProgress(terminal, "Importing", (update) =>
        importFound(terminal, open, found, { from, isDry, settings }, update),
      ),
      toType: open.toType,
    }),
    isDry ? "scratch" : "create",
  );
  if (options.json === true) printJson(terminal, done);
  else printImport(terminal, done, { isDry, toType });
  return done.failed.length === 0 && done.imported.length + (done.skipped?.length ?? 0) > 0;
}

function settingsFrom(terminal: Terminal, options: ImportOptions): ImportSettings {
  const { key, label, cwd, model, sendPolicy, deliverTo, keepMetadata } = options;
  if (model !== undefined) parseModel(model);
  if (sendPolicy !== undefined && sendPolicy !== "allow" && sendPolicy !== "deny") {
    const problem = `"${sendPolicy}" is not a send policy`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Use allow or deny" });
  }
  const folder = cwd === undefined ? undefined : pathFrom(terminal, cwd);
  return { key, label, cwd: folder, model, sendPolicy, delivery: deliveryFrom(deliverTo), keepMetadata };
}

/** `channel:to`, or a channel alone. */
function deliveryFrom(text: string | undefined): ImportSettings["delivery"] {
  if (text === undefined) return undefined;
  const [channel = "", ...rest] = text.split(":");
  if (channel === "") {
    const problem = `"${text}" names no channel to deliver to`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Use <channel>:<to>, for example desk:17" });
  }
  return { channel, ...(rest.length === 0 ? {} : { to: rest.join(":") }) };
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
  terminal: Terminal,
  { store, calls, asker, reader, loaded }: OpenFolderCalls,
  found: Sources<FoundSource>,
  how: { readonly from: Program | null; readonly isDry: boolean; readonly settings: ImportSettings },
  update: (done: number, total: number) => void,
): Promise<ImportPayload> {
  // The agent of sessions whose folder names none.
  const { agentId } = asker;
  const { from, isDry, settings } = how;
  if (store === null) {
    const about = { ...reader, agentId, dryRun: isDry, ...present(settings) };
    return importOverCalls(calls, found, { from, about }, update);
  }
  const scope = present({ userId: reader.userId });
  const files = configuredFileBoundary(loaded, processFolder(terminal));
  const importer = new SessionImporter(store.sessions, scope, {
    ...{ agentId, dryRun: isDry, settings, clock: terminal },
    cwdFor: (agent, wanted) =>
      chosenCwd(wanted, (path) =>
        files.resolveCwd({ userId: reader.userId ?? null, agentId: agent }, path, "operator"),
      ),
  });
  return importAll(importer, found, from, update);
}
