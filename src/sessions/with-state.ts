import { SkeinError } from "../core/errors.ts";
import type { Json, Scope, StateStore, StateValue } from "../store/contract.ts";

/** A part of an agent that outlives a run: what it is now, as JSON, and how to become it again. */
export interface StateModule {
  readonly key: string;
  /** `null`: nothing but what a new session begins with. */
  save(): Json;
  /** `null` for a new session: nothing is inherited from another. */
  load(value: Json | null): void;
}

/** Modules by their keys. */
export function stateByKey(modules: readonly StateModule[]): Readonly<Record<string, StateModule>> {
  return Object.fromEntries(modules.map((module) => [module.key, module]));
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
  const loaded = await loadAll(state, scope, sessionId, modules);
  const signals = [
    ...(options.signal === undefined ? [] : [options.signal]),
    ...(options.timeoutMs === undefined ? [] : [AbortSignal.timeout(options.timeoutMs)]),
  ];
  const signal = AbortSignal.any(signals);
  const outcome = await settled(untilAborted(work, signal));
  const saving = await settled(saveAll(state, scope, sessionId, modules, loaded));
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
): Promise<ReadonlyMap<string, StateValue | null>> {
  const loaded = new Map<string, StateValue | null>();
  for (const module of modules) {
    if (loaded.has(module.key)) {
      const problem = `Two state modules have the key "${module.key}"`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Give each its own" });
    }
    const held = await state.get(scope, sessionId, module.key);
    loaded.set(module.key, held);
    module.load(held?.value ?? null);
  }
  return loaded;
}

/** Each module is saved even if another one cannot be; the first error is thrown afterwards. */
async function saveAll(
  state: StateStore,
  scope: Scope,
  sessionId: string,
  modules: readonly StateModule[],
  loaded: ReadonlyMap<string, StateValue | null>,
): Promise<void> {
  const errors: unknown[] = [];
  for (const module of modules) {
    const saved = await settled(saveOne(state, scope, sessionId, module, loaded.get(module.key) ?? null));
    if (!saved.ok) errors.push(saved.error);
  }
  if (errors.length > 0) throw errors[0];
}

/** What is as it was loaded, and as it stands there now, is not written again: most runs change nothing. */
async function saveOne(
  state: StateStore,
  scope: Scope,
  sessionId: string,
  module: StateModule,
  held: StateValue | null,
): Promise<void> {
  const value = module.save();
  const ifVersion = held?.version ?? null;
  if (JSON.stringify(value) === JSON.stringify(held?.value ?? null)) {
    const now = await state.get(scope, sessionId, module.key);
    if ((now?.version ?? null) === ifVersion) return;
  }
  await state.set(scope, sessionId, module.key, value, { ifVersion });
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
