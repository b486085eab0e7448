import { onStopAsked } from "../output/signals.ts";
import type { Line } from "./parents.ts";
import { startedByNpm, watchParents } from "./parents.ts";

/** What tells a gateway from outside to stop or to reload. */
export interface Outside {
  /** `why` is for the log. Called again for every further request. Returns a function that ends it. */
  onStop(stop: (why: string) => void): () => void;
  onReload(reload: () => void): () => void;
  /** Ends the process at once. */
  exit(code: number): void;
}

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
