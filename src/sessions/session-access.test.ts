import { beforeAll, describe, expect, test } from "vitest";
import { accessOver, askerFrom, within } from "../../test/support/access.ts";
import type { AccessAction, AccessSettings, Visibility } from "../access/visibility/access-policy.ts";
import { accessActions } from "../access/visibility/access-policy.ts";
import { displayKey } from "../core/references.ts";
import type { SessionMeta, SessionRecord } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";

const visibilities = ["self", "tree", "agent", "all"] as const;
const relations = ["self", "child", "grandchild", "stranger", "absent"] as const;
const pairings = [
  "off",
  "every pair",
  "this pair",
  "by a pattern",
  "bare",
  "the other way",
  "others",
] as const;
const ways = ["key", "display key", "session id", "label", "label of an agent"] as const;

/** Everything that a decision can depend on. */
interface Situation {
  readonly visibility: Visibility;
  readonly sandboxed: boolean;
  readonly agent: "same" | "other";
  readonly user: "same" | "other";
  readonly relation: (typeof relations)[number];
  readonly action: AccessAction;
  readonly pairing: (typeof pairings)[number];
}

const everySituation: readonly Situation[] = visibilities
  .flatMap((visibility) => [true, false].map((sandboxed) => ({ visibility, sandboxed })))
  .flatMap((s) => (["same", "other"] as const).map((agent) => ({ ...s, agent })))
  .flatMap((s) => (["same", "other"] as const).map((user) => ({ ...s, user })))
  .flatMap((s) => relations.map((relation) => ({ ...s, relation })))
  .flatMap((s) => accessActions.map((action) => ({ ...s, action })))
  .flatMap((s) => pairings.map((pairing) => ({ ...s, pairing })))
  // A requester's own session belongs to its own agent and user.
  .filter((s) => s.relation !== "self" || (s.agent === "same" && s.user === "same"));

const lists: Readonly<Record<Situation["pairing"], readonly string[]>> = {
  off: ["main -> other"],
  "every pair": [],
  "this pair": ["x -> y", "main -> other"],
  "by a pattern": ["m* -> *"],
  bare: ["other", "main"],
  "the other way": ["other -> main"],
  others: ["main -> x", "main"],
};

/** The same rules, written independently from the specification. */
function expected({ visibility, sandboxed, agent, user, relation, action, pairing }: Situation): string {
  const isThere = relation !== "absent" && user === "same";
  const isSpawned = isThere && (relation === "child" || relation === "grandchild");
  const mayPair = ["every pair", "this pair", "by a pattern", "bare"].includes(pairing);
  const subject = `Session ${action}`;
  const between = { list: "listing", history: "history", send: "messaging", status: "status" }[action];
  const wanted = { list: "visibility", history: "access", send: "sends", status: "access" }[action];
  if (isThere && relation === "self") return "allowed";
  if (visibility === "self")
    return `${subject} visibility is restricted to the current session (tools.sessions.visibility=self).`;
  if (isSpawned) return "allowed";
  if (sandboxed) return "Session not visible from this sandboxed agent session.";
  if (!isThere) return "Session not found: <x> (use the full sessionKey from sessions_list)";
  if (visibility === "tree")
    return `${subject} visibility is restricted to the current session tree (tools.sessions.visibility=tree).`;
  if (agent === "same") return "allowed";
  if (visibility === "agent")
    return `${subject} visibility is restricted. Set tools.sessions.visibility=all to allow cross-agent access.`;
  if (pairing === "off")
    return `Agent-to-agent ${between} is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent ${wanted}.`;
  return mayPair ? "allowed" : `Agent-to-agent ${between} denied by tools.agentToAgent.allow.`;
}

const nameOf = ({ relation, agent, user }: Situation) => `${relation}-${agent}-${user}`;
const store = createMemoryStore();
const known = new Map<string, SessionRecord>();
const own = "agent:main:session:me";
const helper = "agent:helper:subagent:me:h";

