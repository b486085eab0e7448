import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { present } from "../core/present.ts";
import type { Json, Scope, SessionRecord, StateStore } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { FenceOption, WorkingState } from "../store/work.ts";

/** A part of an agent's state that persists between runs. It is saved separately for each session. */
export interface StateModule {
  readonly key: string;
  /** Returns the state as JSON, or `null` if it is the state of a new session. */
  save(): Json;
  /** Restores a saved state. `null` stands for a new session. */
  load(value: Json | null): void;
}

/** Returns the modules by key. */
export function stateByKey(modules: readonly StateModule[]): Readonly<Record<string, StateModule>> {
  return Object.fromEntries(modules.map((module) => [module.key, module]));
}

/** If a fence is given, changes are saved only while the fence holds. */
interface WithStateOptions extends FenceOption {
  /** The completed work as a sentence without a period, such as "The tool look ran". */
  readonly done: string;
  /** Stops the work. The modules' state at that point is saved. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/**
 * Loads the modules, does the work, and saves changes even if the work failed, timed out or was aborted. Overlapping
 * work on one session in this process shares the instances so that no save overwrites another. Throws `conflict` if
 * another process has changed a value since it was loaded. If the work failed too, throws an `AggregateError` with the
 * work's error first.
 */
export async function withState<T>(
  state: WorkingState,
  scope: Scope,
  sessionId: string,
  modules: readonly StateModule[],
  work: (modules: readonly StateModule[], signal: AbortSignal) => Promise<T>,
  options: WithStateOptions,
): Promise<T> {
  checkKeys(modules);
  const shared = modules.map((module) => SharedModule.acquire({ state, scope, sessionId }, module));
  try {
    for (const { ready } of shared) await ready;
    const signals = [
      ...(options.signal === undefined ? [] : [options.signal]),
      ...(options.timeoutMs === undefined ? [] : [AbortSignal.timeout(options.timeoutMs)]),
    ];
    const signal = AbortSignal.any(signals);
    const instances = shared.map(({ module }) => module);
    const outcome = await settled(untilAborted((until) => work(instances, until), signal));
    const saving = await settled(saveAll(shared, options));
    if (!outcome.ok && !saving.ok)
      throw new AggregateError([outcome.error, saving.error], messageOf(outcome.error));
    if (!outcome.ok) throw outcome.error;
    if (!saving.ok) throw saving.error;
    return outcome.value;
  } finally {
    for (const each of shared) each.release();
  }
}

function checkKeys(modules: readonly StateModule[]): void {
  const keys = new Set<string>();
  for (const { key } of modules) {
    if (keys.has(key)) {
      const problem = `Two state modules have the key "${key}"`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Give each one its own key" });
    }
    keys.add(key);
  }
}

/** Saves every module even if one fails, then throws the first error. */
async function saveAll(shared: readonly SharedModule[], options: WithStateOptions): Promise<void> {
  const errors: unknown[] = [];
  for (const each of shared) {
    const saved = await settled(each.save(options));
    if (!saved.ok) errors.push(saved.error);
  }
  if (errors.length > 0) throw errors[0];
}

interface StatePlace {
  readonly state: WorkingState;
  readonly scope: Scope;
  readonly sessionId: string;
}

/** The modules in use in this process, keyed by session and module key. */
const inUse = new WeakMap<StateStore, Map<string, SharedModule>>();

/** A module in use by calls or runs. It is dropped when the last of them finishes. */
class SharedModule {
  readonly module: StateModule;
  readonly ready: Promise<void>;
  readonly #place: StatePlace;
  readonly #name: string;
  #users = 0;
  #version: number | null = null;
  /** The value last loaded or saved, as JSON. `null` if it cannot be serialized. */
  #known: string | null = null;
  #saving: Promise<unknown> = Promise.resolve();

  static acquire(place: StatePlace, module: StateModule): SharedModule {
    const modules = inUse.get(place.state) ?? new Map<string, SharedModule>();
    inUse.set(place.state, modules);
    const { userId = null, agentId = null } = place.scope;
    const name = JSON.stringify([userId, agentId, place.sessionId, module.key]);
    const shared = modules.get(name) ?? new SharedModule(place, module, name);
    modules.set(name, shared);
    shared.#users += 1;
    return shared;
  }

