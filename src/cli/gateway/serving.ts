import { skeinDeps } from "../../app/call-deps.ts";
import type { GatewayPieces, ServingDeps } from "../../app/pieces.ts";
import { openSkein } from "../../app.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { TimeLeft, within } from "../../core/within.ts";
import type { Tokens } from "../../gateway/auth/tokens.ts";
import type { Handlers } from "../../gateway/methods/dispatch.ts";
import type { App } from "../../sessions/app.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { FilesStore } from "../../store/files/store.ts";

/** One Skein of a gateway, with all that stands on it. */
export interface Serving extends Configured {
  readonly skein: Skein;
  readonly deps: ServingDeps;
  readonly handlers: Handlers;
  /** Everything that is asked of it goes through these: it is not closed under them. */
  readonly calls: CallsUnderWay;
  /** Why it should not be given work now; empty: it should. */
  health(): ReturnType<FilesStore["upkeep"]["health"]>;
  /** Throws `unavailable` once the root folder was moved or deleted. */
  checkInPlace(): void;
}

interface ServingOptions {
  readonly where: LoadOptions;
  readonly loaded: LoadedConfig;
  readonly tokens: Tokens;
  readonly pieces: Pick<GatewayPieces, "handlers">;
  readonly reload: NonNullable<ServingDeps["reload"]>;
  /** Told of everything that happens in it, from its very start until it is closed. */
  emit(event: SkeinEvent): void;
}

/** Opens a Skein that works, as a configuration says. */
export async function openServing(options: ServingOptions): Promise<Serving> {
  const { where, loaded, tokens, pieces, reload, emit } = options;
  const { cwd, env } = where;
  const inside = Promise.withResolvers<App & { leave(): void }>();
  const skein = await openSkein({ cwd, env, loaded, metrics: true, usersInProcessFolder: "none" }, (parts) =>
    inside.resolve({ ...parts, leave: parts.bus.subscribe(emit) }),
  );
  const { store, runs, worker, files, leave } = await inside.promise;
  const calls = new CallsUnderWay();
  const close = async ({ runsMs, callsMs }: Grace) => {
    // First it takes nothing on any more; who is being answered by it still gets the answer.
    await Promise.all([worker.close(runsMs), calls.idle(callsMs)]);
    await skein.close({ graceMs: 0 });
    leave();
  };
  try {
    // Opened on a folder, never in memory.
    const { upkeep } = store as FilesStore;
    const deps = { ...skeinDeps(skein, loaded, { runs, store, files }), tokens, reload };
    const { health, checkInPlace } = upkeep;
    return { skein, deps, handlers: pieces.handlers(deps), calls, loaded, health, checkInPlace, close };
  } catch (error) {
    await close({ runsMs: 0, callsMs: 0 });
    throw error;
  }
}

/** Counts calls, so that what they stand on is not closed under them. */
export class CallsUnderWay {
  #count = 0;
  #idle = Promise.withResolvers<void>();
  #waiting: { readonly left: TimeLeft; readonly idle: Promise<unknown> } | null = null;

  get count(): number {
    return this.#count;
  }

  async during<T>(act: () => Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await act();
    } finally {
      this.#count--;
      if (this.#count === 0) {
        this.#idle.resolve();
        this.#idle = Promise.withResolvers();
      }
    }
  }

  /** Until none is under way, for so long at the most; asked once more meanwhile, for the shorter time. */
  async idle(graceMs: number): Promise<void> {
    if (this.#count === 0) return;
    this.#waiting?.left.shorten(graceMs);
    this.#waiting ??= this.#wait(new TimeLeft(graceMs));
    await this.#waiting.idle;
  }

  #wait(left: TimeLeft) {
    const idle = left.wait(this.#idle.promise).finally(() => {
      this.#waiting = null;
    });
    return { left, idle };
  }
}

/** How long what is closed may take to come to its end. */
export interface Grace {
  /** For runs to come to a written state. */
  readonly runsMs: number;
  /** For calls that are under way. */
  readonly callsMs: number;
}

interface Closable {
  /** Asked once more meanwhile, it has the shorter time. */
  close(grace: Grace): Promise<void>;
}

/** What one configuration made. */
export interface Configured extends Closable {
  readonly loaded: LoadedConfig;
}

/**
 * What serves now. Whoever asks gets the newest; what was replaced is closed in its own time, and whatever had it before
 * may finish with it.
 */
export class Current<T extends Closable> {
  #value: T;
  readonly #leaving = new Map<T, Promise<void>>();
  readonly #report: (error: unknown) => void;
  /** What is cut off after its grace takes a moment more to be closed. */
  readonly #unwindMs: number;

  constructor(first: T, report: (error: unknown) => void, unwindMs = 10_000) {
    this.#value = first;
    this.#unwindMs = unwindMs;
    this.#report = report;
  }

  get(): T {
    return this.#value;
  }

  /** How many were replaced and are not closed yet. */
  get leaving(): number {
    return this.#leaving.size;
  }

  /** From now on the next one serves; the old one has so long to come to its end. */
  swap(next: T, grace: Grace): void {
    const old = this.#value;
    this.#value = next;
    this.#retire(old, grace);
  }

  /** Closes what serves and all that went before, and waits for so long at the most. `false`: some are not closed. */
  async close(grace: Grace): Promise<boolean> {
    for (const each of [...this.#leaving.keys(), this.#value]) this.#retire(each, grace);
    const patienceMs = Math.max(grace.runsMs, grace.callsMs) + this.#unwindMs;
    return within(patienceMs, Promise.all(this.#leaving.values()));
  }

  #retire(old: T, grace: Grace): void {
    const report = this.#leaving.has(old) ? () => undefined : this.#report; // once
    const leaving: Promise<void> = old
      .close(grace)
      .catch(report)
      .finally(() => {
        if (this.#leaving.get(old) === leaving) this.#leaving.delete(old);
      });
    this.#leaving.set(old, leaving);
  }
}
