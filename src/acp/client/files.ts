import { randomBytes } from "node:crypto";
import { constants, realpathSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { access, lstat, open, realpath, rename, rm } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { codeOf } from "../../core/errors.ts";
import { cutText } from "../../core/text.ts";
import type { FileBoundary, FileOwner, PathRefusal } from "../../file-access/file-boundary.ts";
import type { Folder } from "../../file-access/folders.ts";
import { openFolder, placeOf } from "../../file-access/folders.ts";
import { linesOf } from "./file-lines.ts";

export interface ClientFiles {
  readTextFile(request: {
    readonly path: string;
    /** 1 is the first. */
    readonly line?: number | null | undefined;
    readonly limit?: number | null | undefined;
  }): Promise<{ content: string }>;
  writeTextFile(request: { readonly path: string; readonly content: string }): Promise<Record<string, never>>;
}

const mostBytes = 10 * 1024 * 1024;
const leastChunk = 65_536;
const shownPath = 1000;
const tooLarge = `more than ${mostBytes} bytes`;

/** A link is not followed, and a pipe without a writer does not keep us. */
const carefully = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** The session whose files an agent asks for. */
export interface ClientFilesOptions {
  readonly cwd: string;
  readonly owner: FileOwner;
  readonly files: Pick<FileBoundary, "checkPath" | "attachments">;
}

/** How a session's prompt names its attachments. */
const attachmentPath = /^attachments\/(?=[^/])/;

/**
 * The files of a session's working directory, and as `attachments/<name>` its own attachments, for its agent. A refusal is
 * thrown as a sentence. Create it before the agent is started: from then on it is this folder, whatever is put in its
 * place. A file with a second name outside (a hard link) is read like any other; a write gives it a new file, and leaves
 * the other alone.
 */
export function clientFiles({ cwd, owner, files }: ClientFilesOptions): ClientFiles {
  const root = realpathSync(cwd);
  const check = (path: string, action: "read" | "write", asked: string) => {
    const checked = files.checkPath(owner, path, action);
    if ("path" in checked) return;
    const words = refusedWords[checked.refusal];
    // A path that cannot be resolved cannot be opened either, and the file system says why.
    if (words !== undefined) throw new Refusal(`${asked} ${words}`);
  };
  /** The folder that a path is looked up in, and the path in full. */
  const lookUp = async (path: string): Promise<{ readonly base: string; readonly whole: string }> => {
    const own = attachmentPath.test(path) ? files.attachments(owner) : null;
    if (own === null) return { base: root, whole: path };
    const base = await realpath(own);
    return { base, whole: join(base, "/").concat(path.replace(attachmentPath, "")) };
  };
  const within = async <T>(
    path: string,
    makes: boolean,
    use: (folder: Folder, name: string) => Promise<T>,
  ) => {
    const action = makes ? "write" : "read";
    try {
      const { base, whole } = await lookUp(path);
      const place = await placeOf(whole, base);
      if (place === null) throw new Refusal(refusedPath(path, cwd));
      check(join(base, ...place.way, ...place.missing, place.name), action, path);
      const folder = await openFolder(base, place, makes ? {} : null);
      try {
        // A folder on the way may have been moved since.
        check(join(await folder.realPath(), place.name), action, path);
        return await use(folder, place.name);
      } finally {
        await folder.close();
      }
    } catch (error) {
      const doing = makes ? "written" : "read";
      throw error instanceof Refusal ? error : new Refusal(problemText(error, path, doing), codeOf(error));
    }
  };
  return {
    readTextFile: ({ path, line, limit }) => {
      if (line !== undefined && line !== null && !(line >= 1))
        return refuse(`there is no line ${line}: 1 is the first`);
      return within(path, false, async (folder, name) => {
        const content = await readText(join(folder.path, name), path);
        return { content: linesOf(content, line ?? 1, limit ?? Number.POSITIVE_INFINITY) };
      });
    },
    writeTextFile: ({ path, content }) => {
      if (Buffer.byteLength(content) > mostBytes)
        return refuse(`${path} cannot be written: it would have ${tooLarge}`);
      if (!content.isWellFormed()) return refuse(`${path} cannot be written: the content is no valid text`);
      return within(path, true, async (folder, name) => {
        await writeText(folder, name, content, path);
        return {};
      });
    },
  };
}

const refusedWords: Partial<Readonly<Record<PathRefusal, string>>> = {
  in_root_folder: "lies in the folder of Skein itself, which is not for agents",
  configuration_file: "has the name of a configuration file, and agents write none",
  code_folder: "lies in node_modules or .git, where agents write nothing",
};

class Refusal extends Error {
  /** Why the file system said no; blank: we did. */
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
  const handle = await open(file, constants.O_RDONLY | carefully);
  try {
    if (!(await handle.stat()).isFile()) throw new Refusal(`${path} is no regular file`);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await bytesOf(handle, path));
  } catch (error) {
    throw codeOf(error) === "ERR_ENCODING_INVALID_ENCODED_DATA"
      ? new Refusal(`${path} is no text in UTF-8`)
      : error;
  } finally {
    await handle.close();
  }
}

