import { relative } from "node:path";
import type { Command } from "commander";
import { configuredFileBoundary } from "../app/files.ts";
import { SkeinError } from "../core/errors.ts";
import { parseAgentId } from "../core/names.ts";
import { present } from "../core/present.ts";
import type { ImportPayload } from "../protocol/interchange.ts";
import type { ImportSettings } from "../sessions/import.ts";
import { SessionImporter } from "../sessions/import.ts";
import type { Program, Sources } from "../sessions/import-sources.ts";
import { checkNamesOne, importAll, programs } from "../sessions/import-sources.ts";
import { chosenCwd } from "../sessions/runtime-context.ts";
import { parseModel } from "../transcript/model-table.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { withCalls } from "./connection/with-calls.ts";
import { defaultAgent, processFolder } from "./connection/with-folder.ts";
import type { FoundSource } from "./import-sources.ts";
import { findSources, importOverCalls, mergeSources } from "./import-sources.ts";
import { printPayload } from "./output/answer.ts";
import { CommandFailed } from "./output/errors.ts";
import { pluralize } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import { withProgress } from "./output/progress.ts";
import type { Column } from "./output/table.ts";
import { printTable } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, pathFrom } from "./output/terminal.ts";

export function registerSessionsImport(command: Command, context: CommandContext): void {
  command
    .argument("<path...>", "transcripts, folders of transcripts, or an OpenClaw folder")
    .option("--from <program>", "import only sessions from this program: pi, openclaw, claude-code or codex")
    .option("--dry-run", "print what would be imported, without importing it")
    .option("--key <key>", "the imported session's key (default: based on its session ID)")
    .option("--label <label>", "a label for the imported session; must be unique within the agent")
    .option("--cwd <folder>", "the imported sessions' working directory (default: their agent's)")
    .option("--model <provider/model>", "the model for the imported sessions")
    .option("--send-policy <policy>", "allow or deny delivery of replies to a channel")
    .option("--deliver-to <channel:to>", "where to deliver replies from the imported sessions")
    .option(
      "--keep-metadata",
      "keep the keys, labels, delivery targets, models, send policies, lineage and folders from the files",
    )
    .addHelpText(
      "after",
      examples(
        "skein sessions import ./trip.jsonl --dry-run",
        "skein sessions import ./transcripts --from pi",
        "skein sessions import ./trip.jsonl --agent research --label trip",
        "skein sessions import ./transcripts --keep-metadata",
      ),
    )
    .action(action(context, importCommand));
}

