import type { GatewayPieces } from "../../app/gateway.ts";
import { findStoreProblems } from "../../app/gateway-upkeep.ts";
import { openSkein } from "../../app.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import { TimeLeft, within } from "../../core/concurrency.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import type { Handlers, MethodApp } from "../../gateway/methods/dispatch.ts";
import type { App } from "../../sessions/app.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { GatewayHome } from "./gateway-home.ts";

/**
 * A Skein instance and its handlers, opened with one configuration of a gateway. A reload opens the next generation.
 */
export interface Generation extends Configured {
  readonly skein: Skein;
  readonly app: MethodApp;
  readonly handlers: Handlers;
  /** Every use of the generation holds a lease so that it is not closed while in use. */
  readonly leases: Leases;
  /** Returns one sentence for each reason why the generation should not receive work now. */
  findProblems(): Promise<readonly string[]>;
  /** Throws `unavailable` once the root folder has been moved or deleted. */
  checkInPlace(): void;
}

interface GenerationOptions {
  readonly where: LoadOptions;
  readonly loaded: LoadedConfig;
  readonly home: Pick<GatewayHome, "tokens" | "backend">;
  readonly pieces: Pick<GatewayPieces, "handlers">;
  readonly reload: NonNullable<MethodApp["reload"]>;
  readonly live?: MethodApp["live"];
  /** Receives every event, from the first one until the generation is closed. */
  emit(event: SkeinEvent): void;
}

export async function openGeneration(options: GenerationOptions): Promise<Generation> {
  const { where, loaded, home, pieces, reload, live, emit } = options;
  const { cwd, env } = where;
  const inside = Promise.withResolvers<App & { unsubscribe(): void }>();
  const backend = present({ backend: home.backend });
  const workers = loaded.config.gateway.role !== "gateway";
  const skein = await openSkein(
    { cwd, env, loaded, ...backend, workers, metrics: true, usersInProcessFolder: "none" },
    (parts) => inside.resolve({ ...parts, unsubscribe: parts.bus.subscribe(emit) }),
  );
  const { unsubscribe, ...app } = await inside.promise;
  const { store, worker } = app;
  const leases = new Leases();
  const close = async ({ runsMs, callsMs }: Grace) => {
    // The worker stops claiming runs first. Calls that have started still get their responses.
    await Promise.all([worker.close(runsMs), leases.waitUntilIdle(callsMs)]);
    await skein.close({ graceMs: 0 });
    unsubscribe();
  };
  try {
    const { tokens } = home;
    const served = { ...app, skein, tokens, reload, ...present({ live }) };
    const handlers = pieces.handlers(served);
    return {
      ...{ skein, app: served, handlers, leases, loaded, close },
      findProblems: () => findStoreProblems(store),
      checkInPlace: () => store.upkeep?.checkInPlace(),
    };
  } catch (error) {
    await close({ runsMs: 0, callsMs: 0 });
    throw error;
  }
}

/** Counts the users of a resource that must not be closed while it is in use. */
export class Leases {
  #count = 0;
  #idle = Promise.withResolvers<void>();
  #waiting: { readonly left: TimeLeft; readonly idle: Promise<unknown> } | null = null;

  get count(): number {
    return this.#count;
  }

  acquire(): Disposable {
    this.#count++;
    return { [Symbol.dispose]: () => this.#release() };
  }

  /** Waits for at most `graceMs`. While one call is waiting, another call can only shorten the wait. */
  async waitUntilIdle(graceMs: number): Promise<void> {
    if (this.#count === 0) return;
    this.#waiting?.left.shorten(graceMs);
    this.#waiting ??= this.#wait(new TimeLeft(graceMs));
    await this.#waiting.idle;
  }

  #release(): void {
    this.#count--;
    if (this.#count > 0) return;
    this.#idle.resolve();
    this.#idle = Promise.withResolvers();
  }

  #wait(left: TimeLeft) {
    const idle = left.wait(this.#idle.promise).finally(() => {
      this.#waiting = null;
    });
    return { left, idle };
  }
}

/** The time limits for closing. */
export interface Grace {
  /** The time for runs to reach a durable state. */
  readonly runsMs: number;
  /** The time for calls that have started to finish. */
  readonly callsMs: number;
}

interface Closable {
  /** Calling it again while closing can only shorten the wait. */
  close(grace: Grace): Promise<void>;
}

export interface Configured extends Closable {
  readonly loaded: LoadedConfig;
}

/** The generation that is currently serving, and the replaced ones until they are closed. */
export class CurrentGeneration<T extends Closable> {
  #value: T;
  readonly #retired = new Map<T, Promise<void>>();
  readonly #report: (error: unknown) => void;
  /** Additional time for closing after the grace period. */
  readonly #unwindMs: number;

  constructor(first: T, report: (error: unknown) => void, unwindMs = 10_000) {
    this.#value = first;
    this.#report = report;
    this.#unwindMs = unwindMs;
  }

  get(): T {
    return this.#value;
  }

  get retiredCount(): number {
    return this.#retired.size;
  }

  replace(next: T, grace: Grace): void {
    const old = this.#value;
    this.#value = next;
    this.#retire(old, grace);
  }

  /** Closes all generations. Returns `false` if some were not closed in time. */
  async close(grace: Grace): Promise<boolean> {
    for (const each of [...this.#retired.keys(), this.#value]) this.#retire(each, grace);
    const maxMs = Math.max(grace.runsMs, grace.callsMs) + this.#unwindMs;
    return within(maxMs, Promise.all(this.#retired.values()));
  }

  #retire(old: T, grace: Grace): void {
    const report = this.#retired.has(old) ? () => undefined : this.#report; // Reports once.
    const closing: Promise<void> = old
      .close(grace)
      .catch(report)
      .finally(() => {
        if (this.#retired.get(old) === closing) this.#retired.delete(old);
      });
    this.#retired.set(old, closing);
  }
}
