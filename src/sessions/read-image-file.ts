import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { open, realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";
import { readImageHeader } from "../core/image-header.ts";
import type { ImageBlock } from "../core/messages.ts";

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