beforeAll(async () => {
  const create = async (userId: string, key: string, sessionId: string, meta: SessionMeta) => {
    known.set(sessionId, await store.sessions.create({ userId }, { key, sessionId, cwd: "/", meta }));
  };
  await create("ann", own, "self-same-same", { label: "label self-same-same" });
  await create("ann", helper, "h", { spawnedBy: own });
  // According to their keys, Bob's sessions have the same lineage.
  await create("bob", own, "bob-me", {});
  await create("bob", helper, "bob-h", { spawnedBy: own });
  for (const [userId, user] of [
    ["ann", "same"],
    ["bob", "other"],
  ] as const) {
    for (const [agentId, agent] of [
      ["main", "same"],
      ["other", "other"],
    ] as const) {
      const made = (relation: string) => ({ id: `${relation}-${agent}-${user}`, agentId });
      const child = made("child");
      const meta = (id: string, more: SessionMeta = {}) => ({ label: `label ${id}`, ...more });
      await create(
        userId,
        `agent:${agentId}:subagent:me:${child.id}`,
        child.id,
        meta(child.id, { spawnedBy: own }),
      );
      const below = made("grandchild");
      const byHelper = meta(below.id, { spawnedBy: helper });
      await create(userId, `agent:${agentId}:subagent:h:${below.id}`, below.id, byHelper);
      const stranger = made("stranger");
      await create(userId, `agent:${agentId}:cron:${stranger.id}`, stranger.id, meta(stranger.id));
    }
  }
});

function settingsOf({ visibility, pairing }: Situation): AccessSettings {
  const agentToAgent = { enabled: pairing !== "off", allow: lists[pairing] };
  return { tools: { sessions: { visibility }, agentToAgent }, agents: {} };
}

/** Returns the reference that the requester writes, in each possible form. */
function referenceTo(situation: Situation, way: (typeof ways)[number]): string {
  const { relation, agent } = situation;
  const name = nameOf(situation);
  const agentId = agent === "same" ? "main" : "other";
  const key = known.get(name)?.key ?? `agent:${agentId}:${relation}:${name}`;
  if (way === "key") return key;
  if (way === "display key") return displayKey(key, { agentId: "main", key: own });
  return way === "session id" ? name : `label ${name}`;
}

describe("visibility over a store", () => {
  test("[ACC1] every combination, however the session is named, is decided as the rules state", async () => {
    expect(everySituation).toHaveLength(4 * 2 * 4 * 7 * (4 * 4 + 1));
    const asker = askerFrom(known.get("self-same-same") as SessionRecord);
    const answers = new Set<string>();
    for (const situation of everySituation) {
      const access = accessOver(store, settingsOf(situation));
      const who = { ...asker, sandboxed: situation.sandboxed };
      for (const way of ways) {
        const reference = referenceTo(situation, way);
        const label = { agentId: situation.agent === "same" ? "main" : "other" };
        // A label without an agent refers to the requester's own agent.
        if (way === "label" && situation.agent === "other") continue;
        const options = way === "label of an agent" ? { label } : {};
        const found = await access.find(who, reference, situation.action, options);
        const given = "session" in found ? "allowed" : found.refusal.error.replace(reference, "<x>");
        expect({ situation, way, given }).toEqual({ situation, way, given: expected(situation) });
        if ("session" in found) expect(found.session.sessionId).toBe(nameOf(situation));
        answers.add(given);
      }
    }
    expect(answers).toHaveLength(3 + 4 * 5);
  });

  test("[ACC1] a known session gives the same answer as a lookup, and an explanation the same as the decision", async () => {
    const asker = askerFrom(known.get("self-same-same") as SessionRecord);
    for (const situation of everySituation.filter(({ relation }) => relation !== "absent")) {
      const access = accessOver(store, settingsOf(situation));
      const who = { ...asker, sandboxed: situation.sandboxed };
      const record = known.get(nameOf(situation)) as SessionRecord;
      const { action } = situation;
      const refusal = await access.check(who, record, action);
      const told = refusal?.error.replace(record.key, "<x>") ?? "allowed";
      expect({ situation, told }).toEqual({ situation, told: expected(situation) });
      const { decision, steps } = await access.explain(who, record.key, action);
      expect({ situation, decision }).toEqual({ situation, decision: refusal ?? { allowed: true } });
      expect(steps.at(-1)?.outcome).toBe(decision.allowed ? "allow" : "refuse");
    }
  });

  test("the reach of an asker equals the individual decisions", async () => {
    const asker = askerFrom(known.get("self-same-same") as SessionRecord);
    const anns = [...known.values()].filter(({ userId }) => userId === "ann");
    for (const situation of everySituation.filter(({ relation }) => relation !== "absent")) {
      const access = accessOver(store, settingsOf(situation));
      const reach = await access.reach({ ...asker, sandboxed: situation.sandboxed }, situation.action);
      const isWithin = within(reach, anns).has(known.get(nameOf(situation))?.key ?? "");
      const isReached = isWithin && situation.user === "same";
      expect({ situation, isReached }).toEqual({ situation, isReached: expected(situation) === "allowed" });
    }
  });
});
