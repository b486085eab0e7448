import fc from "fast-check";
import type { AccessSettings, VisibilitySetting } from "../../src/access/visibility/access-policy.ts";
import type { SessionMeta } from "../../src/entry-store.ts";
import { SkeinError } from "../../src/index.ts";
import type { MemoryStore } from "../../src/store/memory/store.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { scopeOfUser } from "./access.ts";

/** Generators for families of sessions that share words for IDs, labels and spawn IDs, and for policies. */

export interface Member {
  readonly userId: string | null;
  readonly key: string;
  readonly sessionId: string;
  readonly meta: SessionMeta;
  readonly isTrashed: boolean;
}

export const agentIds = ["main", "beta", "gamma"] as const;
export const words = ["x", "y", "z", "v", "w"] as const;

const agentId = fc.constantFrom(...agentIds);
const word = fc.constantFrom(...words);
const rest = fc.oneof(
  fc.constant("main"),
  word.map((id) => `session:${id}`),
  word.map((id) => `cron:${id}`),
  fc.tuple(word, word).map(([parent, spawn]) => `subagent:${parent}:${spawn}`),
);
const key = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(agentId, rest).map(([agent, behind]) => `agent:${agent}:${behind}`) },
  { weight: 1, arbitrary: fc.constantFrom("global", "unknown") },
);

/**
 * The spawner can be any member of the family, including the session itself. Lineages can therefore be cyclic, end in
 * the trash, and cross agents.
 */
export const anyFamily: fc.Arbitrary<readonly Member[]> = fc
  .array(
    fc.record({
      userId: fc.constantFrom(null, null, null, "bob"),
      key,
      sessionId: fc.oneof(word, fc.stringMatching(/^[a-z]{3}$/)),
      label: fc.option(fc.oneof(word, fc.constant("cron:x")), { nil: undefined }),
      archived: fc.boolean(),
      sandboxed: fc.boolean(),
      spawner: fc.option(fc.nat(30), { nil: undefined }),
      isTrashed: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((drawn) =>
    drawn.map(({ userId, key, sessionId, label, archived, sandboxed, spawner, isTrashed }) => {
      const spawnedBy = spawner === undefined ? undefined : drawn[spawner % drawn.length]?.key;
      const meta: SessionMeta = {
        ...(label === undefined ? {} : { label }),
        ...(archived ? { archived } : {}),
        ...(sandboxed ? { sandboxed } : {}),
        ...(spawnedBy === undefined ? {} : { spawnedBy }),
      };
      return { userId, key, sessionId, meta, isTrashed };
    }),
  );

const visibility = fc.constantFrom("self", "tree", "agent", "all" as const);
const setting: fc.Arbitrary<VisibilitySetting> = fc.oneof(
  visibility,
  fc.record({ list: visibility, history: visibility, send: visibility, status: visibility }),
);
const pattern = fc.constantFrom("*", "b*", "*a", ...agentIds);
const entry = fc.oneof(
  pattern,
  fc.tuple(pattern, pattern).map(([from, to]) => `${from} -> ${to}`),
);

export const anySettings: fc.Arbitrary<AccessSettings> = fc
  .record({
    visibility: setting,
    enabled: fc.boolean(),
    allow: fc.array(entry, { maxLength: 3 }),
    agents: fc.dictionary(agentId, fc.record({ visibility: fc.option(setting) }), { maxKeys: 2 }),
  })
  .map(({ visibility, enabled, allow, agents }) => ({
    tools: { sessions: { visibility }, agentToAgent: { enabled, allow } },
    agents,
  }));

/** Creates a store with a family, leaving out members whose name is already taken. Returns the created ones. */
export async function storeWith(
  family: readonly Member[],
): Promise<{ readonly store: MemoryStore; readonly made: readonly Member[] }> {
  const store = createMemoryStore();
  const made: Member[] = [];
  for (const member of family) {
    const { userId, key, sessionId, meta, isTrashed } = member;
    const scope = scopeOfUser(userId);
    try {
      await store.sessions.create(scope, { key, sessionId, cwd: "/", meta });
    } catch (error) {
      if (error instanceof SkeinError && error.code === "conflict") continue;
      throw error;
    }
    if (isTrashed) await store.sessions.remove(scope, sessionId);
    made.push(member);
  }
  return { store, made };
}
