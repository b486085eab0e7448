import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AccessAction, AccessPolicy, Visibility } from "./access-policy.ts";
import { resolveAccessPolicy } from "./access-policy.ts";
import type { AccessAsker, AccessRule, AccessTarget } from "./decide-access.ts";
import { createTreeCheck, explainAccess } from "./decide-access.ts";

const decideAccess = async (...given: Parameters<typeof explainAccess>) =>
  (await explainAccess(...given)).decision;

const visibilities: readonly Visibility[] = ["self", "tree", "agent", "all"];
const actions: readonly AccessAction[] = ["list", "history", "send", "status"];
const relations = ["self", "child", "grandchild", "stranger", "absent"] as const;
const pairings = ["off", "no list", "allowed", "denied"] as const;

type Relation = (typeof relations)[number];
type Pairing = (typeof pairings)[number];

/** Everything that a decision can depend on. */
interface Situation {
  readonly visibility: Visibility;
  readonly sandboxed: boolean;
  readonly agent: "same" | "other";
  readonly user: "same" | "other";
  readonly relation: Relation;
  readonly action: AccessAction;
  readonly pairing: Pairing;
}

const asker: AccessAsker = { userId: "ann", agentId: "main", key: "agent:main:main" };
const lists: Readonly<Record<Pairing, readonly string[]>> = {
  off: ["main -> other"],
  "no list": [],
  allowed: ["x -> y", "main -> o*"],
  denied: ["other -> main", "main -> x"],
};
const reference = "the one";
const helperKey = "agent:helper:subagent:s:1";

function policyOf({ visibility, sandboxed, pairing }: Situation): AccessPolicy {
  const tools = {
    sessions: { visibility },
    agentToAgent: { enabled: pairing !== "off", allow: lists[pairing] },
  };
  return resolveAccessPolicy({ tools, agents: {} }, { agentId: "main", sandboxed });
}

/** Creates a session for the situation. Another user's session can have the same key and lineage. */
function targetOf({ agent, user, relation }: Situation): AccessTarget | null {
  if (relation === "absent") return null;
  const agentId = agent === "same" ? "main" : "other";
  const spawners = { self: null, child: asker.key, grandchild: helperKey, stranger: "agent:main:cron:x" };
  return {
    userId: user === "same" ? "ann" : "bob",
    agentId,
    key: relation === "self" ? "agent:main:main" : `agent:${agentId}:session:${relation}`,
    spawnedBy: spawners[relation],
  };
}

const lineage = createTreeCheck((key) => (key === helperKey ? asker.key : null));
const ports = { reference, isInTree: lineage };
const ask = (situation: Situation, target = targetOf(situation)) =>
  explainAccess(asker, target, situation.action, policyOf(situation), ports);

/** The same rules, stated independently of their order: exactly when each decision applies. */
const statements: Readonly<Record<string, (situation: Situation) => boolean>> = {
  allowed: (s) => isThere(s) && (isOwn(s) || (isOpen(s) && mayReach(s))),
  self_visibility_restricted: (s) => s.visibility === "self" && !(isThere(s) && s.relation === "self"),
  sandbox_restricted: (s) => s.sandboxed && s.visibility !== "self" && !(isThere(s) && isFamily(s)),
  not_found: (s) => isOpen(s) && !isThere(s),
  tree_visibility_restricted: (s) => isOpen(s) && isStranger(s) && s.visibility === "tree",
  cross_agent_visibility_restricted: (s) => isOpen(s) && isForeign(s) && s.visibility === "agent",
  agent_to_agent_disabled: (s) => isOpen(s) && isForeign(s) && s.visibility === "all" && s.pairing === "off",
  agent_to_agent_not_allowed: (s) =>
    isOpen(s) && isForeign(s) && s.visibility === "all" && s.pairing === "denied",
};
const isThere = (s: Situation) => s.user === "same" && s.relation !== "absent";
const isFamily = (s: Situation) => ["self", "child", "grandchild"].includes(s.relation);
const isOwn = (s: Situation) => s.relation === "self" || (isFamily(s) && s.visibility !== "self");
const isOpen = (s: Situation) => !s.sandboxed && s.visibility !== "self";
const isStranger = (s: Situation) => isThere(s) && s.relation === "stranger";
const isForeign = (s: Situation) => isStranger(s) && s.agent === "other";
const mayReach = (s: Situation) =>
  s.agent === "same"
    ? s.visibility === "agent" || s.visibility === "all"
    : s.visibility === "all" && (s.pairing === "no list" || s.pairing === "allowed");