/** Until its end, whatever its size was said to be. */
async function bytesOf(handle: FileHandle, path: string): Promise<Buffer> {
  const { size } = await handle.stat();
  const chunks: Buffer[] = [];
  let length = 0;
  for (let read = -1; read !== 0; length += read) {
    const chunk = Buffer.alloc(Math.min(mostBytes, Math.max(size - length, leastChunk)) + 1);
    read = (await handle.read(chunk, 0, chunk.length, length)).bytesRead;
    chunks.push(chunk.subarray(0, read));
    if (length + read > mostBytes) throw new Refusal(`${path} has ${tooLarge}`);
  }
  return Buffer.concat(chunks);
}

/** Beside it and then in its place, so that nobody sees half of it, and a link that is put there is not followed. */
async function writeText(folder: Folder, name: string, content: string, path: string): Promise<void> {
  const file = join(folder.path, name);
  const mode = await modeOf(file, path);
  const beside = join(folder.path, `.skein-${randomBytes(8).toString("hex")}.tmp`);
  const handle = await open(beside, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | carefully);
  try {
    try {
      await handle.writeFile(content);
      if (mode !== null) await handle.chmod(mode);
      await handle.datasync();
    } finally {
      await handle.close();
    }
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

/** Of the file that is there; `null`: there is none. */
async function modeOf(file: string, path: string): Promise<number | null> {
  const found = await lstat(file).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  });
  if (found === null) return null;
  if (found.isSymbolicLink()) throw new Refusal(`${path} is a link, and links are not followed`);
  if (!found.isFile()) throw new Refusal(`${path} is no regular file`);
  await access(file, constants.W_OK);
  return found.mode & 0o777;
}

function refusedPath(whole: string, cwd: string): string {
  const path = whole.length > shownPath ? `${cutText(whole, shownPath)}…` : whole;
  return isAbsolute(path) && !/\/$|\0/.test(path)
    ? `${path} lies outside the working directory ${cwd} of this session`
    : `${path} is not the absolute path of a file inside the working directory ${cwd} of this session`;
}

function problemText(error: unknown, path: string, doing: string): string {
  switch (codeOf(error)) {
    case "ENOENT":
      return `there is no file ${path}`;
    case "ELOOP":
    case "EMLINK":
      return `${path} is a link, and links are not followed`;
    case "ENXIO":
      return `${path} is no regular file`;
    case "ENOTDIR":
      return `${path} cannot be ${doing}: a folder on the way is a link or no folder`;
    case "EACCES":
    case "EPERM":
      return `${path} may not be ${doing}`;
    default:
      return `${path} cannot be ${doing} (${codeOf(error) || "for no known reason"})`;
  }
}
