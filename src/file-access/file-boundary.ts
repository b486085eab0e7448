import { mkdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { SkeinError } from "../core/errors.ts";
import { expandFolder } from "../core/path-segment.ts";

/** The session that a file is read or written for. */
export interface FileOwner {
  readonly userId: string | null;
  readonly agentId: string;
  /** `null` if the session has no files yet. */
  readonly sessionId?: string | null;
}

/** A session with the working directory recorded in its log. */
interface WorkingSession extends FileOwner {
  readonly sessionId: string;
  readonly cwd: string;
  /**
   * The session that spawned this one, with its own effective working directory, or `null` if there is none or it no
   * longer exists.
   */
  readonly parent: ParentPlace | null;
}

export interface ParentPlace {
  readonly agentId: string;
  readonly cwd: string;
}

/**
 * Identifies who chose a working directory. An operator is library code, a CLI command that opens the root folder
 * directly, or a client with the `admin` scope. A parent is a session that spawns another one. Anything else, such as a
 * log from an unknown source, is `session`.
 */
type CwdChooser = "operator" | "session" | { readonly parent: ParentPlace };

/**
 * The folder in which the process was started. Users whose sessions do not work there by default have a workspace in
 * the root folder.
 */
export interface ProcessFolder {
  readonly path: string;
  readonly users: "all" | "unnamed" | "none";
}

/** The reason why a path is rejected. */
export type PathRefusal =
  /** The path is inside the root folder, but not in one of the session's own folders there. */
  | "in_root_folder"
  /** A file with this name is read as configuration. */
  | "configuration_file"
  /** Programs execute files from a folder with this name. */
  | "code_folder"
  /** The path is not inside a folder that the agent is allowed to work in, or it is not a folder. */
  | "outside"
  /** The file system cannot resolve the path. */
  | "unresolvable";

export interface FileBoundaryOptions {
  /** The folders with Skein's own data. Empty if everything is in memory. */
  readonly rootFolders: readonly string[];
  /** Returns the folder for a user's agent inside the root folder, or `null` if there is no root folder. */
  agentFolder(userId: string | null, agentId: string): string | null;
  /** Returns the folder for a session's attachments, or `null` if they are not stored. */
  attachments(userId: string | null, agentId: string, sessionId: string): string | null;
  /** Names of files that are read as configuration from the folder in which a process is started. */
  readonly configurationNames: readonly string[];
  /** Configuration files with other names. */
  readonly configurationFiles: readonly string[];
  /** Returns absolute paths in which `{userId}` and `{agentId}` are replaced with the session's values. */
  agent(agentId: string): { readonly cwd: string | null; readonly roots: readonly string[] };
  readonly process: ProcessFolder;
  /**
   * Throws if the root folder has been moved or removed since it was opened. Called before anything is created there.
   */
  checkRootInPlace(): void;
  /**
   * Called once for each session whose recorded working directory is no longer allowed, and for each agent whose `cwd`
   * is not allowed.
   */
  report(problem: string): void;
}

const codeFolders: ReadonlySet<string> = new Set(["node_modules", ".git"]);

type Resolved = { readonly path: string } | { readonly refusal: PathRefusal };

/**
 * Decides which folders and files Skein uses on a session's behalf. It compares real paths at the time of the call, so
 * it must be called again before each use.
 *
 * Nothing inside the root folder is read or written for a session, except its own attachments and the workspace for its
 * user and agent. The root folder is recognized under every name, including links, different case, other Unicode forms,
 * and other mount points. Files that are read as configuration are never written. The same applies to `node_modules`,
 * from which Node (including this process) loads packages, and to `.git`, from which Git runs hooks.
 */
export class FileBoundary {
  readonly #options: FileBoundaryOptions;
  readonly #configurationNames: ReadonlySet<string>;
  readonly #reported = new Set<string>();

  constructor(options: FileBoundaryOptions) {
    this.#options = options;
    this.#configurationNames = new Set(options.configurationNames.map(foldName));
  }

  /** Returns the real path of a file that can be read or written for a session. The file does not have to exist. */
  checkPath(owner: FileOwner, path: string, action: "read" | "write"): Resolved {
    const found = resolveReal(path);
    if (found === null) return { refusal: "unresolvable" };
    if (this.#isInRoot(found) && !this.#ownFolders(owner).some((own) => isInside(found.path, own)))
      return { refusal: "in_root_folder" };
    if (action === "write" && this.#isConfiguration(found)) return { refusal: "configuration_file" };
    if (action === "write" && isInCodeFolder(found)) return { refusal: "code_folder" };
    return { path: found.path };
  }

  /**
   * Returns the real path of the folder for a new session. `wanted: null` means the agent's default. A folder that a
   * parent chooses must exist.
   */
  resolveCwd(owner: FileOwner, wanted: string | null, chooser: CwdChooser): CwdChoice {
    if (wanted === null) return { cwd: this.defaultCwd(owner) };
    const found = isAbsolute(wanted) ? resolveReal(wanted) : null;
    if (found === null || (typeof chooser === "object" && !isFolder(found.path)))
      return { refusal: "outside" };
    if (this.#isForbiddenFolder(owner, found)) return { refusal: "in_root_folder" };
    const bounds = this.#boundsFor(owner, chooser);
    if (bounds === null || isInsideAny(found, bounds)) return { cwd: found.path };
    return { refusal: "outside" };
  }

  /**
   * Returns the default working directory of an agent's sessions. This is its `cwd` if set, otherwise the process's
   * folder if that folder is for this user and inside the agent's roots, otherwise the first root, and otherwise the
   * workspace. A folder inside the root folder is replaced with the workspace.
   */
  defaultCwd(owner: FileOwner): string {
    const { path, users } = this.#options.process;
    const { cwd, roots } = this.#agentFolders(owner);
    const workspace = this.workspace(owner);
    const isForUser = users === "all" || (users === "unnamed" && owner.userId === null);
    const isInRoots = roots.length === 0 || isInsideAny(resolveReal(path), roots);
    const wanted = cwd ?? (isForUser && isInRoots ? path : (roots[0] ?? workspace ?? path));
    const found = resolveReal(wanted);
    if (found === null || workspace === null || !this.#isForbiddenFolder(owner, found)) return wanted;
    if (cwd !== null)
      this.#reportOnce(
        `agent ${owner.agentId}`,
        `agents.${owner.agentId}.cwd (or defaults.cwd) ${JSON.stringify(cwd)} is inside the root folder, so sessions work in the workspace there for the user and agent`,
      );
    return workspace;
  }

  /** Returns the workspace for a user's agent inside the root folder, or `null` if there is no root folder. */
  workspace({ userId, agentId }: FileOwner): string | null {
    const folder = this.#options.agentFolder(userId, agentId);
    return folder === null ? null : join(folder, "workspace");
  }

  /**
   * Returns the folder for a session's attachments, whether or not there are any. Returns `null` if attachments are not
   * stored.
   */
  attachments({ userId, agentId, sessionId = null }: FileOwner): string | null {
    return sessionId === null ? null : this.#options.attachments(userId, agentId, sessionId);
  }

  /**
   * Returns the current working directory of an existing session. This is the recorded folder if it is allowed,
   * otherwise the agent's default. The recorded folder might not be allowed because the configuration has changed or
   * the log comes from elsewhere. Creates the folder if it is the workspace or is configured with placeholders.
   */
  cwdOf(session: WorkingSession): string {
    const { cwd, parent } = session;
    const chooser = parent === null ? "operator" : { parent };
    const allowed = this.#isAllowedNow(session, chooser) ? cwd : this.#replaceCwd(session);
    this.#createOwnFolder(session, allowed);
    return allowed;
  }

  /**
   * Creates the workspace, or a folder that is configured with placeholders. The operator creates all other folders.
   */
  #createOwnFolder(session: FileOwner, folder: string): void {
    const workspace = this.workspace(session);
    const path = resolveReal(folder)?.path ?? null;
    const isWorkspace = workspace !== null && path === realFolderPath(workspace);
    const { cwd, roots } = this.#options.agent(session.agentId);
    const isFromTemplate = [cwd ?? "", ...roots].some(
      (template) => template !== folder && expandFolder(template, session) === folder,
    );
    if (!isWorkspace && !isFromTemplate) return;
    if (isWorkspace) this.checkRootInPlace();
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      throw new SkeinError(
        "unavailable",
        {
          problem: `The working directory ${folder} could not be created: ${code === "" ? message : code}`,
          advice: `Check agents.${session.agentId}.cwd (or defaults.cwd), and who has permission to write there`,
        },
        { cause: error },
      );
    }
  }

  /** Throws if the root folder has been moved or removed. Call this before creating anything in it. */
  checkRootInPlace(): void {
    this.#options.checkRootInPlace();
  }

  /**
   * Whether a recorded folder is still allowed. A folder that has since been removed still belongs to the session.
   * Using it then fails with an error that says it is missing.
   */
  #isAllowedNow(session: WorkingSession, chooser: CwdChooser): boolean {
    const found = isAbsolute(session.cwd) ? resolveReal(session.cwd) : null;
    if (found === null || this.#isForbiddenFolder(session, found)) return false;
    const bounds = this.#boundsFor(session, chooser);
    if (bounds === null || isInsideAny(found, bounds)) return true;
    return found.path === resolveReal(this.defaultCwd(session))?.path;
  }

  #replaceCwd(session: WorkingSession): string {
    const { sessionId, agentId, cwd } = session;
    const instead = this.defaultCwd(session);
    this.#reportOnce(
      `session ${sessionId}`,
      `session ${sessionId} will work in ${instead}, because its recorded working directory ${JSON.stringify(cwd)} is not allowed for agent ${agentId}`,
    );
    return instead;
  }

  #reportOnce(about: string, problem: string): void {
    if (this.#reported.has(about)) return;
    this.#reported.add(about);
    this.#options.report(problem);
  }

  /** Returns the folders configured for the owner's agent, or for another agent with the same user. */
  #agentFolders(
    { userId, agentId }: FileOwner,
    of: string = agentId,
  ): { readonly cwd: string | null; readonly roots: readonly string[] } {
    const { cwd, roots } = this.#options.agent(of);
    const expand = (path: string) => expandFolder(path, { userId, agentId: of });
    return { cwd: cwd === null ? null : expand(cwd), roots: roots.map(expand) };
  }

  /** Returns the folders that a working directory must be inside, or `null` if any folder is allowed. */
  #boundsFor(owner: FileOwner, chooser: CwdChooser): readonly string[] | null {
    const { cwd, roots } = this.#agentFolders(owner);
    if (typeof chooser === "object") {
      const { parent } = chooser;
      return [parent.cwd, ...this.#agentFolders(owner, parent.agentId).roots, ...roots];
    }
    const own = cwd === null ? roots : [...roots, cwd];
    if (own.length > 0) return own;
    return chooser === "operator" ? null : [this.defaultCwd(owner)];
  }

  /** Inside the root folder, a session can work only in the workspace for its user and agent. */
  #isForbiddenFolder(owner: FileOwner, found: RealPath): boolean {
    if (!this.#isInRoot(found)) return false;
    const workspace = this.workspace(owner);
    return workspace === null || !isInside(found.path, realFolderPath(workspace));
  }

  #isInRoot(found: RealPath): boolean {
    return this.#options.rootFolders.some((root) => isUnder(found, root));
  }

  #ownFolders(owner: FileOwner): readonly string[] {
    return [this.workspace(owner), this.attachments(owner)].flatMap((folder) =>
      folder === null ? [] : realFolderPath(folder),
    );
  }

  /**
   * Whether the path is a configuration file, or a new file or folder with such a name. Folders are included because a
   * folder named `.env` would prevent the next start.
   */
  #isConfiguration({ path, missing }: RealPath): boolean {
    const names = [...missing, basename(path)].map(foldName);
    if (names.some((name) => this.#configurationNames.has(name))) return true;
    return this.#options.configurationFiles.some((file) => {
      const known = resolveReal(file);
      return known !== null && (foldPath(known.path) === foldPath(path) || isSameFile(known.path, path));
    });
  }
}

