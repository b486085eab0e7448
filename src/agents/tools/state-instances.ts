import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/shape.ts";
import type { Json } from "../../store/contract.ts";

/**
 * A part of the agent that outlives a run: its value as JSON, saved and loaded for each session. Every run has an instance
 * of its own, which its tools find in `context.state`.
 */
export interface AgentState {
  readonly key: string;
  save(): Json;
  /** `null` for a new session. */
  load(value: Json | null): void;
}

/** A module as it is given: an object that is copied for each run, or a function that makes one. */
type ModuleSource = AgentState | (() => AgentState);

export type StateSource = readonly ModuleSource[] | (() => readonly AgentState[]);

/** Instances that a run already has: a function that returns one of them again would have two runs share it. */
const inUse = new WeakSet<AgentState>();

/** Instances of the state modules of an agent, for one run. */
export function instantiateState(state: StateSource | undefined): readonly AgentState[] {
  if (state === undefined) return [];
  const made = typeof state === "function" ? state() : state.map((source) => instanceOf(source));
  for (const module of made) {
    if (inUse.has(module)) {
      const problem = `The function for the state module "${module.key}" returned the same object for two runs`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Return a new object at every call" });
    }
    inUse.add(module);
  }
  return made;
}

/**
 * Why a module that was given as an object cannot have one instance per run; `null`: it can. Copies of an object share
 * everything that its methods keep in variables outside of it.
 */
export function sharingProblem(source: ModuleSource): string | null {
  if (typeof source === "function") return null;
  if (keepsValueOutside(source)) return 'does not keep its value in "this"';
  try {
    instanceOf(source).save();
    return null;
  } catch {
    return "cannot be copied";
  }
}

function instanceOf(source: ModuleSource): AgentState {
  if (typeof source === "function") return source();
  const fields = Object.getOwnPropertyDescriptors(source) as Record<string, PropertyDescriptor>;
  for (const field of Object.values(fields))
    if (isPlainData(field.value)) field.value = structuredClone(field.value);
  return Object.create(Object.getPrototypeOf(source) as object, fields) as AgentState;
}

/** Data that belongs to the module. Anything else, such as a connection, is a service that all instances use. */
function isPlainData(value: unknown): boolean {
  if (Array.isArray(value) || value instanceof Map || value instanceof Set || value instanceof Date)
    return true;
  return isRecord(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

function keepsValueOutside({ save, load }: AgentState): boolean {
  const texts = [save, load].map((method) => Function.prototype.toString.call(method));
  const isFixed = (text: string) => text.includes("[native code]") || arrow.test(text);
  return texts.some(isFixed) || !/\bthis\b/.test(texts[0] ?? "");
}

const arrow = /^(?:async\s+)?(?:\([^)]*\)|[\w$]+)\s*(?::[^=]*)?=>/;
