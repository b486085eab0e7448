import { randomBytes } from "node:crypto";
import { constants, realpathSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { access, lstat, open, realpath, rename, rm } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import type { ReadTextFileRequest, WriteTextFileRequest } from "@agentclientprotocol/sdk/unstable";
import { codeOf } from "../../core/errors.ts";
import { cutText } from "../../core/text.ts";
import type { FileBoundary, FileOwner, PathRefusal } from "../../file-access/file-boundary.ts";
import type { Folder } from "../../file-access/folders.ts";
import { openFolder, placeOf } from "../../file-access/folders.ts";

export interface ClientFiles {
  readTextFile(request: Omit<ReadTextFileRequest, "sessionId">): Promise<{ content: string }>;
  writeTextFile(request: Omit<WriteTextFileRequest, "sessionId">): Promise<Record<string, never>>;
}

const maxBytes = 10 * 1024 * 1024;
const minChunkBytes = 65_536;
const maxShownPathChars = 1000;
const tooLarge = `more than ${maxBytes} bytes`;

/** Does not follow symbolic links, and does not block on a pipe without a writer. */
const safeFlags = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** The session whose files an agent can use. */
export interface ClientFilesOptions {
  readonly cwd: string;
  readonly owner: FileOwner;
  readonly files: Pick<FileBoundary, "checkPath" | "attachments">;
}

/** How a prompt refers to its session's attachments. */
const attachmentPath = /^attachments\/(?=[^/])/;

/**
 * Gives an agent access to the files in its session's working directory, and to its attachments as
 * `attachments/<name>`. A rejected request throws an error whose message is a full sentence. Call this before the agent
 * starts: the folder is resolved only once, so the agent cannot replace it later. A file with a second hard link
 * outside the folder can be read. Writing replaces the file and leaves the other link unchanged.
 */
export function clientFiles({ cwd, owner, files }: ClientFilesOptions): ClientFiles {
  const root = realpathSync(cwd);
  const check = (path: string, action: "read" | "write", requested: string) => {
    const checked = files.checkPath(owner, path, action);
    if ("path" in checked) return;
    const text = refusalTexts[checked.refusal];
    // A path that cannot be resolved cannot be opened either. The error from opening it contains the reason.
    if (text !== undefined) throw new Refusal(`${requested} ${text}`);
  };
  /** Returns the folder in which a path is looked up, together with the full path. */
  const resolve = async (path: string): Promise<{ readonly base: string; readonly full: string }> => {
    const attachments = attachmentPath.test(path) ? files.attachments(owner) : null;
    if (attachments === null) return { base: root, full: path };
    const base = await realpath(attachments);
    return { base, full: join(base, "/").concat(path.replace(attachmentPath, "")) };
  };
  const useFile = async <T>(
    path: string,
    action: "read" | "write",
    use: (folder: Folder, name: string) => Promise<T>,
  ) => {
    try {
      const { base, full } = await resolve(path);
      const place = await placeOf(full, base);
      if (place === null) throw new Refusal(outsideText(path, cwd));
      check(join(base, ...place.way, ...place.missing, place.name), action, path);
      const folder = await openFolder(base, place, action === "write" ? {} : null);
      try {
        // The folder might have been moved since the first check.
        check(join(await folder.realPath(), place.name), action, path);
        return await use(folder, place.name);
      } finally {
        await folder.close();
      }
    } catch (error) {
      if (error instanceof Refusal) throw error;
      throw new Refusal(fileErrorText(error, path, action === "write" ? "written" : "read"), codeOf(error));
    }
  };
  return {
    readTextFile: ({ path, line, limit }) => {
      const first = line ?? 1;
      if (!(first >= 1)) return refuse(`there is no line ${line}; the first line is 1`);
      return useFile(path, "read", async (folder, name) => {
        const content = await readText(join(folder.path, name), path);
        return { content: selectLines(content, first, limit ?? Number.POSITIVE_INFINITY) };
      });
    },
    writeTextFile: ({ path, content }) => {
      if (Buffer.byteLength(content) > maxBytes)
        return refuse(`${path} cannot be written because it would have ${tooLarge}`);
      if (!content.isWellFormed())
        return refuse(`${path} cannot be written because the content is not valid text`);
      return useFile(path, "write", async (folder, name) => {
        await writeText(folder, name, content, path);
        return {};
      });
    },
  };
}

const refusalTexts: Partial<Readonly<Record<PathRefusal, string>>> = {
  in_root_folder: "is inside Skein's own folder, which agents cannot use",
  configuration_file: "has the name of a configuration file, which agents cannot write",
  code_folder: "is in node_modules or .git, where agents cannot write",
};

class Refusal extends Error {
  /** The file system's error code. Empty if Skein rejected the request. */
  readonly code: string;

  constructor(sentence: string, code = "") {
    super(sentence);
    this.code = code;
  }
}

function refuse(sentence: string): Promise<never> {
  return Promise.reject(new Refusal(sentence));
}

async function readText(file: string, path: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | safeFlags);
  try {
    if (!(await handle.stat()).isFile()) throw new Refusal(`${path} is not a regular file`);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readAll(handle, path));
  } catch (error) {
    throw codeOf(error) === "ERR_ENCODING_INVALID_ENCODED_DATA"
      ? new Refusal(`${path} is not UTF-8 text`)
      : error;
  } finally {
    await handle.close();
  }
}

