import { readFileSync } from "node:fs";
import type { ProcessSignals } from "../output/terminal.ts";
import { onStopRequest } from "../output/terminal.ts";

/** Watches the signals sent to this process. If npm started the process, also watches for npm's exit. */
export function processSignals(): ProcessSignals {
  // Looked up immediately, while the parents still exist.
  const chain = findNpmParents(process.env, process.ppid);
  const hasTerminal = process.stdin.isTTY === true || process.stdout.isTTY === true;
  return {
    onStop: (stop) => {
      const ends = [onStopRequest(stop), ...stopWithParents(chain, stop)];
      // If there is a terminal, SIGHUP means that it was closed. Otherwise, SIGHUP requests a reload, as is usual for
      // daemons.
      if (hasTerminal) ends.push(onSignal("SIGHUP", () => stop("SIGHUP")));
      return () => {
        for (const end of ends) end();
      };
    },
    onReload: (reload) => (hasTerminal ? () => undefined : onSignal("SIGHUP", reload)),
    exit: (code) => process.exit(code),
  };
}

function stopWithParents(chain: ParentChain | null, stop: (why: string) => void): (() => void)[] {
  return chain === null
    ? []
    : [watchParents(chain, () => stop("npm or the shell that started it has exited"))];
}

function onSignal(signal: NodeJS.Signals, listener: () => void): () => void {
  process.on(signal, listener);
  return () => void process.off(signal, listener);
}

/**
 * npm forwards a signal that the terminal has already sent to the whole process group. Signals within this time of each
 * other count as one request.
 */
const sameRequestMs = 500;

/** Resolves `requested` with the reason to stop. A second request calls `exitNow`. */
export function awaitStop(
  signals: Pick<ProcessSignals, "onStop">,
  exitNow: () => void,
  now: () => number = () => performance.now(),
): { readonly requested: Promise<string>; end(): void } {
  const requested = Promise.withResolvers<string>();
  let first: number | null = null;
  const end = signals.onStop((why) => {
    if (first === null) {
      first = now();
      requested.resolve(why);
    } else if (now() - first >= sameRequestMs) exitNow();
  });
  return { requested: requested.promise, end };
}

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  /** The kernel's start time, which differs if the PID is reused. */
  readonly started: string;
  readonly command: string;
}

/** Returns `null` if there is no such process or the system does not provide its details. */
export type LookUp = (pid: number) => ProcessInfo | null;

/** The processes from this process's parent up to npm. */
export type ParentChain = readonly ProcessInfo[];

const maxParents = 8;
const npmNames = /(?:^|[/\\\0\s])(?:npm|npx|pnpm|yarn)(?:-cli)?(?:\.[cm]?js)?(?=[\0\s]|$)/;

/**
 * Returns the parents up to npm if npm started this process. If npm is killed, it does not send a signal to its script,
 * so the gateway would keep running.
 */
export function findNpmParents(
  env: Readonly<Record<string, string | undefined>>,
  parent: number,
  lookUp: LookUp = readProcess,
): ParentChain | null {
  if ((env.npm_lifecycle_event ?? "") === "") return null;
  const line: ProcessInfo[] = [];
  for (let pid = parent; pid > 0 && line.length < maxParents; pid = line.at(-1)?.parent ?? 0) {
    const seen = lookUp(pid);
    if (seen === null) break;
    line.push(seen);
    if (npmNames.test(seen.command)) return line;
  }
  // Without /proc, only the parent's PID is known.
  const isUnknown = line.length === 0 && parent > 1;
  return isUnknown ? [{ pid: parent, parent: 0, started: "", command: "" }] : null;
}

/** Whether one of the parents has exited or has a different parent now. */
export function isOrphaned(line: ParentChain, parent: number, lookUp: LookUp = readProcess): boolean {
  if (parent !== line[0]?.pid) return true;
  return line.some(({ pid, parent: before, started }) => {
    if (started === "") return false;
    const now = lookUp(pid);
    if (now === null || now.started !== started) return true;
    return now.parent !== before;
  });
}

/** Calls `gone` once if this process is orphaned. Returns a function that stops watching. */
export function watchParents(
  line: ParentChain,
  gone: () => void,
  { everyMs = 500, parent = () => process.ppid, lookUp = readProcess as LookUp } = {},
): () => void {
  const timer = setInterval(() => {
    if (!isOrphaned(line, parent(), lookUp)) return;
    clearInterval(timer);
    gone();
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/** Reads /proc, which exists only on Linux. */
export function readProcess(pid: number): ProcessInfo | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in the second field can contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent = "", started = ""] = [fields[0], fields[1], fields[19]];
    if (/^[ZX]$/.test(state)) return null;
    return { pid, parent: Number(parent), started, command: readFileSync(`/proc/${pid}/cmdline`, "utf8") };
  } catch {
    return null; // exited, or no /proc
  }
}
