import { closeSync, lstatSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * The common interface of everything that is measured: Skein, each peer and each baseline is a module with `acts`,
 * which run one at a time in separate processes. An act that a side cannot do is missing.
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
  | "listTool"
  | "core"
  | "ask"
  | "hear"
  | "ready"
  | "paint"
  | "scroll"
  | "stream";
export type Acts = Readonly<Partial<Record<ActName, (job: Job) => Promise<Figures>>>>;

/** Numbers with the unit in the name: `ms`, `perSecond`, `rssMb`, … */
export type Figures = Readonly<Record<string, number>>;

export interface Job {
  /** An empty folder of its own for `append`; otherwise a folder that `append` or a fixture has filled. */
  readonly folder: string;
  readonly durability?: "full" | "os";
  /** The total number of messages. */
  readonly count?: number;
  /** Messages of another session before the measurement, which do not count. */
  readonly warmUp?: number;
  /** Messages per call. */
  readonly batch?: number;
  /** Sessions written to concurrently. */
  readonly sessions?: number;
  /** Turns of one session, one after the other. */
  readonly turns?: number;
  /** Concurrent runs; by default as configured. */
  readonly lanes?: number;
  readonly sessionId?: string;
  /** The same session, for sides that open a file. */
  readonly file?: string;
  readonly byteBudget?: number;
  /** Entries to look up. */
  readonly ids?: readonly string[];
  readonly queries?: readonly string[];
  /** Bytes of text in the messages. */
  readonly payload?: number;
  /** The kind of samples or transcripts; by default all. */
  readonly kind?: string;
  /** The filter of a list. */
  readonly filter?: "none" | "filtered" | "text";
  /** Events per second. */
  readonly rate?: number;
  /** The transport of the requests. */
  readonly over?: "http" | "socket";
  /** The visibility of the session that lists. */
  readonly visibility?: "all" | "agent" | "tree";
}

/** The name of the side that a module measures. */
export interface About {
  readonly name: string;
  /** Packages in `bench/package.json`; the version of the first one is the peer's. */
  readonly packages: readonly string[];
  /** The guarantee for data once an append has returned. */
  readonly durability: string;
  /** The maximum number of messages, if more would take too long. */
  readonly most?: number;
  /** One message per call, if the stored data depends on the number of calls. */
  readonly isByStep?: boolean;
}

/** The length of a message in characters. */
export const textLength = 1000;
/** In long sessions: with the other fields, a line has about 1,000 bytes. */
export const longSessionText = 660;

/** The duration of one piece of work in milliseconds. */
export async function timed(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** The median of several times, after some warm-up rounds. */
export async function timedOften(times: number, work: (round: number) => unknown): Promise<number> {
  for (let round = 0; round < Math.min(3, times); round++) await work(round);
  const all: number[] = [];
  for (let round = 0; round < times; round++) all.push(await timed(() => work(round)));
  return all.toSorted((a, b) => a - b)[Math.floor(times / 2)] ?? 0;
}

/** The peak memory of the process, minus its memory before. */
export async function watchMemory<T>(work: () => Promise<T>): Promise<{ result: T; rssMb: number }> {
  const before = process.memoryUsage.rss();
  const result = await work();
  const peak = process.resourceUsage().maxRSS * 1024;
  return { result, rssMb: Math.max(0, peak - before) / 1e6 };
}

/** The total size of the files under a folder; hard links count once. */
export function bytesIn(folder: string, wanted: (path: string) => boolean = () => true): number {
  const seen = new Map<number, number>();
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const stat = lstatSync(join(folder, name));
    if (stat.isFile() && wanted(name)) seen.set(stat.ino, stat.size);
  }
  return [...seen.values()].reduce((sum, size) => sum + size, 0);
}

/** The only file in a folder with this extension. */
export function onlyFile(folder: string, ending: string): string {
  const [name, ...more] = readdirSync(folder).filter((each) => each.endsWith(ending));
  if (name === undefined || more.length > 0) throw new Error(`${folder}: not one file in ${ending}`);
  return join(folder, name);
}

export function removeQuietly(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Opens a file, passes it on, and closes it in any case. */
export function withFile<T>(path: string, flags: string, act: (handle: number) => T): T {
  const handle = openSync(path, flags);
  try {
    return act(handle);
  } finally {
    closeSync(handle);
  }
}
