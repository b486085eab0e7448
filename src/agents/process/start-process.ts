import type { ChildProcessByStdio } from "node:child_process";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { within } from "../../core/concurrency.ts";
import { endOfText, escapeToLine, thrownText } from "../../core/text.ts";
import { describeMissingCommand, findCommand } from "./find-command.ts";
import type { Warden } from "./warden.ts";
import { markName, openWarden } from "./warden.ts";

/** A child process and everything it starts. */
export interface ChildProcess {
  readonly pid: number;
  /** Set in the environment of the process and everything it starts. */
  readonly mark: string;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when the process has exited and its process group is empty. */
  readonly ended: Promise<ChildEnd>;
  /**
   * Resolves when the process has exited and its output has been read. Waits only briefly for processes that left the
   * group and hold the pipes open.
   */
  closed(): Promise<void>;
  /** Returns how the process exited and the end of its stderr, on one line. Empty if there is nothing to report. */
  report(): string;
  /**
   * Sends SIGTERM, then SIGKILL, to the process and everything it started. Resolves when all of them have exited. Can
   * be called repeatedly.
   */
  stop(): Promise<void>;
}

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ProcessSpec {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to PATH, HOME and LANG. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface ProcessOptions {
  /** The environment from which PATH, HOME and LANG are inherited. */
  readonly env: Environment;
}

/** Why a process could not start and whether its folder or its command is the cause. */
export class CannotStart extends Error {
  readonly place: "cwd" | "command";

  constructor(place: CannotStart["place"], problem: string) {
    super(problem);
    this.place = place;
  }
}

/** Finds and starts a command. Throws only `CannotStart`. A failed start leaves no process behind. */
export async function startCommand(spec: ProcessSpec, options: ProcessOptions): Promise<ChildProcess> {
  const { command, cwd } = spec;
  const folder = await stat(cwd).catch(() => null);
  if (folder?.isDirectory() !== true)
    throw new CannotStart("cwd", `its working directory "${cwd}" does not exist`);
  const found = await findCommand(command, childEnv(options.env, spec.env), cwd);
  if (found === null) throw new CannotStart("command", describeMissingCommand(command));
  try {
    return await startProcess({ ...spec, command: found }, options);
  } catch (error) {
    throw new CannotStart("command", `the command "${command}" could not be started: ${thrownText(error)}`);
  }
}

type Spawned = ChildProcessByStdio<Writable, Readable, Readable>;

const closeMs = 1000;
const isWindows = process.platform === "win32";

/**
 * Starts a process as the leader of its own group, after starting its warden. On Linux, the warden also finds processes
 * that left the group by looking for the mark in their environment. It cannot find a process that left the group and
 * removed the mark. On other systems, processes that left the group are never found. On Windows, there is no warden,
 * and only the process itself is terminated.
 */
export async function startProcess(spec: ProcessSpec, { env }: ProcessOptions): Promise<ChildProcess> {
  const mark = randomUUID();
  const warden = isWindows ? null : await openWarden(mark, env);
  try {
    const child = spawn(spec.command, [...spec.args], {
      env: { ...childEnv(env, spec.env), [markName]: mark },
      cwd: spec.cwd,
      stdio: ["pipe", "pipe", "pipe"],
      detached: !isWindows,
      windowsHide: true,
    });
    // A child that failed to spawn might have no pipes, so its error is thrown before they are used.
    if (child.pid === undefined) await once(child, "spawn");
    else warden?.watch(child.pid);
    const started = childOf(child, mark, warden, () => openWarden(mark, env));
    await once(child, "spawn");
    return started;
  } catch (error) {
    await warden?.end("now");
    throw error;
  }
}

function childOf(
  child: Spawned,
  mark: string,
  warden: Warden | null,
  replaceWarden: () => Promise<Warden>,
): ChildProcess {
  const stderr = new StderrTail();
  const { pid = 0, stdin, stdout } = child;
  let end: ChildEnd | null = null;
  // A broken pipe means that the process has exited. Data written to it is lost either way.
  for (const pipe of [child, stdin, stdout, child.stderr]) pipe.on("error", () => undefined);
  child.stderr.on("data", (chunk: Buffer) => stderr.add(chunk));
  const pipes = Promise.withResolvers<void>();
  child.once("close", () => pipes.resolve());
  const { promise: ended, resolve } = Promise.withResolvers<ChildEnd>();
  child.once("exit", async (code, signal) => {
    end = { code, signal };
    if (warden !== null && !(await warden.end("now"))) await sweep(pid, replaceWarden);
    resolve(end);
  });
  // Without its warden, the process could outlive ours.
  warden?.onLost(() => killGroup(pid));
  return {
    pid,
    mark,
    stdin,
    stdout,
    ended,
    async closed() {
      await ended;
      await within(closeMs, pipes.promise);
    },
    report: () => describeEnd(end, stderr.line),
    async stop() {
      stdin.end();
      if (warden === null) child.kill();
      await warden?.end("gently");
      if (end === null) killGroup(pid); // The warden was killed because it hung.
      await ended;
    },
  };
}

/**
 * Terminates every process with the given mark. Works only on Linux, because other systems offer no way to find them.
 */
export async function endMarked(mark: string, { env }: ProcessOptions): Promise<void> {
  if (process.platform !== "linux" || !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(mark)) return;
  await (await openWarden(mark, env)).end("now");
}

/** Starts a second warden if the first was killed before it finished. */
async function sweep(pid: number, replaceWarden: () => Promise<Warden>): Promise<void> {
  killGroup(pid);
  const warden = await replaceWarden().catch(() => null); // No more processes can be started.
  warden?.watch(pid);
  await warden?.end("now");
}

function killGroup(pid: number): void {
  try {
    if (pid > 0) process.kill(isWindows ? pid : -pid, "SIGKILL");
  } catch {
    return; // The process no longer exists, or another user owns it.
  }
}

/**
 * Returns the given variables plus our PATH, HOME and LANG. Nothing else from our environment reaches a child process.
 */
export function childEnv(
  own: Environment,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const inherited = ["PATH", "HOME", "LANG"].flatMap((name) => {
    const value = own[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(inherited), ...given };
}

/** Keeps the end of a process's stderr. */
class StderrTail {
  readonly #decoder = new StringDecoder("utf8");
  #text = "";

  add(chunk: Buffer): void {
    this.#text = endOfText(this.#text + this.#decoder.write(chunk), 8192);
  }

  get line(): string {
    return escapeToLine(endOfText(this.#text.trim(), 600));
  }
}

function describeEnd(end: ChildEnd | null, stderr: string): string {
  const parts: string[] = [];
  if (end !== null)
    parts.push(end.signal === null ? `it exited with code ${end.code}` : `it was killed by ${end.signal}`);
  if (stderr !== "") parts.push(`its stderr ends with: ${stderr}`);
  return parts.join("; ");
}

/** Whether a process has exited, even if it has not been reaped yet. `false` if the system does not expose this. */
export function hasExited(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // There is no such process, or it exited between the two calls. ENOENT can also mean that the system has no /proc.
    return code === "ESRCH" || (code === "ENOENT" && existsSync("/proc/self/stat"));
  }
}
