import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { SessionRecord, Store } from "../store/contract.ts";

export interface PathStep {
  readonly key: string;
  readonly label?: string;
}

/** Greater than the maximum spawn depth. */
const maxGenerations = 16;

/** Finds the ancestors of sessions. Create one instance per response so that each session is looked up only once. */
export class SessionPaths {
  readonly #sessions: Pick<Store["sessions"], "find">;
  readonly #known = new Map<string, Promise<SessionRecord | null>>();

  constructor({ sessions }: { readonly sessions: Pick<Store["sessions"], "find"> }) {
    this.#sessions = sessions;
  }

  /** Returns the sessions from the root of the family to the given session, inclusive. */
  async pathTo({ userId, key }: Pick<SessionRef, "userId" | "key">): Promise<PathStep[]> {
    const path: PathStep[] = [];
    for (let next: string | undefined = key; next !== undefined && path.length < maxGenerations; ) {
      const record: SessionRecord | null = await this.#find(userId, next);
      path.unshift({ key: next, ...present({ label: record?.meta.label }) });
      next = record?.meta.spawnedBy;
    }
    return path;
  }

  #find(userId: string | null, key: string): Promise<SessionRecord | null> {
    const name = JSON.stringify([userId, key]);
    const known = this.#known.get(name) ?? this.#read(userId, key);
    this.#known.set(name, known);
    return known;
  }

  async #read(userId: string | null, key: string): Promise<SessionRecord | null> {
    const [record] = await this.#sessions.find(present({ userId }), { by: "key", key });
    return record ?? null;
  }
}