interface ImportOptions {
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

/** Fails if something could not be imported or nothing was found. */
async function importCommand(cli: Invocation<ImportOptions>, paths: readonly string[]): Promise<void> {
  const { terminal, options } = cli;
  const from = programOf(options.from);
  const isDry = options.dryRun === true;
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  const settings = settingsFrom(cli);
  const found = mergeSources(paths.map((path) => findSources(pathFrom(terminal, path), agentId)));
  checkNamesOne(settings, found);
  const done = await withCalls(
    cli,
    (open) =>
      withProgress(terminal, "Importing", (update) =>
        importFound(open, found, { from, isDry, settings }, update),
      ),
    isDry ? "scratch" : "create",
  );
  printPayload(cli, done, () => printImport(cli, done));
  const isDone = done.failed.length === 0 && done.imported.length + (done.skipped?.length ?? 0) > 0;
  if (!isDone) throw new CommandFailed();
}

function settingsFrom({ terminal, options }: Invocation<ImportOptions>): ImportSettings {
  const { key, label, cwd, model, sendPolicy, deliverTo, keepMetadata } = options;
  if (model !== undefined) parseModel(model);
  if (sendPolicy !== undefined && sendPolicy !== "allow" && sendPolicy !== "deny") {
    const problem = `"${sendPolicy}" is not a send policy`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Use allow or deny" });
  }
  const folder = cwd === undefined ? undefined : pathFrom(terminal, cwd);
  return { key, label, cwd: folder, model, sendPolicy, delivery: deliveryFrom(deliverTo), keepMetadata };
}

/** Parses `channel:to`, or only a channel. */
function deliveryFrom(text: string | undefined): ImportSettings["delivery"] {
  if (text === undefined) return undefined;
  const [channel = "", ...rest] = text.split(":");
  if (channel === "") {
    const problem = `"${text}" is not a valid channel target`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Use <channel>:<to>, for example desk:17" });
  }
  return { channel, ...(rest.length === 0 ? {} : { to: rest.join(":") }) };
}

function programOf(text: string | undefined): Program | null {
  if (text === undefined) return null;
  const program = programs.find((each) => each === text.toLowerCase());
  if (program !== undefined) return program;
  const problem = `Importing sessions from "${text}" is not supported`;
  throw new SkeinError("invalid_arguments", { problem, advice: `Use one of ${programs.join(", ")}` });
}

/** The folder accepts files of any size. A gateway accepts only files that fit in its frames. */
async function importFound(
  { terminal, store, calls, asker, reader, user, loaded }: OpenCalls,
  found: Sources<FoundSource>,
  how: { readonly from: Program | null; readonly isDry: boolean; readonly settings: ImportSettings },
  update: (done: number, total: number) => void,
): Promise<ImportPayload> {
  // The agent for transcripts that are not in an agent's folder.
  const { agentId } = asker;
  const { from, isDry, settings } = how;
  if (store === null) {
    const about = { ...reader, agentId, dryRun: isDry, ...present(settings) };
    return importOverCalls(calls, found, { from, about }, update);
  }
  const files = configuredFileBoundary(loaded, processFolder(terminal));
  const importer = new SessionImporter(store.sessions, user, {
    ...{ agentId, dryRun: isDry, settings, clock: terminal },
    cwdFor: (agent, wanted) =>
      chosenCwd(wanted, (path) =>
        files.resolveCwd({ userId: user.userId ?? null, agentId: agent }, path, "operator"),
      ),
  });
  return importAll(importer, found, from, update);
}

const mostShown = 20;
const longest = 2000;

function printImport(
  cli: Invocation<ImportOptions>,
  { imported, skipped = [], ignored = [], failed }: ImportPayload,
): void {
  const { terminal, options } = cli;
  const line = (text: string) => terminal.out(`${oneLine(text, longest)}\n`);
  const title = (text: string) => terminal.out(`\n${paint(terminal, "bold", text)}\n`);
  const entries = imported.reduce((sum, each) => sum + each.entries, 0);
  const verb = options.dryRun === true ? "would import" : "imported";
  line(`${verb} ${pluralize(imported.length, "session")} with ${pluralize(entries, "entry", "entries")}`);
  if (imported.length + skipped.length + ignored.length + failed.length === 0)
    line("no sessions were found there");
  if (imported.length > 0) {
    const columns: Column<(typeof imported)[number]>[] = [
      { title: "KEY", text: ({ key }) => key, whole: true },
      { title: "ENTRIES", text: (row) => String(row.entries), align: "right" },
      { title: "FILE", text: ({ file }) => shownPath(terminal, file), least: 20 },
    ];
    printTable(terminal, columns, imported.slice(0, mostShown));
    if (imported.length > mostShown)
      line(`and ${imported.length - mostShown} more; use --json to show them all`);
  }
  const lost = sumUp(imported.flatMap(({ notKept }) => notKept));
  if (lost.length > 0) title("Not kept");
  for (const { what, count, example } of lost.slice(0, mostShown)) {
    const text = `${count} × ${what}${example === undefined ? "" : ` (${example})`}`;
    terminal.out(`  ${oneLine(text, longest)}\n`);
  }
  if (lost.length > mostShown) line(`  and ${lost.length - mostShown} more; use --json to show them all`);
  if (skipped.length > 0) title("Skipped");
  for (const [why, rows] of Map.groupBy(skipped, (each) => each.why)) {
    terminal.out(`  ${pluralize(rows.length, "session")}: ${why}${remedyFor(cli, why, rows)}\n`);
  }
  if (ignored.length > 0) title("Ignored");
  for (const [why, rows] of Map.groupBy(ignored, (each) => each.why))
    terminal.out(`  ${pluralize(rows.length, "file")} ${why}\n`);
  if (failed.length > 0) title("Failed");
  for (const { file, error } of failed) terminal.out(`  ${oneLine(`${file}: ${error}`, longest)}\n`);
}

/** The path relative to the current directory, if that is shorter. */
function shownPath({ cwd }: Terminal, file: string): string {
  const path = relative(cwd, file);
  return path.startsWith("..") || path.length > file.length ? file : path;
}

interface Loss {
  readonly what: string;
  readonly count: number;
  readonly example?: string;
}

/** Merges identical losses from several sessions. */
function sumUp(losses: readonly Loss[]): Loss[] {
  return [...Map.groupBy(losses, ({ what }) => what)].map(([what, each]) => {
    const example = each.find((one) => one.example !== undefined)?.example;
    const count = each.reduce((sum, one) => sum + one.count, 0);
    return { what, count, ...(example === undefined ? {} : { example }) };
  });
}

/** Returns the commands that restore sessions that were skipped because they are in the trash. */
function remedyFor(cli: Invocation, why: string, rows: readonly { readonly sessionId: string }[]): string {
  if (why !== "in the trash") return "";
  const restore = rows
    .slice(0, mostShown)
    .map(({ sessionId }) => commandLine(cli, "sessions", "restore", sessionId));
  const rest = rows.length > mostShown ? [commandLine(cli, "sessions", "ls", "--trash")] : [];
  return `; restore with${[...restore, ...rest].map((command) => `\n    ${command}`).join("")}`;
}
