import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import type { Command } from "commander";
import { readBlobs, readLog } from "../app/folder.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { escapeUnprintable } from "../core/text.ts";
import { noBlobs } from "../interchange/export-view.ts";
import type { ExportPayload } from "../protocol/interchange.ts";
import type { ExportFormat } from "../sessions/export-session.ts";
import { exportFormats, exportPieces } from "../sessions/export-session.ts";
import { sessionKeyOf } from "../sessions/history.ts";
import { readSessionFile } from "../store/files/lone-file.ts";
import type { CommandContext } from "./command.ts";
import { examples, refHelp } from "./command.ts";
import { errorCodeOf, findSession, isFileName, resolveRef } from "./connection/resolve-session.ts";
import { withCalls } from "./connection/with-calls.ts";
import { withFolder } from "./connection/with-folder.ts";
import { answer } from "./output/answer.ts";
import { formatBytes } from "./output/format.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { pathFrom, printJson } from "./output/terminal.ts";

export function registerSessionsExport(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .option("--format <format>", "jsonl, md or html (default: by the file's extension, else jsonl)")
    .option("-o, --output <file>", "write to this file instead of printing")
    .option("--all", "every branch in Markdown; the other formats always have them")
    .option("--force", "replace an existing file")
    .addHelpText(
      "after",
      examples(
        "skein sessions export trip -o kyoto.html",
        "skein sessions export trip --format md --all",
        "skein sessions export ./trip.jsonl --format md",
      ),
    )
    .action((ref: string) => exportCommand(terminal, ref, command.optsWithGlobals()));
}

interface ExportOptions extends GlobalOptions {
  readonly format?: string;
  readonly output?: string;
  readonly all?: boolean;
  readonly force?: boolean;
}

async function exportCommand(terminal: Terminal, name: string, options: ExportOptions): Promise<void> {
  const as = { format: formatOf(options), all: options.all === true };
  if (isFileName(name)) {
    const tree = await readSessionFile(pathFrom(terminal, name));
    const about = { ...present({ key: sessionKeyOf(tree) }), sessionId: tree.header.id, format: as.format };
    write(terminal, about, exportPieces(tree, noBlobs, as), options);
    return;
  }
  const exported = await exportByCall(terminal, name, as, options);
  if (exported !== null) {
    const { content = "", ...about } = exported;
    write(terminal, about, [content], options);
    return;
  }
  await withFolder(terminal, options, async (folder) => {
    const record = await findSession(folder, name);
    const { key, sessionId } = record;
    const pieces = exportPieces(await readLog(folder.store, record), readBlobs(folder.store, record), as);
    write(terminal, { key, sessionId, format: as.format }, pieces, options);
  });
}

/** `null`: too large for one answer; it is read from the folder instead. */
async function exportByCall(
  terminal: Terminal,
  name: string,
  as: { readonly format: ExportFormat; readonly all: boolean },
  options: ExportOptions,
): Promise<ExportPayload | null> {
  return withCalls(terminal, options, async (open) => {
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

function write(terminal: Terminal, about: About, pieces: Iterable<string>, options: ExportOptions): void {
  if (options.output !== undefined) {
    const file = pathFrom(terminal, options.output);
    const bytes = writePieces(file, pieces, { replace: options.force === true });
    const payload: ExportPayload = { ...about, file, bytes };
    answer(terminal, options, payload, [`wrote ${formatBytes(bytes)} to ${file}`]);
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
  const problem = `There is no format "${text}"`;
  throw new SkeinError("invalid_arguments", {
    problem,
    advice: `Use --format ${exportFormats.join(", --format ")}`,
  });
}

/** Pieces are buffered up to this size. */
const chunk = 256 * 1024;

/** Writes a file that only its owner can read, completely or not at all. Returns its size in bytes. */
function writePieces(
  path: string,
  pieces: Iterable<string>,
  { replace = false }: { readonly replace?: boolean } = {},
): number {
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
          advice: "Name another file, or add --force to replace it",
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
  const advice = "Check the path and the room on its disk";
  return new SkeinError("write_failed", { file, problem: error.message, advice }, { cause: error });
}
