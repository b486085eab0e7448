import { setImmediate as nextTurn } from "node:timers/promises";
import type { AccessAction } from "../access/visibility/access-policy.ts";
import { createTreeCheck, explainAccess } from "../access/visibility/decide-access.ts";
import type { AccessMatrixPayload } from "../protocol/directory.ts";
import type { SessionRecord } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";
import { askerOf } from "./session-access.ts";

/**
 * Decides each action for every pair of sessions. All sessions must belong to the same user. Each ancestor is looked up
 * only once.
 */
export async function readAccessMatrix(
  app: Pick<App, "access" | "store" | "agents" | "config">,
  sessions: readonly SessionRecord[],
  actions: readonly AccessAction[],
): Promise<Pick<AccessMatrixPayload, "allowed" | "rules">> {
  const isInTree = createTreeCheck(spawnerLookup(app, sessions));
  const allowed: AccessMatrixPayload["allowed"] = [];
  const rules: AccessMatrixPayload["rules"] = [];
  for (const asker of sessions) {
    const { userId, agentId, key } = asker;
    const policy = app.access.policyFor(askerOf(app, asker));
    const [cells, deciding]: [AccessAction[][], AccessMatrixPayload["rules"][number]] = [[], []];
    for (const target of sessions) {
      const about = { ...refOf(target), spawnedBy: target.meta.spawnedBy ?? null };
      const ports = { reference: target.key, isInTree };
      const found = new Map<AccessAction, string>();
      const may: AccessAction[] = [];
      for (const action of actions) {
        const { decision, steps } = await explainAccess(
          { userId, agentId, key },
          about,
          action,
          policy,
          ports,
        );
        if (decision.allowed) may.push(action);
        found.set(action, steps.at(-1)?.rule ?? "");
      }
      cells.push(may);
      deciding.push(Object.fromEntries(found));
    }
    allowed.push(cells);
    rules.push(deciding);
    // Lets other calls run, so that a large matrix does not delay them.
    await nextTurn();
  }
  return { allowed, rules };
}

function refOf({ userId, agentId, key }: SessionRecord) {
  return { userId, agentId, key };
}

function spawnerLookup(
  { store }: Pick<App, "store">,
  sessions: readonly SessionRecord[],
): (key: string) => Promise<string | null> {
  const known = new Map(sessions.map(({ key, meta }) => [key, Promise.resolve(meta.spawnedBy ?? null)]));
  const [first] = sessions;
  const read = async (key: string): Promise<string | null> => {
    if (first === undefined) return null;
    const { agentId: _, ...scope } = scopeOfSession(first);
    const [record] = await store.sessions.find(scope, { by: "key", key });
    return record?.meta.spawnedBy ?? null;
  };
  return (key) => {
    const spawner = known.get(key) ?? read(key);
    known.set(key, spawner);
    return spawner;
  };
}
