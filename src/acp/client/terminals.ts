import { realpathSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";
import type { ChildEnd, ChildProcess, Environment } from "../../agents/process/start-process.ts";
import { childEnv, startProcess } from "../../agents/process/start-process.ts";
import type { FileBoundary } from "../../file-access/file-boundary.ts";
import type { ClientFilesOptions } from "./files.ts";
import { OutputEnd } from "./terminals/output-end.ts";
import { terminalCommand } from "./terminals/terminal-command.ts";

export interface TerminalRequest {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | undefined;
  readonly cwd?: string | null | undefined;
  readonly outputByteLimit?: number | null | undefined;
}

/** One of the two is `null`. */
export interface TerminalExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface TerminalOutput {
  readonly output: string;
  readonly truncated: boolean;
  readonly exitStatus?: TerminalExit;
}

interface Terminal {
  readonly child: ChildProcess;
  readonly output: OutputEnd;
  readonly exit: Promise<TerminalExit>;
  exitStatus: TerminalExit | null;
}

const mostTerminals = 32;
const mostOutput = 1024 * 1024;

/**
 * The terminals of an agent's session: commands under a warden of their own, with PATH, HOME and LANG of ours, what is
 * configured for the agent, and what it asks for. Their folder is confined, what they do there is not. What is refused is
 * thrown as a sentence. To be made before the agent is started: from then on it is this folder.
 */
export class Terminals {
  readonly #cwd: string;
  readonly #isAllowed: (folder: string) => boolean;
  readonly #root: string;
  readonly #own: Environment;
  readonly #given: Readonly<Record<string, string>>;
  readonly #open = new Map<string, Terminal>();
  readonly #starting = new Set<Promise<unknown>>();
  #count = 0;
  #isClosed = false;

  constructor(
    {
      cwd,
      owner,
      files,
    }: Omit<ClientFilesOptions, "files"> & { readonly files: Pick<FileBoundary, "checkPath"> },
    own: Environment,
    given: Readonly<Record<string, string>> = {},
  ) {
    this.#cwd = cwd;
    this.#isAllowed = (path) => "path" in files.checkPath(owner, path, "read");
    this.#root = realpathSync(cwd);
    this.#own = own;
    this.#given = given;
  }

  async create(request: TerminalRequest): Promise<{ terminalId: string }> {
    if (this.#isClosed) throw new Error("the session has ended");
    if (this.#open.size + this.#starting.size >= mostTerminals)
      throw new Error(`there are ${mostTerminals} terminals already: release one first`);
    const starting = this.#start(request);
    this.#starting.add(starting);
    try {
      const terminal = await starting;
      const terminalId = `terminal-${++this.#count}`;
      this.#open.set(terminalId, terminal);
      return { terminalId };
    } finally {
      this.#starting.delete(starting);
    }
  }

  output({ terminalId }: { readonly terminalId: string }): TerminalOutput {
    const { output, exitStatus } = this.#get(terminalId);
    return { ...output.read(), ...(exitStatus !== null && { exitStatus }) };
  }

  waitForExit({ terminalId }: { readonly terminalId: string }): Promise<TerminalExit> {
    return this.#get(terminalId).exit;
  }

  /** Its output can still be read. */
  async kill({ terminalId }: { readonly terminalId: string }): Promise<void> {
    const { child, exit } = this.#get(terminalId);
    await child.stop();
    await exit;
  }

  async release({ terminalId }: { readonly terminalId: string }): Promise<void> {
    const { child } = this.#get(terminalId);
    this.#open.delete(terminalId);
    await child.stop();
  }

  get ids(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** Resolves when all that are asked for by now are there, or failed. */
  async started(): Promise<void> {
    await Promise.allSettled(this.#starting);
  }

  /** Resolves when no process of any terminal is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#starting);
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map(({ child }) => child.stop()));
  }

  #get(terminalId: string): Terminal {
    const terminal = this.#open.get(terminalId);
    if (terminal === undefined) throw new Error(`there is no terminal ${terminalId}`);
    return terminal;
  }

  async #start(request: TerminalRequest): Promise<Terminal> {
    if (process.platform === "win32") throw new Error("there are no terminals on Windows");
    const env = { ...this.#given, ...variablesOf(request.env ?? []) };
    const cwd = await this.#folderOf(request.cwd ?? this.#root);
    const { command, args = [] } = request;
    const program = await terminalCommand({ command, args }, childEnv(this.#own, env), cwd);
    const child = await startProcess({ ...program, env, cwd }, { env: this.#own });
    return terminalOf(child, limitOf(request.outputByteLimit));
  }

  async #folderOf(cwd: string): Promise<string> {
    const real = isAbsolute(cwd) ? await realpath(cwd).catch(() => null) : null;
    if (real === null) throw new Error(`${cwd} is not the absolute path of a folder`);
    const way = relative(this.#root, real);
    if (isAbsolute(way) || way === ".." || way.startsWith(`..${sep}`))
      throw new Error(`${cwd} lies outside the working directory ${this.#cwd} of this session`);
    if (!this.#isAllowed(real))
      throw new Error(`${cwd} lies in the folder of Skein itself, which is not for agents`);
    return real;
  }
}

function terminalOf(child: ChildProcess, limit: number): Terminal {
  const output = new OutputEnd(limit);
  child.stdin.end();
  child.stdout.on("data", (chunk: Buffer) => output.take(chunk));
  const exit = child.ended.then(async (end) => {
    await child.closed();
    terminal.exitStatus = exitOf(end);
    return terminal.exitStatus;
  });
  const terminal: Terminal = { child, output, exit, exitStatus: null };
  return terminal;
}

function exitOf({ code, signal }: ChildEnd): TerminalExit {
  return { exitCode: code, signal };
}

function limitOf(asked: number | null | undefined): number {
  return Math.min(mostOutput, Math.max(0, Math.floor(asked ?? mostOutput)));
}

function variablesOf(list: NonNullable<TerminalRequest["env"]>): Record<string, string> {
  const wrong = list.find(({ name, value }) => !/^[^=\0]+$/.test(name) || value.includes("\0"));
  if (wrong !== undefined) throw new Error(`"${wrong.name}" cannot be a variable of an environment`);
  return Object.fromEntries(list.map(({ name, value }) => [name, value]));
}