/** Reads to the end of the file, which might have grown since its size was read. */
async function readAll(handle: FileHandle, path: string): Promise<Buffer> {
  const { size } = await handle.stat();
  const chunks: Buffer[] = [];
  let length = 0;
  for (let read = -1; read !== 0; length += read) {
    const chunk = Buffer.alloc(Math.min(maxBytes, Math.max(size - length, minChunkBytes)) + 1);
    read = (await handle.read(chunk, 0, chunk.length, length)).bytesRead;
    chunks.push(chunk.subarray(0, read));
    if (length + read > maxBytes) throw new Refusal(`${path} has ${tooLarge}`);
  }
  return Buffer.concat(chunks);
}

/** Returns at most `limit` lines with their line endings, starting at line `first`, where 1 is the first line. */
export function selectLines(text: string, first: number, limit: number): string {
  const lineEnd = (from: number): number => {
    const end = text.indexOf("\n", from);
    return end === -1 ? text.length : end + 1;
  };
  let from = 0;
  for (let line = 1; line < first && from < text.length; line++) from = lineEnd(from);
  let to = from;
  for (let count = 0; count < limit && to < text.length; count++) to = lineEnd(to);
  return text.slice(from, to);
}

/**
 * Writes a temporary file and renames it. No reader sees a partial file, and a link created at the target path is not
 * followed.
 */
async function writeText(folder: Folder, name: string, content: string, path: string): Promise<void> {
  const file = join(folder.path, name);
  const mode = await modeOf(file, path);
  const temporary = join(folder.path, `.skein-${randomBytes(8).toString("hex")}.tmp`);
  const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | safeFlags);
  try {
    try {
      await handle.writeFile(content);
      if (mode !== null) await handle.chmod(mode);
      await handle.datasync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Returns the mode of an existing file, or `null` if there is none. */
async function modeOf(file: string, path: string): Promise<number | null> {
  const found = await lstat(file).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  });
  if (found === null) return null;
  if (found.isSymbolicLink()) throw new Refusal(`${path} is a link, and links are not followed`);
  if (!found.isFile()) throw new Refusal(`${path} is not a regular file`);
  await access(file, constants.W_OK);
  return found.mode & 0o777;
}

function outsideText(path: string, cwd: string): string {
  const shown = path.length > maxShownPathChars ? `${cutText(path, maxShownPathChars)}…` : path;
  return isAbsolute(shown) && !/\/$|\0/.test(shown)
    ? `${shown} is outside this session's working directory ${cwd}`
    : `${shown} is not the absolute path of a file inside this session's working directory ${cwd}`;
}

function fileErrorText(error: unknown, path: string, action: "read" | "written"): string {
  switch (codeOf(error)) {
    case "ENOENT":
      return `there is no file ${path}`;
    case "ELOOP":
    case "EMLINK":
      return `${path} is a link, and links are not followed`;
    case "ENXIO":
      return `${path} is not a regular file`;
    case "ENOTDIR":
      return `${path} cannot be ${action}, because one of its parents is a link or is not a folder`;
    case "EACCES":
    case "EPERM":
      return `permission to access ${path} was denied, so it cannot be ${action}`;
    default:
      return `${path} cannot be ${action} (${codeOf(error) || "for an unknown reason"})`;
  }
}
