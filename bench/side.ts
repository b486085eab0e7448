import { closeSync, existsSync, lstatSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * The common interface for everything that is measured. Skein, each peer and each baseline is a module with `acts`,
 * which run one at a time in separate processes. An act that a side does not support is missing.
 */
export type ActName =
  | "append"
  | "fill"
  | "open"
  | "load"
  | "fork"
  | "page"
  | "list"
  | "disk"
  | "start"
  | "search"
  | "import"
  | "estimate"
  | "prepare"
  | "redact"
  | "turn"
  | "crowd"
  | "spawn"
  | "serve"
  | "work"
  | "feed"
  | "listTool"
  | "core"
  | "ask"
  | "hear"
  | "ready"
  | "command"
  | "recall"
  | "paint"
  | "scroll"
  | "stream";
export type Acts = Readonly<Partial<Record<ActName, (job: Job) => Promise<Figures>>>>;

/** Numbers whose names contain the unit: `ms`, `perSecond`, `rssMb`, … */
export type Figures = Readonly<Record<string, number>>;

export interface Job {
  /** For `append`, an empty folder. Otherwise, a folder that `append` or a fixture has filled. */
  readonly folder: string;
  /** The address of a PostgreSQL database, for sides that use one instead of the folder. */
  readonly url?: string;
  readonly durability?: "full" | "os";
  /** The side's first package, for a module that measures several versions of a peer. */
  readonly package?: string;
  /** The total number of messages. */
  readonly count?: number;
  /** Messages in another session before the measurement. They are not counted. */
  readonly warmUp?: number;
  /** Messages per call. */
  readonly batch?: number;
  /** Sessions written to concurrently. */
  readonly sessions?: number;
  /** The number of consecutive turns in one session. */
  readonly turns?: number;
  /** The number of processes that execute runs. */
  readonly workers?: number;
  /** How long the model takes to answer. */
  readonly thinkMs?: number;
  /** The number of concurrent runs. Defaults to the configured limit. */
  readonly lanes?: number;
  readonly perProcess?: number;
  readonly sessionId?: string;
  /** The same session, for sides that open a file. */
  readonly file?: string;
  readonly byteBudget?: number;
  /** The IDs of entries to look up. */
  readonly ids?: readonly string[];
  readonly queries?: readonly string[];
  /** The number of bytes of text in the messages. */
  readonly payload?: number;
  /** The kind of samples or transcripts. Defaults to all. */
  readonly kind?: string;
  /** The filter for a list. */
  readonly filter?: "none" | "filtered" | "text";
  /** Events per second. */
  readonly rate?: number;
  /** The transport for the requests. */
  readonly over?: "http" | "socket";
  /** The visibility of the session that makes the list call. */
  readonly visibility?: "all" | "agent" | "tree";
}

/** The name of the side that a module measures. */
export interface About {
  readonly name: string;
  /** Packages in `bench/package.json`. The version of the first one is reported as the peer's. */
  readonly packages: readonly string[];
  /** The durability guarantee once an append has returned. */
  readonly durability: string;
  /** The maximum number of messages, set if more would take too long. */
  readonly most?: number;
  /** Uses one message per call if the stored data depends on the number of calls. */
  readonly isByStep?: boolean;
}

/** The length of a message in characters. */
export const textLength = 1000;
/** For long sessions. Together with the other fields, a line has about 1,000 bytes. */
export const longSessionText = 660;

/** Returns how long the work takes, in milliseconds. */
export async function timed(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Returns the median of several measurements, after some warm-up rounds. */
export async function timedOften(times: number, work: (round: number) => unknown): Promise<number> {
  for (let round = 0; round < Math.min(3, times); round++) await work(round);
  const all: number[] = [];
  for (let round = 0; round < times; round++) all.push(await timed(() => work(round)));
  return all.toSorted((a, b) => a - b)[Math.floor(times / 2)] ?? 0;
}

/** How long each of many calls takes. */
export class Latencies {
  readonly #all: number[] = [];

  async time(work: () => unknown): Promise<void> {
    this.#all.push(await timed(work));
  }

  /** Returns the time within which this part of the calls ended. */
  at(part: number): number {
    const sorted = this.#all.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  }
}

/**
 * Returns the most memory that the process has used, in MB. `maxRSS` also counts what its parent used when it started
 * this process, so it is only the fallback where there is no `/proc`.
 */
export function peakMemoryMb(): number {
  const status = existsSync("/proc/self/status") ? readFileSync("/proc/self/status", "utf8") : "";
  const own = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
  return ((own === undefined ? process.resourceUsage().maxRSS : Number(own)) * 1024) / 1e6;
}

/** Returns the process's peak memory minus its memory before the work. */
export async function watchMemory<T>(work: () => Promise<T>): Promise<{ result: T; rssMb: number }> {
  const before = process.memoryUsage.rss() / 1e6;
  const result = await work();
  return { result, rssMb: Math.max(0, peakMemoryMb() - before) };
}

/** Returns the total size of the files under a folder. Hard links are counted once. */
export function bytesIn(folder: string, wanted: (path: string) => boolean = () => true): number {
  const seen = new Map<number, number>();
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const stat = lstatSync(join(folder, name));
    if (stat.isFile() && wanted(name)) seen.set(stat.ino, stat.size);
  }
  return [...seen.values()].reduce((sum, size) => sum + size, 0);
}

/** Returns the only file in a folder with this extension. */
export function onlyFile(folder: string, ending: string): string {
  const [name, ...more] = readdirSync(folder).filter((each) => each.endsWith(ending));
  if (name === undefined || more.length > 0) throw new Error(`${folder}: not one file in ${ending}`);
  return join(folder, name);
}

export function removeQuietly(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Opens a file, passes it on, and always closes it. */
export function withFile<T>(path: string, flags: string, act: (handle: number) => T): T {
  const handle = openSync(path, flags);
  try {
    return act(handle);
  } finally {
    closeSync(handle);
  }
}
