import { readFile } from "node:fs/promises";
import { SkeinError } from "../../core/errors.ts";
import { readImageHeader } from "../../core/image-header.ts";
import { typedPaths } from "../../sessions/find-image-paths.ts";
import { promptImages } from "../../sessions/prompt-images.ts";
import { printNotice } from "../output/answer.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";
import type { SessionParams } from "./resolve-session.ts";
import { errorCodeOf } from "./resolve-session.ts";
import { processFolder } from "./with-folder.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

interface Image {
  readonly data: string;
  readonly mimeType: string;
}

export async function readImages(terminal: Terminal, files: readonly string[]): Promise<Image[]> {
  return Promise.all(files.map((file) => readOne(pathFrom(terminal, file))));
}

/**
 * The maximum amount of image data that fits in one gateway call after base64 encoding, with room left for the text.
 */
const maxTotalBytes = 16 * 1024 * 1024;

/**
 * Reads the images whose paths appear in a message. The client reads them because a gateway does not read files named
 * by its clients. Only files inside the session's folder are read. A note names each file that is not attached.
 */
export async function readMentionedImages(
  open: OpenSkeinCalls,
  to: SessionParams,
  text: string,
): Promise<Image[]> {
  const { terminal } = open;
  if (typedPaths(text, terminal.cwd, terminal.home).next().done === true) return [];
  const { configuredFileBoundary } = await import("../../app/files.ts");
  const files = configuredFileBoundary(open.loaded, processFolder(terminal));
  const session = await open.calls.call("sessions.get", to).catch((error: unknown) => {
    if (errorCodeOf(error) === "not_found") return null;
    throw error;
  });
  const owner = {
    userId: to.userId ?? null,
    agentId: session?.agentId ?? to.agentId ?? open.asker.agentId,
    sessionId: session?.sessionId ?? null,
  };
  const cwd = session?.cwd ?? files.defaultCwd(owner);
  const { home } = terminal;
  const asked = { origin: "cli", seesImages: true, cwd, owner, files, home, maxTotalBytes } as const;
  const { content, notes } = await promptImages(text, asked);
  for (const note of notes) printNotice(open, note);
  if (typeof content === "string") return [];
  return content.flatMap((block) =>
    block.type === "image" ? [{ data: block.data, mimeType: block.mimeType }] : [],
  );
}

async function readOne(file: string): Promise<Image> {
  const bytes = await readFile(file).catch((error: unknown) => {
    const advice = "Check the path after --image; relative paths are resolved against the working directory";
    const problem = (error as Error).message;
    throw new SkeinError("unreadable_file", { file, problem, advice }, { cause: error });
  });
  const header = readImageHeader(bytes);
  if (header !== null) return { data: bytes.toString("base64"), mimeType: header.mimeType };
  const problem = `${file} is not in an image format that models accept`;
  throw new SkeinError("invalid_arguments", { problem, advice: "Use a PNG, JPEG, GIF or WebP image" });
}
