import { isRecord } from "../core/shape.ts";
import type { Json } from "../store/contract.ts";
import type { StateModule } from "./with-state.ts";

/** The state module that every agent has: which groups of tools are active in a session. */
export class ActiveTools implements StateModule {
  readonly key = "tools";
  readonly #initial: readonly string[];
  #groups: Set<string>;

  /** `initial`: what a new session begins with. */
  constructor(initial: readonly string[] = []) {
    this.#initial = initial;
    this.#groups = new Set(initial);
  }

  get groups(): readonly string[] {
    return [...this.#groups];
  }

  activate(group: string): void {
    this.#groups.add(group);
  }

  deactivate(group: string): void {
    this.#groups.delete(group);
  }

  /** Nothing, as long as a session has what it began with. */
  save(): Json {
    const groups = [...this.#groups];
    return JSON.stringify(groups) === JSON.stringify(this.#initial) ? null : { groups };
  }

  /** What is no list of names is passed over: a later version may have written it. */
  load(value: Json | null): void {
    const groups = isRecord(value) && Array.isArray(value.groups) ? value.groups : this.#initial;
    this.#groups = new Set(groups.filter((group) => typeof group === "string"));
  }
}
