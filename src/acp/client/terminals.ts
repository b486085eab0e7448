import { realpathSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";
import type {
  CreateTerminalRequest,
  EnvVariable,
  TerminalExitStatus,
  TerminalOutputResponse,
} from "@agentclientprotocol/sdk/unstable";
import { describeMissingCommand, findCommand } from "../../agents/process/find-command.ts";
import type { ChildProcess, Environment } from "../../agents/process/start-process.ts";
import { childEnv, startProcess } from "../../agents/process/start-process.ts";
import type { FileBoundary } from "../../file-access/file-boundary.ts";
import type { ClientFilesOptions } from "./client-files.ts";

export type TerminalRequest = Omit<CreateTerminalRequest, "sessionId">;

interface TerminalRef {
  readonly terminalId: string;
}

interface Terminal {
  readonly child: ChildProcess;
  readonly output: OutputBuffer;
  readonly exit: Promise<TerminalExitStatus>;
  exitStatus: TerminalExitStatus | null;
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

const maxTerminals = 32;
const maxOutputBytes = 1024 * 1024;

/**
 * The terminals in an agent's session. Each command receives Skein's PATH, HOME and LANG, the variables configured for
 * the agent, and those in its own request. The folder in which a command starts is restricted, but what the command
 * does is not. A rejected request throws an error whose message is a full sentence. Construct this before the agent
 * starts: the folder is resolved only once, so the agent cannot replace it later.
 */
export class Terminals {
  readonly #cwd: string;
  readonly #isAllowed: (folder: string) => boolean;
  readonly #root: string;
  readonly #env: Environment;
  readonly #agentEnv: Readonly<Record<string, string>>;
  readonly #open = new Map<string, Terminal>();
  readonly #starting = new Set<Promise<unknown>>();
  #count = 0;
  #isClosed = false;

  constructor(
    {
      cwd,
      owner,
      files,
    }: Pick<ClientFilesOptions, "cwd" | "owner"> & {
      readonly files: Pick<FileBoundary, "checkPath">;
    },
    env: Environment,
    agentEnv: Readonly<Record<string, string>> = {},
  ) {
    this.#cwd = cwd;
    this.#isAllowed = (path) => "path" in files.checkPath(owner, path, "read");
    this.#root = realpathSync(cwd);
    this.#env = env;
    this.#agentEnv = agentEnv;
  }

  async create(request: TerminalRequest): Promise<TerminalRef> {
    if (this.#isClosed) throw new Error("the session has ended");
    if (this.#open.size + this.#starting.size >= maxTerminals)
      throw new Error(`there are already ${maxTerminals} terminals; release one first`);
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

  output({ terminalId }: TerminalRef): TerminalOutputResponse {
    const { output, exitStatus } = this.#get(terminalId);
    return { ...output.read(), ...(exitStatus !== null && { exitStatus }) };
  }

  waitForExit({ terminalId }: TerminalRef): Promise<TerminalExitStatus> {
    return this.#get(terminalId).exit;
  }

  /** Stops the command. Its output can still be read. */
  async kill({ terminalId }: TerminalRef): Promise<void> {
    const { child, exit } = this.#get(terminalId);
    await child.stop();
    await exit;
  }

  async release({ terminalId }: TerminalRef): Promise<void> {
    const { child } = this.#get(terminalId);
    this.#open.delete(terminalId);
    await child.stop();
  }

  get ids(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** Resolves when every requested terminal has started or failed. */
  async started(): Promise<void> {
    await Promise.allSettled(this.#starting);
  }

  /** Resolves when no terminal has any processes left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.started();
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
    const env = { ...this.#agentEnv, ...variablesOf(request.env ?? []) };
    const cwd = await this.#resolveFolder(request.cwd ?? this.#root);
    const { command, args = [], outputByteLimit } = request;
    const shell = await shellCommand({ command, args }, childEnv(this.#env, env), cwd);
    const child = await startProcess({ ...shell, env, cwd }, { env: this.#env });
    const limit = Math.min(maxOutputBytes, Math.max(0, Math.floor(outputByteLimit ?? maxOutputBytes)));
    return openTerminal(child, limit);
  }

  async #resolveFolder(cwd: string): Promise<string> {
    const real = isAbsolute(cwd) ? await realpath(cwd).catch(() => null) : null;
    if (real === null) throw new Error(`${cwd} is not the absolute path of a folder`);
    const way = relative(this.#root, real);
    if (isAbsolute(way) || way === ".." || way.startsWith(`..${sep}`))
      throw new Error(`${cwd} is outside this session's working directory ${this.#cwd}`);
    if (!this.#isAllowed(real))
      throw new Error(`${cwd} is inside Skein's own folder, which agents cannot use`);
    return real;
  }
}

function openTerminal(child: ChildProcess, limit: number): Terminal {
  const output = new OutputBuffer(limit);
  child.stdin.end();
  child.stdout.on("data", (chunk: Buffer) => output.add(chunk));
  const exit = child.ended.then(async ({ code, signal }) => {
    await child.closed();
    terminal.exitStatus = { exitCode: code, signal };
    return terminal.exitStatus;
  });
  const terminal: Terminal = { child, output, exit, exitStatus: null };
  return terminal;
}

function variablesOf(list: readonly EnvVariable[]): Record<string, string> {
  const invalid = list.find(({ name, value }) => !/^[^=\0]+$/.test(name) || value.includes("\0"));
  if (invalid !== undefined) throw new Error(`"${invalid.name}" is not a valid environment variable name`);
  return Object.fromEntries(list.map(({ name, value }) => [name, value]));
}

/**
 * Agents send both programs with arguments and shell lines. A command without arguments that is not a program is run as
 * a shell line. Its stderr is redirected to its stdout so that their order is preserved.
 */
async function shellCommand(
  { command, args }: Command,
  env: Readonly<Record<string, string>>,
  cwd: string,
): Promise<Command> {
  const found = await findCommand(command, env, cwd);
  if (found === null && (args.length > 0 || command.trim() === ""))
    throw new Error(describeMissingCommand(command));
  const program = found === null ? ["/bin/sh", "-c", command] : [found, ...args];
  return { command: "/bin/sh", args: ["-c", 'exec "$@" 2>&1', "sh", ...program] };
}

const maxChunks = 256;

/** The last `limit` bytes of a command's output, as whole UTF-8 characters. */
class OutputBuffer {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #isTruncated = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size <= 2 * this.#limit && this.#chunks.length <= maxChunks) return;
    // Keeps one byte more than the limit so that `read` can detect truncation.
    const end = Buffer.concat(this.#chunks).subarray(-(this.#limit + 1));
    this.#chunks = [Buffer.from(end)];
    this.#size = end.length;
  }

  /** Drops a final character whose bytes have not all arrived and replaces invalid bytes. */
  read(): { readonly output: string; readonly truncated: boolean } {
    const bytes = Buffer.concat(this.#chunks);
    const from = bytes.length > this.#limit ? startOfCharacter(bytes, bytes.length - this.#limit) : 0;
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from), { stream: true });
    // The replacement character for one invalid byte is three bytes long.
    const encoded = Buffer.from(text);
    const excess = Math.max(0, encoded.length - this.#limit);
    this.#isTruncated ||= from > 0 || excess > 0;
    const output = encoded.toString("utf8", startOfCharacter(encoded, excess));
    return { output, truncated: this.#isTruncated };
  }
}

function startOfCharacter(bytes: Buffer, from: number): number {
  const isContinuation = (at: number) => ((bytes[at] ?? 0) & 0xc0) === 0x80;
  let start = from;
  while (start > 0 && start < bytes.length && isContinuation(start) && start < from + 3) start++;
  return start;
}
