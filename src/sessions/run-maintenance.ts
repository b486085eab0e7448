import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { ListedSession, Scope, Store } from "../store/contract.ts";
import type {
  MaintainedSession,
  MaintenanceDecision,
  MaintenanceInput,
  MaintenanceRules,
} from "./maintenance.ts";
import { planMaintenance } from "./maintenance.ts";

export interface MaintenanceWork {
  readonly store: Pick<Store, "sessions">;
  /** Whose sessions; `null` is the unnamed user. */
  readonly users: readonly (string | null)[];
  readonly rules: MaintenanceRules;
  readonly now: number;
  hasOpenRun(session: MaintainedSession): boolean;
  /** Leaves off where it stands; what is done by then stays done. */
  readonly signal?: AbortSignal;
}

export interface MaintenanceReport {
  readonly mode: "warn" | "enforce";
  /** What the rules come to, each with its reason. */
  readonly decisions: readonly MaintenanceDecision[];
  /** Those that were carried out: none unless the mode is `enforce`. */
  readonly done: readonly MaintenanceDecision[];
}

const pageSize = 1000;

/** Decides what is to become of old sessions and, where the rules say `enforce`, does it. */
export async function runMaintenance(work: MaintenanceWork): Promise<MaintenanceReport> {
  return maintain(work, await maintenanceInput(work), present({ signal: work.signal }));
}

/** The same by what was looked at already. `dryRun`: nothing is done, whatever the mode. */
export async function maintain(
  work: Pick<MaintenanceWork, "store">,
  input: MaintenanceInput,
  { dryRun = false, signal }: { readonly dryRun?: boolean; readonly signal?: AbortSignal } = {},
): Promise<MaintenanceReport> {
  const { mode } = input.rules;
  const decisions = planMaintenance(input);
  const done: MaintenanceDecision[] = [];
  if (mode === "warn" || dryRun) return { mode, decisions, done };
  for (const decision of decisions) {
    signal?.throwIfAborted();
    if (await carryOut(work, decision, input).catch(unlessChanged)) done.push(decision);
  }
  return { mode, decisions, done };
}

/** All that the rules look at, of every user. */
export async function maintenanceInput({
  store,
  users,
  rules,
  now,
  hasOpenRun,
  signal,
}: MaintenanceWork): Promise<MaintenanceInput> {
  const sessions: MaintainedSession[] = [];
  const trashed: MaintenanceInput["trashed"][number][] = [];
  for (const user of users) {
    const scope = scopeOf(user);
    for (const archived of [false, true]) {
      for await (const page of pagesOf(store, scope, archived)) {
        signal?.throwIfAborted();
        sessions.push(...page.map(maintained));
      }
    }
    trashed.push(...(await store.sessions.trashed(scope)));
  }
  return { sessions, trashed, rules, now, hasOpenRun };
}

/** `false`: it has changed since, and is decided anew the next time. */
async function carryOut(
  { store }: Pick<MaintenanceWork, "store">,
  { uid, userId, sessionId, action }: MaintenanceDecision,
  { sessions, trashed }: Pick<MaintenanceInput, "sessions" | "trashed">,
): Promise<boolean> {
  const scope = scopeOf(userId);
  if (action === "purge") {
    const removedAt = trashed.find((each) => each.uid === uid)?.removedAt;
    return removedAt !== undefined && store.sessions.purge(scope, sessionId, { ifRemovedAt: removedAt });
  }
  const updatedAt = sessions.find((each) => each.uid === uid)?.updatedAt;
  const now = await store.sessions.get(scope, sessionId);
  if (now === null || now.uid !== uid || updatedAt === undefined) return false;
  // Looked at again where nobody else can write: whoever uses a session keeps it.
  const unused = { ifUpdatedAt: updatedAt };
  if (action === "trash") return store.sessions.remove(scope, sessionId, unused);
  await store.sessions.patch(scope, sessionId, { archived: true }, { ...unused, ifVersion: now.version });
  return true;
}

/** Somebody came first, between our look and our act: that is a change too, and no reason to leave off. */
function unlessChanged(error: unknown): false {
  if (error instanceof SkeinError && ["conflict", "not_found"].includes(error.code)) return false;
  throw error;
}

async function* pagesOf(
  store: MaintenanceWork["store"],
  scope: Scope,
  archived: boolean,
): AsyncGenerator<readonly ListedSession[]> {
  const query = { archived, includeGlobal: true, includeUnknown: true, limit: pageSize };
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await store.sessions.list(scope, cursor === undefined ? query : { ...query, cursor });
    yield page.sessions;
    cursor = page.nextCursor;
  }
}

function maintained({
  uid,
  userId,
  sessionId,
  key,
  updatedAt,
  meta,
  digest,
}: ListedSession): MaintainedSession {
  return { uid, userId, sessionId, key, updatedAt, archived: meta.archived === true, bytes: digest.bytes };
}

function scopeOf(userId: string | null): Scope {
  return userId === null ? {} : { userId };
}
