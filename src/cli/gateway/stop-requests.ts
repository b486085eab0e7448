import { readFileSync } from "node:fs";
import type { Outside } from "../output/terminal.ts";
import { onStopAsked } from "../output/terminal.ts";

/** The outside of this process: its signals, and whoever started it. */
export function processOutside(): Outside {
  // Looked for at once: who is gone later was there now.
  const line = startedByNpm(process.env, process.ppid);
  const hasTerminal = process.stdin.isTTY === true || process.stdout.isTTY === true;
  return {
    onStop: (stop) => {
      const ends = [onStopAsked(stop), ...stopsWithParents(line, stop)];
      // A terminal that is closed ends what runs in it. Without one, the signal has been free for reloads since ever.
      if (hasTerminal) ends.push(onSignal("SIGHUP", () => stop("SIGHUP")));
      return () => {
        for (const end of ends) end();
      };
    },
    onReload: (reload) => (hasTerminal ? () => undefined : onSignal("SIGHUP", reload)),
    exit: (code) => process.exit(code),
  };
}

function stopsWithParents(line: Line | null, stop: (why: string) => void): (() => void)[] {
  return line === null ? [] : [watchParents(line, () => stop("npm, or the shell that started it, is gone"))];
}

function onSignal(signal: NodeJS.Signals, listener: () => void): () => void {
  process.on(signal, listener);
  return () => void process.off(signal, listener);
}

/** npm hands on a signal that the terminal has sent to everybody: so soon it is not a second one. */
const sameMs = 500;

/**
 * Resolves with why it is to stop. A second request, that is not the first one heard twice, calls `atOnce`.
 */
export function untilStopped(
  outside: Pick<Outside, "onStop">,
  atOnce: () => void,
  now: () => number = () => performance.now(),
): { readonly asked: Promise<string>; end(): void } {
  const asked = Promise.withResolvers<string>();
  let first: number | null = null;
  const end = outside.onStop((why) => {
    if (first === null) {
      first = now();
      asked.resolve(why);
    } else if (now() - first >= sameMs) atOnce();
  });
  return { asked: asked.promise, end };
}

/**
 * Whether npm, or the shell that called it, is still there. npm that is killed tells its script nothing: without this the
 * gateway would go on with nobody to end it. Who starts `skein start` without npm keeps it until a signal ends it.
 */

export interface SeenProcess {
  readonly pid: number;
  readonly parent: number;
  /** In the kernel's own count; a pid that is used again has another. */
  readonly started: string;
  readonly command: string;
}

/** `null`: there is none, or this system does not say. */
export type LookUp = (pid: number) => SeenProcess | null;

/** From the process above this one up to npm; the last one's parent is the shell that called it. */
export type Line = readonly SeenProcess[];

const mostSteps = 8;
const npmNames = /(?:^|[/\\\0\s])(?:npm|npx|pnpm|yarn)(?:-cli)?(?:\.[cm]?js)?(?=[\0\s]|$)/;

/** Who started this process, if npm did; `null`: nobody whose end would be its own. */
export function startedByNpm(
  env: Readonly<Record<string, string | undefined>>,
  parent: number,
  lookUp: LookUp = seenInProc,
): Line | null {
  if ((env.npm_lifecycle_event ?? "") === "") return null;
  const line: SeenProcess[] = [];
  for (let pid = parent; pid > 0 && line.length < mostSteps; pid = line.at(-1)?.parent ?? 0) {
    const seen = lookUp(pid);
    if (seen === null) break;
    line.push(seen);
    if (npmNames.test(seen.command)) return line;
  }
  // Where nobody can be looked up, the parent alone is known: a shell that only runs a script is replaced by it.
  const isUnknown = line.length === 0 && parent > 1;
  return isUnknown ? [{ pid: parent, parent: 0, started: "", command: "" }] : null;
}

/** Whether one of them is gone, or npm has another parent than at the start. */
export function isLeftAlone(line: Line, parent: number, lookUp: LookUp = seenInProc): boolean {
  if (parent !== line[0]?.pid) return true;
  return line.some(({ pid, parent: before, started }) => {
    if (started === "") return false;
    const now = lookUp(pid);
    if (now === null || now.started !== started) return true;
    return now.parent !== before;
  });
}

/** Calls back once when nobody is left; returns a function that ends the watch. */
export function watchParents(
  line: Line,
  gone: () => void,
  { everyMs = 500, parent = () => process.ppid, lookUp = seenInProc as LookUp } = {},
): () => void {
  const timer = setInterval(() => {
    if (!isLeftAlone(line, parent(), lookUp)) return;
    clearInterval(timer);
    gone();
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/** As Linux tells it; elsewhere nobody is seen. */
export function seenInProc(pid: number): SeenProcess | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in the second field may hold blanks and brackets.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent = "", started = ""] = [fields[0], fields[1], fields[19]];
    if (/^[ZX]$/.test(state)) return null;
    return { pid, parent: Number(parent), started, command: readFileSync(`/proc/${pid}/cmdline`, "utf8") };
  } catch {
    return null; // it is gone, or this system has no such files
  }
}
