import { SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { isRecord } from "../core/is-record.ts";
import { checkNamespace, defaultNamespace } from "../core/namespace.ts";
import { userSegment } from "../core/path-segment.ts";
import { present } from "../core/present.ts";
import { valueScript } from "../core/script.ts";
import type { Space, SpaceUser } from "../core/space.ts";
import { isReservedUserId, spaceOf, userInSpace } from "../core/space.ts";
import type { Scope, Store } from "./contract.ts";
import type { ExternalStore } from "./external-store.ts";
import { checkScope, wrapPort } from "./rules.ts";
import type { StoreWork, WorkingStore } from "./work.ts";

const ports = ["sessions", "search", "state", "blobs", "watch"] as const;
const homeSpace: Space = { store: null, namespace: null };

/** Combines all stores of a Skein instance. The user ID in a scope selects the store. */
export class Spaces<S extends WorkingStore> {
  /** Skein's own store, with ports that also route calls to the other stores. */
  readonly store: S;
  readonly #home: S;
  readonly #open: (name: string, store: Store) => ExternalStore;
  readonly #newId: IdSource;
  readonly #stores = new Map<string, ExternalStore>();
  /** The space of each store object. */
  readonly #spaceByStore = new WeakMap<object, Space>();
  readonly #listeners = new Set<Parameters<StoreWork["watch"]>[0]>();
  readonly #views = new Map<string, Store>();

  /** `named` contains additional stores, keyed by name. */
  constructor(
    home: S,
    open: (name: string, store: Store) => ExternalStore,
    newId: IdSource,
    named: Readonly<Record<string, Store>> = {},
  ) {
    this.#home = home;
    this.#open = open;
    this.#newId = newId;
    this.store = { ...home, ...this.#routes(), work: this.#work() };
    this.register(home, homeSpace);
    this.register(this.store, homeSpace);
    for (const [name, store] of Object.entries(named)) this.#add(name, store);
  }

  /** Assigns a space to a store object. */
  register(store: Store, space: Space = homeSpace): void {
    this.#spaceByStore.set(store, space);
    spacesOf.set(store, this);
  }

  /** Returns the internal user ID for a call, which encodes its store and namespace. */
  enter(call: {
    readonly userId?: string | null;
    readonly store?: Store | string | null;
    readonly namespace?: readonly string[] | null;
  }): string | null {
    const userId = call.userId ?? null;
    if (userId !== null) userSegment(userId);
    if (call.namespace !== undefined && call.namespace !== null) checkNamespace(call.namespace);
    if (userId !== null && isReservedUserId(userId))
      throw new SkeinError("invalid_user_id", {
        userId,
        problem: "it starts with the control character U+0001",
      });
    const given = this.#spaceOf(call.store ?? null);
    const namespace = call.namespace ?? given.namespace;
    const isUsual = namespace !== null && isSame(namespace, defaultNamespace({ userId }));
    return userInSpace({ userId, store: given.store, namespace: isUsual ? null : namespace });
  }

  /** Returns the user, namespace and store as shown to hooks, tools and callers. */
  leave(userId: string | null): { userId: string | null; namespace?: readonly string[]; store?: Store } {
    const space = spaceOf(userId);
    if (space.store === null && space.namespace === null) return { userId };
    return { userId: space.userId, ...present({ namespace: space.namespace }), store: this.#view(space) };
  }

  /** Returns a context for hooks. Unchanged in the default space. */
  show<C extends { readonly userId?: string | null }>(context: C): C {
    const { userId = null } = context;
    return userId !== null && isReservedUserId(userId) ? { ...context, ...this.leave(userId) } : context;
  }

  /** Returns the name of a user's store if this process does not have it, otherwise `null`. */
  missingStore(userId: string | null): string | null {
    const { store } = spaceOf(userId);
    return store === null || this.#stores.has(store) ? null : store;
  }

  #spaceOf(store: Store | string | null): Space {
    if (store === null) return homeSpace;
    if (typeof store === "string") {
      if (!this.#stores.has(store)) throw new SkeinError("store_unknown", { store });
      return { store, namespace: null };
    }
    const known = this.#spaceByStore.get(store);
    if (known !== undefined) return known;
    // The generated name is lost on restart, so this store's runs cannot continue afterward.
    return this.#add(`unnamed-${this.#newId()}`, store);
  }

  #add(name: string, store: Store): Space {
    const external = this.#open(name, store);
    this.#stores.set(name, external);
    for (const listener of this.#listeners) external.work.watch(listener);
    const space: Space = { store: name, namespace: null };
    this.register(store, space);
    return space;
  }

  #pick(userId: string | null): WorkingStore {
    const { store: name } = spaceOf(userId);
    if (name === null) return this.#home;
    const found = this.#stores.get(name);
    if (found === undefined) throw new SkeinError("store_unknown", { store: name });
    return found;
  }

  #routes(): Store {
    const routed = Object.fromEntries(ports.map((port) => [port, this.#route(port)])) as unknown as Store;
    return {
      ...routed,
      purgeUser: async (userId) => {
        checkScope({ userId });
        return this.#pick(userId).purgeUser(userId);
      },
      close: async () => {
        for (const store of this.#stores.values()) await store.close();
        await this.#home.close();
      },
    };
  }

  /** Calls for the home store are passed through directly. */
  #route<Port extends (typeof ports)[number]>(port: Port): Store[Port] {
    return wrapPort(this.#home[port], (invoke, scope, rest, name) => {
      if (scope.userId === undefined || !isReservedUserId(scope.userId)) return invoke(scope, ...rest);
      const invokeOther = () => {
        const other = this.#pick(scope.userId ?? null)[port];
        return Reflect.apply(Reflect.get(other, name) as typeof invoke, other, [scope, ...rest]);
      };
      return port === "watch" ? invokeOther() : (async () => invokeOther())();
    });
  }

  #work(): StoreWork {
    const { work } = this.#home;
    return {
      engine: work.engine,
      ledger: work.ledger,
      shared: work.shared,
      ...present({ everyUser: work.everyUser }),
      attend: (attendant) => work.attend(attendant),
      find: (userId, by) => {
        const { store } = spaceOf(userId);
        if (store === null) return work.find(userId, by);
        return this.#stores.get(store)?.work.find(userId, by) ?? valueScript(null);
      },
      locate: async (userId, key) => this.#pick(userId).work.locate(userId, key),
      create: async (scope, init, act) => this.#pick(scope.userId ?? null).work.create(scope, init, act),
      watch: (listener) => {
        this.#listeners.add(listener);
        const all = [work, ...[...this.#stores.values()].map((each) => each.work)];
        const stops = all.map((each) => each.watch(listener));
        return () => {
          this.#listeners.delete(listener);
          for (const stop of stops) stop();
        };
      },
      users: () => work.users(),
      erase: () => work.erase(),
      settle: async () => {
        await work.settle();
        for (const store of this.#stores.values()) await store.work.settle();
      },
    };
  }

  /** Returns a view of a store in which its users have their own IDs. */
  #view(space: SpaceUser): Store {
    const { store, namespace } = space;
    const name = JSON.stringify([store, namespace]);
    const known = this.#views.get(name);
    if (known !== undefined) return known;
    const inSpace = (scope: Scope): Scope => ({
      ...scope,
      ...present({ userId: userInSpace({ userId: scope.userId ?? null, store, namespace }) }),
    });
    const view = {
      ...Object.fromEntries(ports.map((port) => [port, viewOf(this.store[port], inSpace)])),
      purgeUser: (userId: string) => this.store.purgeUser(inSpace({ userId }).userId ?? userId),
      close: async () => undefined,
    } as unknown as Store;
    this.#views.set(name, view);
    this.register(view, { store, namespace });
    return view;
  }
}

const spacesOf = new WeakMap<Store, Pick<Spaces<WorkingStore>, "leave">>();

/** Returns a session's user as shown to hooks and tools, with namespace and store. */
export function contextIn(
  store: Store,
  userId: string | null,
): { userId: string | null; namespace?: readonly string[]; store: Store } {
  return { store, ...(spacesOf.get(store)?.leave(userId) ?? { userId }) };
}

function viewOf<P extends object>(port: P, inSpace: (scope: Scope) => Scope): P {
  return wrapPort(port, (invoke, scope, rest, name) => {
    const listener = rest[0];
    if (name === "subscribe" && typeof listener === "function")
      return invoke(inSpace(scope), (change: unknown) => listener(withPlainUsers(change)));
    return Promise.resolve(invoke(inSpace(scope), ...rest)).then(withPlainUsers);
  });
}

/** Replaces internal user IDs in a result. */
export function withPlainUsers<T>(answer: T): T {
  if (Array.isArray(answer)) return answer.map(withPlainUsers) as T;
  if (!isRecord(answer)) return answer;
  const changed: Record<string, unknown> = {};
  if (typeof answer.userId === "string") changed.userId = spaceOf(answer.userId).userId;
  for (const field of ["session", "sessions", "old", "fresh"])
    if (typeof answer[field] === "object") changed[field] = withPlainUsers(answer[field]);
  return Object.keys(changed).length === 0 ? answer : ({ ...answer, ...changed } as T);
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