/** Returns all possible situations. The caller's own session always belongs to its own agent. */
function everySituation(): Situation[] {
  return visibilities
    .flatMap((visibility) => [true, false].map((sandboxed) => ({ visibility, sandboxed })))
    .flatMap((s) => (["same", "other"] as const).map((agent) => ({ ...s, agent })))
    .flatMap((s) => (["same", "other"] as const).map((user) => ({ ...s, user })))
    .flatMap((s) => relations.map((relation) => ({ ...s, relation })))
    .flatMap((s) => actions.map((action) => ({ ...s, action })))
    .flatMap((s) => pairings.map((pairing) => ({ ...s, pairing })))
    .filter((s) => !(s.relation === "self" && s.agent === "other"));
}

describe("visibility", () => {
  test("[ACC1] decides every combination as the rules state", async () => {
    const situations = everySituation();
    expect(situations).toHaveLength(4 * 2 * 2 * 2 * 5 * 4 * 4 - 4 * 2 * 2 * 4 * 4);
    const answers = new Set<string>();
    for (const situation of situations) {
      const { decision } = await ask(situation);
      const given = decision.allowed ? "allowed" : decision.code;
      const expected = Object.keys(statements).filter((answer) => statements[answer]?.(situation));
      expect({ situation, answers: [given] }).toEqual({ situation, answers: expected });
      answers.add(given);
    }
    expect(answers).toEqual(new Set(Object.keys(statements)));
  });

  test("[ACC1] an asker without a session has no tree, and no session is its own", async () => {
    const nobody = { ...asker, key: null };
    const [base] = everySituation() as [Situation];
    const decide = (relation: Relation, visibility: Visibility) => {
      const situation: Situation = { ...base, sandboxed: false, user: "same", relation, visibility };
      return decideAccess(nobody, targetOf(situation), "send", policyOf(situation), {
        reference,
        isInTree: () => true,
      });
    };
    expect(await decide("self", "tree")).toMatchObject({ code: "tree_visibility_restricted" });
    expect(await decide("child", "tree")).toMatchObject({ code: "tree_visibility_restricted" });
    expect(await decide("child", "agent")).toEqual({ allowed: true });
  });

  test("[ACC1] an unknown visibility allows nothing, and agent IDs are compared without case", async () => {
    const stranger: AccessTarget = {
      userId: "ann",
      agentId: "main",
      key: "agent:main:cron:x",
      spawnedBy: null,
    };
    const policy = policyOf({ ...(everySituation()[0] as Situation), sandboxed: false, visibility: "agent" });
    const wrong = { ...policy, visibility: { ...policy.visibility, send: "everything" as Visibility } };
    expect(await decideAccess(asker, stranger, "send", wrong, ports)).toMatchObject({
      code: "tree_visibility_restricted",
    });
    const capital = { ...asker, agentId: "MAIN" };
    expect(await decideAccess(capital, stranger, "send", policy, ports)).toEqual({ allowed: true });
  });
});

describe("the reason for a denial", () => {
  test.each([
    ["history", "Session history", "history", "access"],
    ["send", "Session send", "messaging", "sends"],
    ["status", "Session status", "status", "access"],
    ["list", "Session list", "listing", "visibility"],
  ] as const)("the texts for %s", async (action, subject, between, allows) => {
    const texts = new Map<string, string>();
    for (const situation of everySituation().filter((each) => each.action === action)) {
      const { decision } = await ask(situation);
      if (decision.allowed) continue;
      expect(texts.get(decision.code) ?? decision.error).toBe(decision.error);
      texts.set(decision.code, decision.error);
      const status = decision.code === "not_found" ? "error" : "forbidden";
      expect(decision).toMatchObject({ status, retryable: false });
    }
    expect(Object.fromEntries(texts)).toEqual({
      self_visibility_restricted: `${subject} visibility is restricted to the current session (tools.sessions.visibility=self).`,
      tree_visibility_restricted: `${subject} visibility is restricted to the current session tree (tools.sessions.visibility=tree).`,
      cross_agent_visibility_restricted: `${subject} visibility is restricted. Set tools.sessions.visibility=all to allow cross-agent access.`,
      agent_to_agent_disabled: `Agent-to-agent ${between} is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent ${allows}.`,
      agent_to_agent_not_allowed: `Agent-to-agent ${between} denied by tools.agentToAgent.allow.`,
      sandbox_restricted: "Session not visible from this sandboxed agent session.",
      not_found: "Session not found: the one (use the full sessionKey from sessions_list)",
    });
  });

  const open: Situation = {
    visibility: "tree",
    sandboxed: false,
    agent: "same",
    user: "same",
    relation: "absent",
    action: "history",
    pairing: "off",
  };

  test("a reference from outside cannot break a line or flood an answer", async () => {
    const hostile = { ...ports, reference: `a\n\u001b[2J${"x".repeat(9000)}` };
    const decision = await decideAccess(asker, null, "send", policyOf(open), hostile);
    const error = decision.allowed ? "" : decision.error;
    expect(error).toContain("Session not found: a\\u000a\\u001b[2Jxxx");
    expect(error.length).toBeLessThan(400);
  });

  test("a failed lookup is not a denial for any asker", async () => {
    for (const visibility of visibilities) {
      for (const sandboxed of [true, false]) {
        const policy = policyOf({ ...open, visibility, sandboxed });
        const failed = { failed: new Error("the disk is gone") };
        expect(await decideAccess(asker, failed, "send", policy, ports)).toEqual({
          allowed: false,
          status: "error",
          code: "lookup_failed",
          error: "Session lookup failed: the disk is gone (nothing was decided; try again)",
          retryable: true,
        });
      }
    }
  });

  test.each([
    [
      "thrown",
      () => {
        throw new Error("gone");
      },
    ],
    ["rejected", () => Promise.reject(new Error("busy"))],
  ])("a lineage that cannot be read is not a denial: %s", async (_, isInTree) => {
    const stranger = targetOf({ ...open, relation: "stranger" });
    const policy = policyOf(open);
    const { decision, steps } = await explainAccess(asker, stranger, "send", policy, { reference, isInTree });
    expect(decision).toMatchObject({ code: "lookup_failed", retryable: true });
    expect(steps.at(-1)).toMatchObject({ rule: "in_tree", outcome: "refuse" });
    // Decisions that do not need the lineage are made without it.
    const own = targetOf({ ...open, relation: "self" });
    expect(await decideAccess(asker, own, "send", policy, { reference, isInTree })).toEqual({
      allowed: true,
    });
  });
});