export type CwdChoice = { readonly cwd: string } | { readonly refusal: PathRefusal };

/** A path whose existing part contains no links. */
interface RealPath {
  /** The existing part, and the missing part after it. */
  readonly path: string;
  readonly existing: string;
  /** The trailing segments that do not exist. */
  readonly missing: readonly string[];
}

/**
 * Returns `null` if the path cannot be resolved. Unlike with `path.resolve`, `..` after a link means the parent of the
 * link's target.
 */
function resolveReal(path: string): RealPath | null {
  if (!isAbsolute(path) || path.includes("\0")) return null;
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      const existing = realpathSync.native(at);
      // The meaning of `..` after a missing folder is undefined.
      return missing.includes("..") ? null : { path: join(existing, ...missing), existing, missing };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(at) === at) return null;
      if (basename(at) !== ".") missing.unshift(basename(at));
    }
  }
}

function isInCodeFolder({ path }: RealPath): boolean {
  return path.split(sep).some((name) => codeFolders.has(foldName(name)));
}

/**
 * Whether a path is inside a folder, under any of the folder's names. When in doubt, the result is `true`, so use this
 * function only to reject paths.
 */
function isUnder(found: RealPath, folder: string): boolean {
  const known = resolveReal(folder) ?? { path: resolve(folder) };
  if (isInside(foldPath(found.path), foldPath(known.path))) return true;
  const wanted = identityOf(known.path);
  if (wanted === null) return false;
  for (let at = found.existing; ; at = dirname(at)) {
    if (identityOf(at) === wanted) return true;
    if (dirname(at) === at) return false;
  }
}

