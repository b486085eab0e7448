import type { ChildProcessByStdio } from "node:child_process";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { within } from "../../core/within.ts";
import { childEnv, markName } from "./child-env.ts";
import type { ChildEnd, ChildProcess, ProcessOptions, ProcessSpec } from "./contract.ts";
import { accountOf, StderrEnd } from "./stderr-end.ts";
import type { Warden } from "./warden.ts";
import { openWarden } from "./warden.ts";

type Spawned = ChildProcessByStdio<Writable, Readable, Readable>;

const lastWordsMs = 1000;
const isWindows = process.platform === "win32";

/**
 * A process that leads a group of its own, under a warden that is there before it. Its environment carries a mark, by which
 * the warden finds, on Linux, what has left the group. Not found is who has left the group and shed the mark, and outside
 * Linux who has left the group. On Windows there is no warden, and what the process has started is its own affair.
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
    // Without a process it may have no pipes either.
    if (child.pid === undefined)
      await once(child, "spawn"); // its error
    else warden?.watch(child.pid);
    const started = childOf(child, mark, warden, () => openWarden(mark, env));
    await once(child, "spawn"); // or its error
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
  replace: () => Promise<Warden>,
): ChildProcess {
  const stderr = new StderrEnd();
  const pid = child.pid ?? 0;
  let end: ChildEnd | null = null;
  // A pipe that breaks is told by the end of the process; what is written to it then is lost either way.
  for (const pipe of [child, child.stdin, child.stdout, child.stderr]) pipe.on("error", () => undefined);
  child.stderr.on("data", (chunk: Buffer) => stderr.take(chunk));
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  child.once("close", () => close());
  const { promise: ended, resolve } = Promise.withResolvers<ChildEnd>();
  child.once("exit", async (code, signal) => {
    end = { code, signal };
    if (warden !== null && !(await warden.end("now"))) await sweep(pid, replace);
    resolve(end);
  });
  // Without its warden it could outlive us: it goes too.
  warden?.onLost(() => killGroup(pid));
  const stop = async () => {
    child.stdin.end();
    if (warden === null) child.kill();
    await warden?.end("gently");
    if (end === null) killGroup(pid); // a warden that hangs was not waited for
    await ended;
  };
  const lastWords = async () => {
    await ended;
    await within(lastWordsMs, closed);
  };
  const { stdin, stdout } = child;
  return { pid, mark, stdin, stdout, ended, lastWords, account: () => accountOf(end, stderr), stop };
}

/** Ends at once what carries a mark, whoever started it; found on Linux alone. What is none of our marks is nobody's. */
export async function endMarked(mark: string, { env }: ProcessOptions): Promise<void> {
  if (process.platform !== "linux" || !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(mark)) return;
  await (await openWarden(mark, env)).end("now");
}

/** By another warden, where the first was ended before it was done. */
async function sweep(pid: number, replace: () => Promise<Warden>): Promise<void> {
  killGroup(pid);
  const other = await replace().catch(() => null); // no process can be started any more
  other?.watch(pid);
  await other?.end("now");
}

function killGroup(pid: number): void {
  try {
    if (pid > 0) process.kill(isWindows ? pid : -pid, "SIGKILL");
  } catch {
    return; // gone, or not ours to end
  }
}