describe("hidden information", () => {
  const anySituation = fc.constantFrom(...everySituation());
  const anyTarget: fc.Arbitrary<AccessTarget> = fc.record({
    userId: fc.constantFrom("ann", "bob", null),
    agentId: fc.constantFrom("main", "other", "x"),
    key: fc.constantFrom("agent:main:main", "agent:main:cron:x", "agent:other:main", "global"),
    spawnedBy: fc.constantFrom("agent:main:main", helperKey, "agent:x:main", null),
  });

  test("[ACC3] another user's session looks like one that does not exist, also in the explanation", async () => {
    await fc.assert(
      fc.asyncProperty(anySituation, anyTarget, async (situation, target) => {
        fc.pre(target.userId !== asker.userId);
        expect(await ask(situation, target)).toEqual(await ask(situation, null));
      }),
    );
  });

  test("[ACC3] the unnamed user is a separate user", async () => {
    const situation: Situation = {
      ...(everySituation()[0] as Situation),
      visibility: "all",
      sandboxed: false,
    };
    const unnamed = { ...asker, userId: null };
    const target: AccessTarget = { userId: "ann", agentId: "main", key: "agent:main:main", spawnedBy: null };
    const decide = (who: AccessAsker, whom: AccessTarget) =>
      decideAccess(who, whom, "list", policyOf(situation), ports);
    expect(await decide(unnamed, target)).toMatchObject({ code: "not_found" });
    expect(await decide(asker, { ...target, userId: null })).toMatchObject({ code: "not_found" });
    expect(await decide(unnamed, { ...target, userId: null })).toEqual({ allowed: true });
  });

  test("[ACC4] a sandboxed asker learns nothing about sessions outside its tree, also in the explanation", async () => {
    await fc.assert(
      fc.asyncProperty(anySituation, anyTarget, async (any, target) => {
        const situation = { ...any, sandboxed: true };
        const isInside =
          target.userId === asker.userId &&
          (target.key === asker.key || [asker.key, helperKey].includes(target.spawnedBy ?? ""));
        fc.pre(!isInside);
        expect(await ask(situation, target)).toEqual(await ask(situation, null));
      }),
    );
  });

  test("[ACC4] allowed pairs of agents reveal nothing to a sandboxed asker", async () => {
    for (const situation of everySituation().filter((each) => each.sandboxed)) {
      const other = { ...situation, pairing: "no list" } as const;
      expect(await ask(situation)).toEqual(await ask(other));
    }
  });
});