function isInsideAny(found: RealPath | null, folders: readonly string[]): boolean {
  return found !== null && folders.some((folder) => isInside(found.path, resolveReal(folder)?.path ?? ""));
}

/** Whether a path is a folder or inside it, comparing exact names. Both must be real paths. */
function isInside(path: string, folder: string): boolean {
  if (folder === "") return false;
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/**
 * Returns the real path of one of Skein's own folders. Resolves links only in the parents, because a folder that is
 * itself a link leads elsewhere.
 */
function realFolderPath(folder: string): string {
  return join(resolveReal(dirname(folder))?.path ?? dirname(folder), basename(folder));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isSameFile(one: string, other: string): boolean {
  const identity = identityOf(one);
  return identity !== null && identity === identityOf(other);
}

/** Returns the same string for every name of a given file or folder, or `null` if it does not exist. */
function identityOf(path: string): string | null {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null; // It no longer exists, or cannot be read.
  }
}

/**
 * Maps names that some file systems treat as equal to the same string. The names can differ in case, Unicode form,
 * invisible characters and, on Windows, trailing characters.
 */
function foldName(name: string): string {
  return foldPath(name)
    .replace(/:.*$/su, "")
    .replace(/[. ]+$/u, "");
}

function foldPath(path: string): string {
  const visible = path.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  return visible.toUpperCase().toLowerCase().normalize("NFKC");
}
