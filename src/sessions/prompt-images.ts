import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { open, realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, relative, sep } from "node:path";
import { readImageHeader } from "../core/image-header.ts";
import type { Content, ImageBlock } from "../core/messages.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { FileBoundary, FileOwner } from "../file-access/file-boundary.ts";
import { typedPaths } from "./prompt-paths.ts";

/** Where a prompt comes from. Only what somebody types before us may name files. */
export type PromptOrigin = "cli" | "console" | "channel" | "webhook" | "inter_session" | "api";

export interface PromptImagesOptions {
  readonly origin: PromptOrigin;
  /** Whether the model sees images. */
  readonly seesImages: boolean;
  /** The session's folder, absolute. */
  readonly cwd: string;
  readonly owner: FileOwner;
  readonly files: Pick<FileBoundary, "checkPath" | "attachments">;
  /** What `~/` stands for. */
  readonly home?: string;
  /** Of one file. */
  readonly maxBytes?: number;
  /** Of all files together. */
  readonly maxTotalBytes?: number;
}

export interface PromptImages {
  /** The very same text where nothing was taken, else the text and then the images. */
  readonly content: Content;
  /** For the one who typed it: a sentence for each file that was not taken. */
  readonly notes: readonly string[];
}

const mebibyte = 1024 * 1024;
const usualMaxBytes = 20 * mebibyte;
const mostBytes = 50 * mebibyte;
const mostImages = 20;
const mostPaths = 1000;
const mostNotes = 20;

const words: Readonly<Record<ImageFileProblem, string>> = {
  absent: "there is no such file",
  outside: "it does not lie in the session's folder",
  "no file": "it is no regular file",
  "too large": "it is too large",
  "too many": "there are too many",
  "no image": "its content is none of PNG, JPEG, GIF or WebP",
  unreadable: "it cannot be read",
};

/** The content of a prompt, with the images whose paths are typed in it. */
export async function promptImages(text: string, options: PromptImagesOptions): Promise<PromptImages> {
  const { origin, seesImages, cwd, owner, files, home = homedir(), maxBytes = usualMaxBytes } = options;
  const { maxTotalBytes = mostBytes } = options;
  if (!seesImages || (origin !== "cli" && origin !== "console")) return { content: text, notes: [] };
  const images: ImageBlock[] = [];
  const notes: string[] = [];
  const taken = new Set<string>();
  const leave = (typed: string, why: string) => notes.push(`${named(typed)} was not taken: ${why}.`);
  const root = await realpath(cwd).catch(() => null);
  const attachments = files.attachments(owner);
  const isAllowed = (path: string) => "path" in files.checkPath(owner, path, "read");
  let [looked, total] = [0, 0];
  for (const { typed, meant } of typedPaths(text, root ?? cwd, home)) {
    if (looked++ === mostPaths) {
      notes.push(`Only the first ${mostPaths} names of images were looked at.`);
      break;
    }
    // What does not fit any more is not read either.
    const isFull = images.length === mostImages || total > maxTotalBytes;
    const found: ImageFile =
      root === null
        ? { problem: "outside" }
        : isFull
          ? { problem: "too many" }
          : await firstOf(await candidatesFor(meant, root, attachments), isAllowed, maxBytes);
    if ("problem" in found) leave(typed, words[found.problem]);
    else if (!taken.has(found.path)) {
      taken.add(found.path);
      total += found.bytes;
      if (total > maxTotalBytes) leave(typed, words["too many"]);
      else images.push(found.image);
    }
  }
  return { content: images.length === 0 ? text : [{ type: "text", text }, ...images], notes: few(notes) };
}

interface Candidate {
  readonly path: string;
  /** The folder that the file must be in. */
  readonly folder: string;
}

/** `attachments/<name>` also names a file of the session's own attachments. */
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

/** The first candidate that is there; else what is wrong with the likeliest. */
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

function few(notes: readonly string[]): readonly string[] {
  const more = notes.length - mostNotes;
  return more <= 0 ? notes : [...notes.slice(0, mostNotes), `${more} more were not taken.`];
}

/** An image from a file, or why it was not taken. */
export type ImageFile =
  | { readonly image: ImageBlock; readonly path: string; readonly bytes: number }
  | { readonly problem: ImageFileProblem };
export type ImageFileProblem =
  | "absent"
  | "outside"
  | "no file"
  | "too large"
  | "too many"
  | "no image"
  | "unreadable";

/** A link is not followed at the last moment, and a pipe without a writer does not keep us. */
const readOnly = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Reads an image that really lies inside a folder, wherever its path leads over, if its real path is allowed. `root` is a
 * real path.
 */
export async function readImageFile(
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
  // A folder on the way may have become a link since: what was opened must still be what lies there.
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
