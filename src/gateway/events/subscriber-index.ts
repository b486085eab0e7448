import type { SkeinEvent } from "../../core/events.ts";
import type { Wanted } from "./contract.ts";

type ByKey<T> = Map<string | null, Set<T>>;

/** Who is to be asked about an event: only those who want to hear of that session, that user, or of everything. */
export class SubscriberIndex<T extends { readonly wanted: Wanted }> {
  readonly #ofEverybody: ByKey<T> = new Map();
  readonly #ofUser = new Map<string | null, ByKey<T>>();
  readonly #all = new Set<T>();

  get size(): number {
    return this.#all.size;
  }

  add(subscriber: T): void {
    this.#all.add(subscriber);
    const { of, keys } = subscriber.wanted;
    const byKey = of === "everybody" ? this.#ofEverybody : this.#userMap(of.userId);
    for (const key of keys ?? [null]) {
      const there = byKey.get(key) ?? new Set();
      byKey.set(key, there.add(subscriber));
    }
  }

  delete(subscriber: T): void {
    if (!this.#all.delete(subscriber)) return;
    const { of, keys } = subscriber.wanted;
    const byKey = of === "everybody" ? this.#ofEverybody : this.#userMap(of.userId);
    for (const key of keys ?? [null]) {
      const there = byKey.get(key);
      there?.delete(subscriber);
      if (there?.size === 0) byKey.delete(key);
    }
    if (of !== "everybody" && byKey.size === 0) this.#ofUser.delete(of.userId);
  }

  /** Those who may come and go while they are told. */
  *about({ userId, sessionKey }: Pick<SkeinEvent, "userId" | "sessionKey">): Iterable<T> {
    for (const byKey of [this.#ofUser.get(userId), this.#ofEverybody]) {
      yield* byKey?.get(sessionKey) ?? [];
      yield* byKey?.get(null) ?? [];
    }
  }

  all(): readonly T[] {
    return [...this.#all];
  }

  #userMap(userId: string | null): ByKey<T> {
    const byKey = this.#ofUser.get(userId) ?? new Map();
    this.#ofUser.set(userId, byKey);
    return byKey;
  }
}
