import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { open, realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, relative, sep } from "node:path";
import { readImageHeader } from "../core/image-header.ts";
import type { Content, ImageBlock } from "../core/messages.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { FileBoundary, FileOwner } from "../file-access/file-boundary.ts";
import { typedPaths } from "./find-image-paths.ts";

/** Where a prompt came from. Only a prompt typed on this machine can name files. */
export type PromptOrigin = "cli" | "console" | "channel" | "webhook" | "inter_session" | "api";

export interface PromptImagesOptions {
  readonly origin: PromptOrigin;
  /** Whether the model accepts images. */
  readonly seesImages: boolean;
  /** The session's working directory, absolute. */
  readonly cwd: string;
  readonly owner: FileOwner;
  readonly files: Pick<FileBoundary, "checkPath" | "attachments">;
  /** The folder that replaces `~/`. */
  readonly home?: string;
  /** The limit per file. */
  readonly maxBytes?: number;
  /** The limit for all files combined. */
  readonly maxTotalBytes?: number;
}

export interface PromptImages {
  /** The original text if no image was found. Otherwise, the text followed by the images. */
  readonly content: Content;
  /** One sentence per file that was not attached. */
  readonly notes: readonly string[];
}

const mebibyte = 1024 * 1024;
const defaultMaxBytes = 20 * mebibyte;
const defaultMaxTotalBytes = 50 * mebibyte;
const maxImages = 20;
const maxPaths = 1000;
const maxNotes = 20;

const problemTexts: Readonly<Record<ImageFileProblem, string>> = {
  absent: "no such file exists",
  outside: "it is outside the session's folder",
  "no file": "it is not a regular file",
  "too large": "it is too large",
  "too many": "there are too many images",
  "no image": "its content is not a PNG, JPEG, GIF or WebP image",
  unreadable: "it cannot be read",
};

/** Returns a prompt's content, including the images at the paths it mentions. */
export async function promptImages(text: string, options: PromptImagesOptions): Promise<PromptImages> {
  const { origin, seesImages, cwd, owner, files, home = homedir(), maxBytes = defaultMaxBytes } = options;
  const { maxTotalBytes = defaultMaxTotalBytes } = options;
  if (!seesImages || (origin !== "cli" && origin !== "console")) return { content: text, notes: [] };
  const images: ImageBlock[] = [];
  const notes: string[] = [];
  const taken = new Set<string>();
  const leave = (typed: string, why: string) => notes.push(`${named(typed)} was not attached: ${why}.`);
  const root = await realpath(cwd).catch(() => null);
  const attachments = files.attachments(owner);
  const isAllowed = (path: string) => "path" in files.checkPath(owner, path, "read");
  let [looked, total] = [0, 0];
  for (const { typed, meant } of typedPaths(text, root ?? cwd, home)) {
    if (looked++ === maxPaths) {
      notes.push(`Only the first ${maxPaths} image names were checked.`);
      break;
    }
    // Files that no longer fit within the limit are not read.
    const isFull = images.length === maxImages || total > maxTotalBytes;
    const found: ImageFile =
      root === null
        ? { problem: "outside" }
        : isFull
          ? { problem: "too many" }
          : await firstOf(await candidatesFor(meant, root, attachments), isAllowed, maxBytes);
    if ("problem" in found) leave(typed, problemTexts[found.problem]);
    else if (!taken.has(found.path)) {
      taken.add(found.path);
      total += found.bytes;
      if (total > maxTotalBytes) leave(typed, problemTexts["too many"]);
      else images.push(found.image);
    }
  }
  const content: Content = images.length === 0 ? text : [{ type: "text", text }, ...images];
  return { content, notes: limitNotes(notes) };
}

interface Candidate {
  readonly path: string;
  /** The folder that must contain the file. */
  readonly folder: string;
}

/**
 * Returns the files that a path could refer to. `attachments/<name>` can also refer to one of the session's
 * attachments.
 */
async function candidatesFor(
  meant: readonly string[],
  root: string,
  attachments: string | null,
): Promise<readonly Candidate[]> {
  const candidates = meant.map((path): Candidate => ({ path, folder: root }));
  const prefix = join(root, "attachments", "/");
  const own = meant.filter((path) => path.startsWith(prefix));
  const folder =
    own.length === 0 || attachments === null ? null : await realpath(attachments).catch(() => null);
  if (folder === null) return candidates;
  return [...candidates, ...own.map((path) => ({ path: join(folder, path.slice(prefix.length)), folder }))];
}

/** Returns the first candidate that exists. If none does, returns the problem with the most likely one. */
async function firstOf(
  candidates: readonly Candidate[],
  isAllowed: (path: string) => boolean,
  maxBytes: number,
): Promise<ImageFile> {
  let first: ImageFile = { problem: "absent" };
  for (const [index, { path, folder }] of candidates.entries()) {
    const found = await readImageFile(path, folder, isAllowed, maxBytes);
    if ("image" in found) return found;
    if (index === 0 || ("problem" in first && first.problem === "absent")) first = found;
  }
  return first;
}

function named(typed: string): string {
  return escapeToLine(cutText(typed, 120));
}

function limitNotes(notes: readonly string[]): readonly string[] {
  const more = notes.length - maxNotes;
  return more <= 0 ? notes : [...notes.slice(0, maxNotes), `${more} more were not attached.`];
}

/** An image file, or the reason why it was not attached. */
type ImageFile =
  | { readonly image: ImageBlock; readonly path: string; readonly bytes: number }
  | { readonly problem: ImageFileProblem };
type ImageFileProblem =
  | "absent"
  | "outside"
  | "no file"
  | "too large"
  | "too many"
  | "no image"
  | "unreadable";

/** Does not follow links and does not block on named pipes. */
const readOnly = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Reads an image if its real path is allowed and inside `root`, which must itself be a real path. */
async function readImageFile(
  path: string,
  root: string,
  isAllowed: (path: string) => boolean,
  maxBytes: number,
): Promise<ImageFile> {
  const real = await realpath(path).catch(() => null);
  if (real === null) return { problem: isInside(path, root) ? "absent" : "outside" };
  if (!isInside(real, root) || !isAllowed(real)) return { problem: "outside" };
  const handle = await open(real, readOnly).catch(() => null);
  if (handle === null) return { problem: "unreadable" };
  try {
    return await readOpened(handle, real, maxBytes);
  } catch {
    return { problem: "unreadable" };
  } finally {
    await handle.close();
  }
}

async function readOpened(handle: FileHandle, path: string, maxBytes: number): Promise<ImageFile> {
  const opened = await handle.stat();
  if (!opened.isFile()) return { problem: "no file" };
  if (opened.size > maxBytes) return { problem: "too large" };
  // A parent folder might have become a link since the check, so the open file must still be the one at this path.
  const now = await stat(path);
  if ((await realpath(path)) !== path || now.ino !== opened.ino || now.dev !== opened.dev)
    return { problem: "outside" };
  const bytes = Buffer.alloc(opened.size);
  let length = 0;
  for (let read = -1; read !== 0 && length < bytes.length; length += read)
    read = (await handle.read(bytes, length, bytes.length - length, length)).bytesRead;
  const header = readImageHeader(bytes.subarray(0, length));
  if (header === null) return { problem: "no image" };
  const data = bytes.toString("base64", 0, length);
  return { image: { type: "image", data, mimeType: header.mimeType }, path, bytes: length };
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