  private constructor(place: StatePlace, module: StateModule, name: string) {
    this.module = module;
    this.#place = place;
    this.#name = name;
    this.ready = this.#load();
    // Callers await this promise and receive the error. If there are no callers, it must not cause an unhandled
    // rejection.
    this.ready.catch(() => undefined);
  }

  release(): void {
    this.#users -= 1;
    if (this.#users === 0) inUse.get(this.#place.state)?.delete(this.#name);
  }

  /** Saves run one after another, because each starts from the version that the previous save wrote. */
  save(options: WithStateOptions): Promise<void> {
    const saved = this.#saving.then(() => this.#saveChange(options));
    this.#saving = saved.catch(() => undefined);
    return saved;
  }

  async #load(): Promise<void> {
    const { state, scope, sessionId } = this.#place;
    const held = await state.get(scope, sessionId, this.module.key);
    this.#version = held?.version ?? null;
    const value = held?.value ?? null;
    this.module.load(value);
    this.#known = jsonOf(value);
  }

  async #saveChange({ done, fence }: WithStateOptions): Promise<void> {
    const { state, scope, sessionId } = this.#place;
    const { key } = this.module;
    const value = this.module.save();
    const text = jsonOf(value);
    if (text !== null && text === this.#known) return;
    try {
      const options = { ifVersion: this.#version, ...present({ fence }) };
      this.#version = await state.set(scope, sessionId, key, value, options);
      this.#known = text;
    } catch (error) {
      if (!(error instanceof SkeinError && error.code === "conflict")) throw error;
      const problem = `${done}, but its change to the state "${key}" was not saved, because another process changed that state first`;
      const advice = "Before you do it again, check what was done";
      throw new SkeinError("conflict", { problem, advice }, { cause: error });
    }
  }
}

function jsonOf(value: Json): string | null {
  try {
    return JSON.stringify(value) ?? null;
  } catch {
    return null;
  }
}

/** Rejects on abort even if the work ignores its signal. */
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

/** A state module that every agent has. It records which on-demand tool groups are active in a session. */
export class ActiveTools implements StateModule {
  readonly key = "tools";
  readonly #initial: readonly string[];
  #groups: Set<string>;

  /** `initial` is the list of groups active in a new session. */
  constructor(initial: readonly string[] = []) {
    this.#initial = initial;
    this.#groups = new Set(initial);
  }

  /** Returns a copy of a session's current state. Changes to the copy are not saved. */
  static async read(
    state: Pick<StateStore, "get">,
    session: Pick<SessionRecord, "userId" | "agentId" | "sessionId">,
  ): Promise<ActiveTools> {
    const active = new ActiveTools();
    const held = await state.get(scopeOfSession(session), session.sessionId, active.key);
    active.load(held?.value ?? null);
    return active;
  }

  get groups(): readonly string[] {
    return [...this.#groups];
  }

  /** Whether a tool is offered. If the tool belongs to on-demand groups, one of them must be active. */
  offers({ groups }: { readonly groups: readonly string[] }, onDemand: readonly string[]): boolean {
    const needed = onDemand.map(groupName).filter((group) => groups.map(groupName).includes(group));
    return needed.length === 0 || this.groups.some((group) => needed.includes(groupName(group)));
  }

  activate(group: string): void {
    this.#groups.add(group);
  }

  deactivate(group: string): void {
    this.#groups.delete(group);
  }

  /** Returns `null` while the session still has its initial groups. */
  save(): Json {
    const groups = [...this.#groups];
    return JSON.stringify(groups) === JSON.stringify(this.#initial) ? null : { groups };
  }

  /** Ignores a value that is not a list of names, because a later version might have written it. */
  load(value: Json | null): void {
    const groups = isRecord(value) && Array.isArray(value.groups) ? value.groups : this.#initial;
    this.#groups = new Set(groups.filter((group) => typeof group === "string"));
  }
}

function groupName(name: string): string {
  return name.startsWith("group:") ? name : `group:${name}`;
}
