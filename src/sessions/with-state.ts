import { SkeinError } from "../core/errors.ts";
import type { Json, Scope, StateStore } from "../store/contract.ts";

/** A part of an agent that outlives a run: what it is now, as JSON, and how to become it again. */
export interface StateModule {
  readonly key: string;
  save(): Json;
  /** `null` for a new session: nothing is inherited from another. */
  load(value: Json | null): void;
}

export interface WithStateOptions {
  /** Ends the work; what the modules hold then is saved. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/**
 * Loads the modules, does the work, and saves them, whether it ended well, failed, timed out or was aborted.
 * A save on top of somebody else's is a `conflict`; if the work failed too, its own error is thrown, with the conflict
 * as an `AggregateError` beside it.
 */
export async function withState<T>(
  state: StateStore,
  scope: Scope,
  sessionId: string,
  modules: readonly StateModule[],
  work: (signal: AbortSignal) => Promise<T>,
  options: WithStateOptions = {},
): Promise<T> {
  const versions = await loadAll(state, scope, sessionId, modules);
  const signals = [
    ...(options.signal === undefined ? [] : [options.signal]),
    ...(options.timeoutMs === undefined ? [] : [AbortSignal.timeout(options.timeoutMs)]),
  ];
  const signal = AbortSignal.any(signals);
  const outcome = await settled(untilAborted(work, signal));
  const saving = await settled(saveAll(state, scope, sessionId, modules, versions));
  if (!outcome.ok && !saving.ok)
    throw new AggregateError([outcome.error, saving.error], messageOf(outcome.error));
  if (!outcome.ok) throw outcome.error;
  if (!saving.ok) throw saving.error;
  return outcome.value;
}

async function loadAll(
  state: StateStore,
  scope: Scope,
  sessionId: string,
  modules: readonly StateModule[],
): Promise<ReadonlyMap<string, number | null>> {
  const versions = new Map<string, number | null>();
  for (const module of modules) {
    if (versions.has(module.key)) {
      const problem = `Two state modules have the key "${module.key}"`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Give each its own" });
    }
    const held = await state.get(scope, sessionId, module.key);
    versions.set(module.key, held?.version ?? null);
    module.load(held?.value ?? null);
  }
  return versions;
}

/** Each module is saved even if another one cannot be; the first error is thrown afterwards. */
async function saveAll(
  state: StateStore,
  scope: Scope,
  sessionId: string,
  modules: readonly StateModule[],
  versions: ReadonlyMap<string, number | null>,
): Promise<void> {
  const errors: unknown[] = [];
  for (const module of modules) {
    const saved = await settled(
      (async () =>
        state.set(scope, sessionId, module.key, module.save(), {
          ifVersion: versions.get(module.key) ?? null,
        }))(),
    );
    if (!saved.ok) errors.push(saved.error);
  }
  if (errors.length > 0) throw errors[0];
}

/** Work that does not listen to its signal is left behind. */
function untilAborted<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work(signal).then(resolve, reject);
  });
}

type Settled<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

function settled<T>(promise: Promise<T>): Promise<Settled<T>> {
  return promise.then(
    (value) => ({ ok: true, value }),
    (error: unknown) => ({ ok: false, error }),
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
