import { closeSync, lstatSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * What is measured, on one footing: us, each peer and each baseline is a module with `acts`, run one act at a time in a
 * process of its own. What a side cannot do, it lacks.
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
  | "ready";
export type Acts = Readonly<Partial<Record<ActName, (job: Job) => Promise<Figures>>>>;

/** Numbers with a unit in the name: `ms`, `perSecond`, `rssMb`, … */
export type Figures = Readonly<Record<string, number>>;

export interface Job {
  /** Empty and its own for `append`; else what `append` or a fixture has filled. */
  readonly folder: string;
  readonly durability?: "full" | "os";
  /** Messages, in all. */
  readonly count?: number;
  /** Messages of another session before, that do not count. */
  readonly warmUp?: number;
  /** Messages in one call. */
  readonly batch?: number;
  /** Written to at once. */
  readonly sessions?: number;
  /** Of one session, one after the other. */
  readonly turns?: number;
  /** Runs at once; left out: as the configuration has it. */
  readonly lanes?: number;
  readonly sessionId?: string;
  /** The same session, for those who open a file. */
  readonly file?: string;
  readonly byteBudget?: number;
  /** Entries to look up. */
  readonly ids?: readonly string[];
  readonly queries?: readonly string[];
  /** Bytes of text in the messages. */
  readonly payload?: number;
  /** Of samples or transcripts, where not all are meant. */
  readonly kind?: string;
  /** How a list is narrowed. */
  readonly filter?: "none" | "filtered" | "text";
  /** Events a second. */
  readonly rate?: number;
  /** What requests come by. */
  readonly over?: "http" | "socket";
  /** What the session that lists may see. */
  readonly visibility?: "all" | "agent" | "tree";
}

/** Who a module measures. */
export interface About {
  readonly name: string;
  /** Of `bench/package.json`; the first one's version is the peer's. */
  readonly packages: readonly string[];
  /** What is certain once an append has returned. */
  readonly durability: string;
  /** The most messages that it is given, where more would take too long. */
  readonly most?: number;
  /** One call, one message, where what is kept depends on the number of calls. */
  readonly isByStep?: boolean;
}

/** Characters of a message. */
export const textLength = 1000;
/** In long sessions: with the fields around it, a line of about 1,000 bytes. */
export const longSessionText = 660;

/** Milliseconds of one piece of work. */
export async function timed(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** The middle one of several times, after some that do not count. */
export async function timedOften(times: number, work: (round: number) => unknown): Promise<number> {
  for (let round = 0; round < Math.min(3, times); round++) await work(round);
  const all: number[] = [];
  for (let round = 0; round < times; round++) all.push(await timed(() => work(round)));
  return all.toSorted((a, b) => a - b)[Math.floor(times / 2)] ?? 0;
}

/** How far the process grew at its largest, beyond what it was before. */
export async function watchMemory<T>(work: () => Promise<T>): Promise<{ result: T; rssMb: number }> {
  const before = process.memoryUsage.rss();
  const result = await work();
  const peak = process.resourceUsage().maxRSS * 1024;
  return { result, rssMb: Math.max(0, peak - before) / 1e6 };
}

/** Bytes of the files under a folder; two names of one file count once. */
export function bytesIn(folder: string, wanted: (path: string) => boolean = () => true): number {
  const seen = new Map<number, number>();
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const stat = lstatSync(join(folder, name));
    if (stat.isFile() && wanted(name)) seen.set(stat.ino, stat.size);
  }
  return [...seen.values()].reduce((sum, size) => sum + size, 0);
}

/** The one file in a folder that ends so. */
export function onlyFile(folder: string, ending: string): string {
  const [name, ...more] = readdirSync(folder).filter((each) => each.endsWith(ending));
  if (name === undefined || more.length > 0) throw new Error(`${folder}: not one file in ${ending}`);
  return join(folder, name);
}

export function removeQuietly(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Opens a file, hands it over, closes it whatever happens. */
export function withFile<T>(path: string, flags: string, act: (handle: number) => T): T {
  const handle = openSync(path, flags);
  try {
    return act(handle);
  } finally {
    closeSync(handle);
  }
}
