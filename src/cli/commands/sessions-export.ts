import { readBlobs, readLog, readSessionFile } from "../../app/folder.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { escapeUnprintable } from "../../core/text.ts";
import { noBlobs } from "../../interchange/export-view.ts";
import type { ExportPayload } from "../../protocol/interchange.ts";
import type { ExportFormat } from "../../sessions/export-session.ts";
import { exportFormats, exportPieces } from "../../sessions/export-session.ts";
import { sessionKeyOf } from "../../sessions/history.ts";
import { codeIn, findSession, isFileName, resolveRef } from "../connection/resolve-session.ts";
import { withCalls } from "../connection/with-calls.ts";
import { withFolder } from "../connection/with-folder.ts";
import { answer } from "../output/answer.ts";
import { shownBytes } from "../output/format.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom, printJson } from "../output/terminal.ts";
import { writePieces } from "../output/write-file.ts";

export interface ExportOptions extends GlobalOptions {
  readonly format?: string;
  readonly output?: string;
  readonly all?: boolean;
  readonly force?: boolean;
}

/** Writes a session out, to a file or to where the command prints. */
export async function exportCommand(terminal: Terminal, name: string, options: ExportOptions): Promise<void> {
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

/** `null`: it does not fit into one answer, and is read from the folder piece by piece. */
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
      if (codeIn(error) === "too_large") return null;
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
    answer(terminal, options, payload, [`wrote ${shownBytes(bytes)} to ${file}`]);
  } else if (options.json === true) {
    const payload: ExportPayload = { ...about, content: [...pieces].join("") };
    printJson(terminal, payload);
  } else {
    // In JSON this changes nothing; the other formats have no such characters on purpose.
    for (const piece of pieces) terminal.out(escapeUnprintable(piece));
  }
}

/** As `--format` says, else as the file's name does. */
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