describe("the explanation", () => {
  const order: readonly AccessRule[] = [
    "lookup",
    "itself",
    "self_visibility",
    "in_tree",
    "sandboxed",
    "exists",
    "tree_visibility",
    "same_agent",
    "agent_visibility",
    "agent_to_agent_enabled",
    "agent_to_agent_allowed",
  ];

  test("lists every evaluated rule in order, with the decision last", async () => {
    for (const situation of everySituation()) {
      const { decision, steps } = await ask(situation);
      expect(steps.map(({ rule }) => rule)).toEqual(order.slice(0, steps.length));
      const last = steps.at(-1);
      expect(steps.slice(0, -1).every(({ outcome }) => outcome === "pass")).toBe(true);
      expect(last?.outcome).toBe(decision.allowed ? "allow" : "refuse");
      if (!decision.allowed) expect(last?.reason).toBe(decision.error);
      const target = targetOf(situation);
      const decided = await decideAccess(asker, target, situation.action, policyOf(situation), ports);
      expect(decided).toEqual(decision);
    }
  });

  test("names the setting and the entry that allowed the access", async () => {
    const situation: Situation = {
      visibility: "all",
      sandboxed: false,
      agent: "other",
      user: "same",
      relation: "stranger",
      action: "send",
      pairing: "allowed",
    };
    const { steps } = await ask(situation);
    expect(steps.map(({ reason }) => reason)).toEqual([
      "The lookup succeeded.",
      "It is not the requester's own session.",
      "Visibility for send is all.",
      "It is not in the requester's tree.",
      "The requester is not sandboxed.",
      "The session exists.",
      "Visibility for send is all.",
      "It belongs to another agent.",
      "Visibility for send is all.",
      "tools.agentToAgent.enabled is true.",
      'Agent main is allowed to reach other: tools.agentToAgent.allow has "main -> o*".',
    ]);
  });
});

type Spawners = Readonly<Record<string, string>>;

function targetIn(spawners: Spawners, key: string): AccessTarget {
  return { userId: "ann", agentId: "main", key, spawnedBy: spawners[key] ?? null };
}

const within = (spawners: Spawners, ancestor: string, key: string, most?: number) =>
  createTreeCheck((each) => spawners[each] ?? null, most)(ancestor, targetIn(spawners, key));

describe("the tree of an asker", () => {
  const family: Spawners = {
    "agent:a:c": "agent:main:m",
    "agent:b:g": "agent:a:c",
    "agent:main:h": "agent:b:g",
  };

  test.each([
    ["agent:a:c", true],
    ["agent:b:g", true],
    ["agent:main:h", true],
    ["agent:main:m", false],
    ["agent:main:other", false],
  ])("%s: %s, at any depth and under any agent", async (key, expected) => {
    expect(await within(family, "agent:main:m", key)).toBe(expected);
  });

  test("a child's tree contains neither its parent nor its siblings", async () => {
    const both: Spawners = { ...family, sister: "agent:main:m" };
    expect(await within(both, "agent:a:c", "agent:main:m")).toBe(false);
    expect(await within(both, "agent:a:c", "sister")).toBe(false);
    expect(await within(both, "agent:a:c", "agent:main:h")).toBe(true);
  });

  test("a cyclic lineage terminates and belongs only to its members", async () => {
    const round: Spawners = { a: "b", b: "c", c: "a", d: "a", e: "e" };
    expect(await within(round, "x", "a")).toBe(false);
    expect(await within(round, "x", "d")).toBe(false);
    expect(await within(round, "x", "e")).toBe(false);
    expect(await within(round, "c", "d")).toBe(true);
  });

  test("an endless lineage belongs to no one, and the number of lookups is bounded", async () => {
    let lookups = 0;
    const endless = createTreeCheck(async (key) => `${lookups++}-${key.slice(0, 10)}`);
    expect(await endless("x", { userId: null, agentId: "a", key: "k", spawnedBy: "p" })).toBe(false);
    expect(lookups).toBeLessThan(100);
    const chain = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`${n + 1}`, `${n}`]));
    expect(await within(chain, "0", "100")).toBe(true);
    expect(await within(chain, "0", "101")).toBe(false);
    expect(await within(chain, "0", "200", 500)).toBe(true);
  });

  test("contains exactly the descendants, for any links", async () => {
    const key = fc.constantFrom("a", "b", "c", "d", "e", "f");
    const closure = (spawners: Spawners, from: string) => {
      const found = new Set<string>();
      for (let turn = 0; turn < 6; turn++)
        for (const each of [from, ...found]) if (spawners[each] !== undefined) found.add(spawners[each]);
      return found;
    };
    await fc.assert(
      fc.asyncProperty(fc.dictionary(key, key), key, key, async (spawners, ancestor, target) => {
        fc.pre(ancestor !== target);
        expect(await within(spawners, ancestor, target)).toBe(closure(spawners, target).has(ancestor));
      }),
    );
  });

  test("rethrows a failed lookup", async () => {
    const failing = createTreeCheck(() => Promise.reject(new Error("busy")));
    const child = { userId: null, agentId: "a", key: "k", spawnedBy: "x" };
    expect(await failing("x", child)).toBe(true);
    await expect(failing("y", child)).rejects.toThrow("busy");
  });
});
