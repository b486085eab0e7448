import { Worker } from "node:worker_threads";
import type { FoundEntry, WordSearch } from "./index-query.ts";
import type { IndexService } from "./index-service.ts";
import type { CaughtUp } from "./indexer.ts";

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly problem?: string;
}

export interface ThreadPlaces {
  readonly root: string;
  readonly databases: string;
}

/**
 * The index service in a thread of its own, begun when something is asked that may take long. It does not keep the
 * process alive, and at the end of one that never needed it, what is left is done in place.
 */
export class IndexThread implements IndexService {
  readonly #places: ThreadPlaces;
  readonly #inPlace: IndexService;
  readonly #waiting = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (error: Error) => void }
  >();
  #worker: Worker | null = null;
  #calls = 0;

  constructor(places: ThreadPlaces, inPlace: IndexService) {
    this.#places = places;
    this.#inPlace = inPlace;
  }

  catchUp(forMs: number): Promise<CaughtUp> {
    return this.#call("catchUp", forMs) as Promise<CaughtUp>;
  }

  async bringUp(uid: string): Promise<void> {
    await this.#call("bringUp", uid);
  }

  search(search: WordSearch): Promise<readonly FoundEntry[]> {
    return this.#call("search", search) as Promise<readonly FoundEntry[]>;
  }

  async remove(uid: string): Promise<void> {
    await this.#call("remove", uid);
  }

  async settle(): Promise<void> {
    await this.#call("settle");
  }

  async writeListings(all: boolean): Promise<void> {
    await this.#call("writeListings", all);
  }

  async finish(forMs: number): Promise<void> {
    if (this.#worker === null) await this.#inPlace.finish(forMs);
    else await this.#call("finish", forMs);
  }

  async close(): Promise<void> {
    if (this.#worker === null) return;
    await this.#call("close");
    const worker = this.#worker;
    this.#worker = null;
    await worker.terminate();
  }

  #call(name: keyof IndexService, ...args: unknown[]): Promise<unknown> {
    const worker = this.#start();
    this.#calls += 1;
    const id = this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      // Only while somebody waits for an answer does the thread keep the process alive.
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
    worker.on("message", (answer: Answer) => this.#answered(answer));
    worker.on("error", (error: Error) => this.#broken(worker, error));
    worker.on("exit", () => this.#broken(worker, new Error("the index thread ended")));
    this.#worker = worker;
    return worker;
  }

  #answered({ id, result, problem }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    if (problem === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(problem));
  }

  /** Whoever waits is told; the next call begins another thread. */
  #broken(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}
