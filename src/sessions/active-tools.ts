import { isRecord } from "../core/shape.ts";
import type { Json, SessionRecord, StateStore } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { StateModule } from "./with-state.ts";

/** The state module that every agent has: which groups of tools are active in a session, of those that are on demand. */
export class ActiveTools implements StateModule {
  readonly key = "tools";
  readonly #initial: readonly string[];
  #groups: Set<string>;

  /** `initial`: what a new session begins with. */
  constructor(initial: readonly string[] = []) {
    this.#initial = initial;
    this.#groups = new Set(initial);
  }

  /** As a session has it now, for readers: nothing is saved. */
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

  /** Whether a tool is offered: one in groups that are on demand needs one of them to be active. */
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

function groupName(name: string): string {
  return name.startsWith("group:") ? name : `group:${name}`;
}
