import { Worker } from "node:worker_threads";
import type { ErrorCode, ErrorDetails } from "../../core/errors.ts";
import { SkeinError } from "../../core/errors.ts";
import { noteDamage } from "./database.ts";
import type { IndexInPlace, IndexService, ServiceCall } from "./index-service.ts";
import { serviceCalls } from "./index-service.ts";
import type { CaughtUp } from "./indexer.ts";
import { noLeast } from "./indexer.ts";
import type { AgentPlace } from "./layout.ts";

/**
 * Shorter operations run on the calling thread because starting and messaging the worker thread takes about as long.
 */
const quickMs = 10;
/** The number of log bytes that can be indexed in about `quickMs`. */
const quickLog = 64 * 1024;
const quickBytes = 256 * 1024;
const quickRows = 1000;

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly problem?: Problem;
}

/** An error that can be sent between threads with its code and details. */
interface Problem {
  readonly message: string;
  readonly code?: string;
  readonly details?: Readonly<Record<string, string | number>>;
}

export function problemOf(error: unknown): Problem {
  const { message } = error as Error;
  if (error instanceof SkeinError) return { message, code: error.code, details: error.details };
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === "string" ? { message, code } : { message };
}

export function errorOf({ message, code, details }: Problem): Error {
  if (code === undefined) return new Error(message);
  if (details === undefined) return Object.assign(new Error(message), { code });
  if (code === "store_damaged") noteDamage(String(details.file), String(details.problem));
  return new SkeinError(code as ErrorCode, details as ErrorDetails<ErrorCode>);
}

export interface ThreadPlaces {
  readonly root: string;
  readonly databases: string;
  /** The identity of `work.db`, used to detect whether the folder has been replaced. */
  readonly identity: string;
}

/**
 * The index service in a worker thread. The thread starts with the first long operation and does not keep the process
 * alive. If it was never started, closing runs on the calling thread.
 */
export class IndexThread implements IndexService {
  readonly #places: ThreadPlaces;
  readonly #inPlace: IndexInPlace;
  readonly #waiting = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (error: Error) => void }
  >();
  /** Proxies for calls to the worker thread. */
  readonly #thread = Object.fromEntries(
    serviceCalls.map((name) => [name, (...args: unknown[]) => this.#call(name, args)]),
  ) as unknown as Pick<IndexService, ServiceCall>;
  #worker: Worker | null = null;
  #calls = 0;

  readonly search = this.#thread.search;
  readonly nearest = this.#thread.nearest;
  readonly unembedded = this.#thread.unembedded;
  readonly embed = this.#thread.embed;
  readonly withEntries = this.#thread.withEntries;
  readonly remove = this.#thread.remove;
  readonly scrub = this.#thread.scrub;

  constructor(places: ThreadPlaces, inPlace: IndexInPlace) {
    this.#places = places;
    this.#inPlace = inPlace;
  }

  /** Reopens the index only on the calling thread. The worker thread reopens its own connection. */
  follow(): void {
    this.#inPlace.follow();
  }

  async catchUp(forMs: number): Promise<CaughtUp> {
    if (this.#worker === null) {
      const caught = await this.#inPlace.catchUp(quickMs, { mostBytes: quickLog, least: noLeast });
      if (caught.behind === caught.unreadable) return caught;
    }
    return this.#thread.catchUp(forMs);
  }

  async bringUp(uid: string, bytesBehind: number): Promise<void> {
    if (bytesBehind <= quickBytes) await this.#inPlace.bringUp(uid);
    else await this.#thread.bringUp(uid, bytesBehind);
  }

  async settle(): Promise<void> {
    await (this.#worker === null ? this.#inPlace : this.#thread).settle();
  }

  async touchListings(places: readonly AgentPlace[]): Promise<void> {
    await this.#inPlace.touchListings(places);
  }

  /** Writes long listings in the worker thread. */
  async writeListings(all: boolean): Promise<void> {
    const touched = this.#inPlace.takeTouched();
    const isLong = touched.some((place) => this.#inPlace.countIn(place) > quickRows);
    if (this.#worker === null && !isLong) {
      await this.#inPlace.touchListings(touched);
      await this.#inPlace.writeListings(all);
      return;
    }
    await this.#thread.touchListings(touched);
    await this.#thread.writeListings(all);
  }

  async finish(forMs: number): Promise<void> {
    if (this.#worker === null) return this.#inPlace.finish(forMs);
    await this.#thread.touchListings(this.#inPlace.takeTouched());
    await this.#thread.finish(forMs);
  }

  async close(): Promise<void> {
    if (this.#worker === null) return;
    await this.#thread.close();
    const worker = this.#worker;
    this.#worker = null;
    await worker.terminate();
  }

  #call(name: ServiceCall, args: readonly unknown[]): Promise<unknown> {
    const worker = this.#start();
    this.#calls += 1;
    const id = this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      // The thread keeps the process alive only while a call is pending.
      worker.ref();
      worker.postMessage({ id, name, args });
    });
  }

  #start(): Worker {
    if (this.#worker !== null) return this.#worker;
    const file = import.meta.url.endsWith(".ts") ? "./index-worker.ts" : "./index-worker.js";
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: this.#places,
      name: "skein-index",
    });
    worker.on("message", (answer: Answer) => this.#settleCall(answer));
    worker.on("error", (error: Error) => this.#rejectCalls(worker, error));
    worker.on("exit", () => this.#rejectCalls(worker, null));
    this.#worker = worker;
    return worker;
  }

  #settleCall({ id, result, problem }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    if (problem === undefined) waiting?.resolve(result);
    else waiting?.reject(errorOf(problem));
  }

  /** Rejects pending calls. The next call starts a new thread. */
  #rejectCalls(worker: Worker, cause: Error | null): void {
    if (this.#worker !== worker) return;
    const problem = `the index thread stopped${cause === null ? "" : ` (${cause.message})`}`;
    const error =
      this.#inPlace.absence() ?? new SkeinError("internal", { problem }, cause === null ? {} : { cause });
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}
