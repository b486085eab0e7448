import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { escapeUnprintable } from "../core/text.ts";
import { noBlobs } from "../interchange/export-view.ts";
import type { ExportPayload } from "../protocol/interchange.ts";
import type { ExportFormat } from "../sessions/export-session.ts";
import { exportFormats, exportPieces } from "../sessions/export-session.ts";
import { sessionKeyOf } from "../sessions/history.ts";
import { readSessionFile } from "../store/files/lone-file.ts";
import { noSuchSession } from "../store/rules.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, refHelp } from "./command.ts";
import { errorCodeOf, findSession, isFileName, resolveRef } from "./connection/resolve-session.ts";
import { withCalls } from "./connection/with-calls.ts";
import { withFolder } from "./connection/with-folder.ts";
import { printAnswer } from "./output/answer.ts";
import { formatBytes } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { pathFrom, printJson } from "./output/terminal.ts";

export function registerSessionsExport(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .option("--format <format>", "jsonl, md or html (default: the output file's extension, otherwise jsonl)")
    .option("-o, --output <file>", "write to this file instead of printing")
    .option("--all", "include all branches in Markdown; the other formats always do")
    .option("--force", "replace an existing file")
    .addHelpText(
      "after",
      examples(
        "skein sessions export trip -o kyoto.html",
        "skein sessions export trip --format md --all",
        "skein sessions export ./trip.jsonl --format md",
      ),
    )
    .action(action(context, exportCommand));
}

interface ExportOptions {
  readonly format?: string;
  readonly output?: string;
  readonly all?: boolean;
  readonly force?: boolean;
}

type Format = { readonly format: ExportFormat; readonly all: boolean };

async function exportCommand(cli: Invocation<ExportOptions>, name: string): Promise<void> {
  const format = formatOf(cli.options);
  const as = { format, all: cli.options.all === true };
  if (isFileName(name)) {
    const tree = await readSessionFile(pathFrom(cli.terminal, name));
    const about = { ...present({ key: sessionKeyOf(tree) }), sessionId: tree.header.id, format };
    return write(cli, about, exportPieces(tree, noBlobs, as));
  }
  const exported = await exportByCall(cli, name, as);
  if (exported !== null) {
    const { content = "", ...about } = exported;
    return write(cli, about, [content]);
  }
  await withFolder(cli, async (folder) => {
    const record = await findSession(folder, name);
    const { key, sessionId } = record;
    const { upkeep } = folder.store;
    const tree = (await upkeep.readLog(record)) ?? noSuchSession(record.sessionId);
    const pieces = exportPieces(tree, upkeep.blobReader(record) ?? noBlobs, as);
    write(cli, { key, sessionId, format }, pieces);
  });
}

/** Returns `null` if the export is too large for one response, in which case it is read from the folder. */
async function exportByCall(cli: Invocation, name: string, as: Format): Promise<ExportPayload | null> {
  return withCalls(cli, async (open) => {
    const { key } = await resolveRef(open, name);
    try {
      return await open.calls.call("sessions.export", { key, ...as, ...open.reader });
    } catch (error) {
      if (errorCodeOf(error) === "too_large") return null;
      throw error;
    }
  });
}

type About = Pick<ExportPayload, "key" | "sessionId" | "format">;

function write(
  { terminal, options }: Invocation<ExportOptions>,
  about: About,
  pieces: Iterable<string>,
): void {
  if (options.output !== undefined) {
    const file = pathFrom(terminal, options.output);
    const bytes = writePieces(file, pieces, options.force === true);
    const payload: ExportPayload = { ...about, file, bytes };
    printAnswer({ terminal, options }, payload, [`wrote ${formatBytes(bytes)} to ${file}`]);
  } else if (options.json === true) {
    const payload: ExportPayload = { ...about, content: [...pieces].join("") };
    printJson(terminal, payload);
  } else {
    // Escaping does not change JSON, and the other formats contain no control characters.
    for (const piece of pieces) terminal.out(escapeUnprintable(piece));
  }
}

function formatOf({ format, output }: ExportOptions): ExportFormat {
  const text = format ?? /\.(\w+)$/.exec(output ?? "")?.[1] ?? "jsonl";
  const known = exportFormats.find((each) => each === text.toLowerCase());
  if (known !== undefined) return known;
  const advice = `Use --format ${exportFormats.join(", --format ")}`;
  throw new SkeinError("invalid_arguments", { problem: `Unknown format "${text}"`, advice });
}

/** Pieces are buffered up to this size. */
const chunk = 256 * 1024;

/** Writes a file that only its owner can read. Leaves no partial file if writing fails. Returns the size in bytes. */
function writePieces(path: string, pieces: Iterable<string>, replace: boolean): number {
  const target = replace ? `${path}.part-${process.pid}` : path;
  const file = open(path, target);
  let bytes = 0;
  try {
    let held = "";
    for (const piece of pieces) {
      held += piece;
      if (held.length < chunk) continue;
      bytes += writeAll(file, held);
      held = "";
    }
    bytes += writeAll(file, held);
    closeSync(file);
    if (replace) renameSync(target, path);
    return bytes;
  } catch (error) {
    rmSync(target, { force: true });
    throw error instanceof SkeinError ? error : notWritten(path, error as Error);
  }
}

function open(path: string, target: string): number {
  try {
    return openSync(target, target === path ? "wx" : "w", 0o600);
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST";
    throw isThere
      ? new SkeinError("write_failed", {
          file: path,
          problem: "it already exists",
          advice: "Choose a different file, or add --force to replace it",
        })
      : notWritten(path, error as Error);
  }
}

function writeAll(file: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
  return bytes.length;
}

function notWritten(file: string, error: Error): SkeinError {
  const advice = "Check the path and the free disk space";
  return new SkeinError("write_failed", { file, problem: error.message, advice }, { cause: error });
}
