import { readBlobs, readLog, readSessionFile } from "../../compose.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { escapeUnprintable } from "../../core/text.ts";
import type { SessionTree } from "../../core/tree.ts";
import { exportHtml } from "../../interchange/export-html.ts";
import { exportJsonl } from "../../interchange/export-jsonl.ts";
import { exportMarkdown } from "../../interchange/export-markdown.ts";
import type { BlobOf } from "../../interchange/inline-blobs.ts";
import { noBlobs } from "../../interchange/inline-blobs.ts";
import type { ExportPayload } from "../../protocol/interchange.ts";
import { sessionKeyOf } from "../../sessions/session-key.ts";
import { findSession, isFileName } from "../folder/find-session.ts";
import { withFolder } from "../folder/with-folder.ts";
import { shownBytes } from "../output/amounts.ts";
import { answer } from "../output/answer.ts";
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

const formats = ["jsonl", "md", "html"] as const;
type Format = (typeof formats)[number];

/** Writes a session out, to a file or to where the command prints. */
export async function exportCommand(terminal: Terminal, name: string, options: ExportOptions): Promise<void> {
  const format = formatOf(options);
  if (isFileName(name)) {
    const tree = await readSessionFile(pathFrom(terminal, name));
    write(terminal, { tree, key: sessionKeyOf(tree), blobOf: noBlobs, format }, options);
    return;
  }
  await withFolder(terminal, options, async (folder) => {
    const { store } = folder;
    const record = await findSession(folder, name);
    const tree = await readLog(store, record);
    write(terminal, { tree, key: record.key, blobOf: readBlobs(store, record), format }, options);
  });
}

interface Exported {
  readonly tree: SessionTree;
  readonly key: string | null;
  readonly blobOf: BlobOf;
  readonly format: Format;
}

function write(terminal: Terminal, exported: Exported, options: ExportOptions): void {
  const { tree, key, format } = exported;
  const about = { ...present({ key }), sessionId: tree.header.id, format };
  const pieces = piecesOf(exported, options.all === true);
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

function piecesOf({ tree, blobOf, format }: Exported, all: boolean): Iterable<string> {
  switch (format) {
    case "jsonl":
      return exportJsonl(tree, blobOf);
    case "md":
      return exportMarkdown(tree, blobOf, { branches: all ? "all" : "active" });
    case "html":
      return exportHtml(tree, blobOf);
  }
}

/** As `--format` says, else as the file's name does. */
function formatOf({ format, output }: ExportOptions): Format {
  const text = format ?? /\.(\w+)$/.exec(output ?? "")?.[1] ?? "jsonl";
  const known = formats.find((each) => each === text.toLowerCase());
  if (known !== undefined) return known;
  const problem = `There is no format "${text}"`;
  throw new SkeinError("invalid_arguments", {
    problem,
    advice: `Use --format ${formats.join(", --format ")}`,
  });
}
