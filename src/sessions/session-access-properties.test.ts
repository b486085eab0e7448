import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accessOver, allOf, askerFrom, within } from "../../test/support/access.ts";
import type { Member } from "../../test/support/access-families.ts";
import { agentIds, anyFamily, anySettings, storeWith, words } from "../../test/support/access-families.ts";
import type { AccessSettings } from "../access/visibility/access-policy.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import type { Asker, SessionAccess } from "./session-access.ts";

const anyAction = fc.constantFrom("list", "history", "send", "status" as const);
const anyScope = fc.constantFrom("per-sender", "global" as const);

async function everybody(store: Pick<Store, "sessions">): Promise<SessionRecord[]> {
  return [...(await allOf(store, null)), ...(await allOf(store, "bob"))];
}

/** Every reference that could name a member of a family, or a session that does not exist. */
function referencesTo(family: readonly Member[], access: SessionAccess, asker: Asker): string[] {
  const keys = family.map(({ key }) => key);
  const names = family.flatMap(({ sessionId, meta }) => [sessionId, meta.label ?? ""]);
  const spawned = words.map((word) => `subagent:${word}`);
  const more = ["current", "main", "global", "unknown", "nobody", "agent:main:session:nobody"];
  return [
    ...new Set([...keys, ...keys.map((key) => access.display(asker, key)), ...names, ...spawned, ...more]),
  ];
}

/**
 * Returns everything that a requester learns about this text: the result, including the result by label, and every rule
 * that was applied.
 */
async function toldOf(access: SessionAccess, asker: Asker, reference: string) {
  const shown = async (options: { label?: { agentId: string } }) => {
    const found = await access.find(asker, reference, "list", options);
    return "session" in found ? found.session.key : found.refusal;
  };
  const labels = await Promise.all(agentIds.map((agentId) => shown({ label: { agentId } })));
  return { found: await shown({}), labels, explained: await access.explain(asker, reference, "list") };
}

describe("access over any family of sessions", () => {
  test("a session is within reach exactly if it is allowed", async () => {
    let [allowed, refused] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        anyFamily,
        anySettings,
        anyAction,
        anyScope,
        async (family, settings, action, scope) => {
          const { store } = await storeWith(family);
          const access = accessOver(store, settings, scope);
          const records = await everybody(store);
          for (const asker of records.flatMap((each) => [
            askerFrom(each),
            { ...askerFrom(each), session: null },
          ])) {
            const own = records.filter(({ userId }) => userId === asker.userId);
            const reach = await access.reach(asker, action);
            const inside = within(reach, own);
            const listed = await allOf(store, asker.userId, { reach });
            expect(new Set(listed.map(({ key }) => key))).toEqual(inside);
            for (const session of records) {
              const isReached = session.userId === asker.userId && inside.has(session.key);
              const isAllowed = (await access.check(asker, session, action)) === null;
              expect({ session: session.key, isReached }).toEqual({
                session: session.key,
                isReached: isAllowed,
              });
              if (isAllowed) allowed++;
              else refused++;
            }
          }
        },
      ),
      { numRuns: 150 },
    );
    expect(Math.min(allowed, refused)).toBeGreaterThan(500);
  });

  test("[ACC4] the answers to a sandboxed asker, or one with visibility self, do not depend on invisible sessions", async () => {
    let hidden = 0;
    await fc.assert(
      fc.asyncProperty(anyFamily, anyFamily, anySettings, fc.nat(), async (family, others, settings, nth) => {
        const first = await storeWith(family);
        const records = await everybody(first.store);
        const session = records[nth % Math.max(1, records.length)];
        if (session === undefined) return;
        const asker = askerFrom(session);
        const selfAlone = {
          tools: { ...settings.tools, sessions: { visibility: "self" } },
          agents: {},
        } as const;
        hidden += await compare(first, others, settings, { ...asker, sandboxed: true });
        hidden += await compare(first, others, settings, { ...asker, sandboxed: true, session: null });
        hidden += await compare(first, others, selfAlone, { ...asker, sandboxed: false });
      }),
      { numRuns: 60 },
    );
    expect(hidden).toBeGreaterThan(500);
  });

  test("a lookup finds only visible sessions, and every visible session is found by its key", async () => {
    await fc.assert(
      fc.asyncProperty(
        anyFamily,
        anySettings,
        anyAction,
        anyScope,
        async (family, settings, action, scope) => {
          const { store, made } = await storeWith(family);
          const access = accessOver(store, settings, scope);
          const records = await everybody(store);
          for (const asker of records.map((each) => askerFrom(each))) {
            for (const reference of referencesTo(made, access, asker)) {
              const found = await access.find(asker, reference, action);
              if (!("session" in found)) continue;
              expect(await access.check(asker, found.session, action)).toBeNull();
            }
            for (const session of records) {
              if ((await access.check(asker, session, action)) !== null) continue;
              const byKey = await access.find(asker, session.key, action);
              expect(byKey).toMatchObject({ session: { uid: session.uid } });
              const short = await access.find(asker, access.display(asker, session.key), action);
              // Only these families have a duplicate spawn ID, and both sessions must then be visible.
              if ("session" in short) expect(short.session.uid).toBe(session.uid);
              else expect(short.refusal.code).toBe("ambiguous");
            }
          }
        },
      ),
      { numRuns: 80 },
    );
  });
});

/**
 * Runs the same query against a store that has the sessions the requester is allowed to see but different hidden ones.
 * Returns the number of hidden sessions.
 */
async function compare(
  { store, made }: Awaited<ReturnType<typeof storeWith>>,
  others: readonly Member[],
  settings: AccessSettings,
  asker: Asker,
): Promise<number> {
  const access = accessOver(store, settings);
  const reach = await access.reach(asker, "list");
  const seen = within(reach, await allOf(store, asker.userId));
  const isSeen = ({ isTrashed, userId, key }: Member) =>
    !isTrashed && userId === asker.userId && seen.has(key);
  const visible = made.filter(isSeen);
  const strangers = others
    .filter(({ key }) => !seen.has(key) && key !== asker.session?.key)
    .map((each) => ({ ...each, meta: { ...each.meta, spawnedBy: "agent:main:session:nobody" } }));
  // The shared sessions are added first, while their names are still free.
  const elsewhere = accessOver((await storeWith([...visible, ...strangers])).store, settings);
  expect(await elsewhere.reach(asker, "list")).toEqual(reach);
  for (const reference of referencesTo([...made, ...strangers], access, asker)) {
    const here = await toldOf(access, asker, reference);
    expect({ reference, told: await toldOf(elsewhere, asker, reference) }).toEqual({ reference, told: here });
  }
  return made.length - visible.length + strangers.length;
}
