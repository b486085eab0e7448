import { describe, expect, test } from "vitest";
import { accessOver, askerFrom } from "../../test/support/access.ts";
import { fakeApp } from "../../test/support/fake-app.ts";
import type { AccessSettings, VisibilitySetting } from "../access/visibility/access-policy.ts";
import type { SessionMeta, SessionRecord } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { Found } from "./session-access.ts";
import { createSessionAccess, isSandboxed, reachBy } from "./session-access.ts";

const settingsFor = (
  visibility: VisibilitySetting,
  allow: readonly string[] | null = null,
): AccessSettings => ({
  tools: { sessions: { visibility }, agentToAgent: { enabled: allow !== null, allow: allow ?? [] } },
  agents: {},
});
const told = (found: Found) => ("session" in found ? found.session.sessionId : found.refusal.code);

/** Returns a store and a function that adds sessions for the unnamed user. */
function family() {
  const store = createMemoryStore();
  const add = (key: string, sessionId: string, meta: SessionMeta = {}): Promise<SessionRecord> =>
    store.sessions.create({}, { key, sessionId, cwd: "/", meta });
  return { store, add };
}

describe("existence", () => {
  test("[ACC3] a session in the trash does not exist, nor do those that depend on it", async () => {
    const { store, add } = family();
    const asker = askerFrom(await add("agent:main:main", "me"));
    await add("agent:main:subagent:me:c", "child", { spawnedBy: "agent:main:main" });
    await add("agent:main:subagent:child:g", "grandchild", { spawnedBy: "agent:main:subagent:me:c" });
    const access = accessOver(store, settingsFor("tree"));
    expect(told(await access.find(asker, "grandchild", "send"))).toBe("grandchild");
    await store.sessions.remove({}, "child");
    expect(told(await access.find(asker, "child", "send"))).toBe("not_found");
    expect(told(await access.find(asker, "grandchild", "send"))).toBe("tree_visibility_restricted");
  });

  test("[ACC3] another user's session does not exist, even with the asker's own key", async () => {
    const { store, add } = family();
    const asker = askerFrom(await add("agent:main:main", "me"));
    const hers = await store.sessions.create(
      { userId: "ann" },
      { key: "agent:main:main", sessionId: "hers", cwd: "/", meta: { label: "plan" } },
    );
    const access = accessOver(store, settingsFor("all", []));
    for (const reference of ["hers", "plan"])
      expect(told(await access.find(asker, reference, "history"))).toBe("not_found");
    expect(await access.check(asker, hers, "history")).toMatchObject({ code: "not_found" });
    // A requester that claims another user's session has no session and cannot reach that user's family.
    const mixed = { ...asker, session: hers };
    expect(await access.reach(mixed, "list")).toEqual({ treeOf: null, agentIds: ["main"] });
    expect(told(await access.find(mixed, "current", "list"))).toBe("not_found");
  });

  test("[ACC3] `unknown` never exists, not even for itself", async () => {
    const { store, add } = family();
    const unknown = await add("unknown", "lost", { label: "lost label" });
    const access = accessOver(store, settingsFor("all", []));
    const asker = askerFrom(unknown);
    for (const reference of ["unknown", "lost", "lost label", "current"])
      expect(told(await access.find(asker, reference, "status"))).toBe("not_found");
    expect(await access.check(asker, unknown, "status")).toMatchObject({ code: "not_found" });
    expect((await access.reach(asker, "status")).treeOf).toBeNull();
  });

  test("[ACC3] `global` is main if all share it, and belongs to its agent", async () => {
    const { store, add } = family();
    const shared = await add("global", "shared");
    const [own, other] = [await add("agent:main:cron:x", "own"), await add("agent:beta:cron:x", "other")];
    const ask = async (session: SessionRecord, settings: AccessSettings) =>
      told(await accessOver(store, settings, "global").find(askerFrom(session), "main", "send"));
    expect(await ask(own, settingsFor("agent"))).toBe("shared");
    expect(await ask(other, settingsFor("agent"))).toBe("cross_agent_visibility_restricted");
    expect(await ask(other, settingsFor("all", ["beta -> main"]))).toBe("shared");
    expect(await ask(shared, settingsFor("self"))).toBe("shared");
    const access = accessOver(store, settingsFor("tree"), "global");
    expect(access.display(askerFrom(other), "global")).toBe("main");
  });
});

describe("resolving a reference", () => {
  test("an invisible session does not hide a visible one", async () => {
    const { store, add } = family();
    const asker = askerFrom(await add("agent:main:main", "me"));
    const child = { spawnedBy: "agent:main:main" };
    await add("agent:beta:session:plan", "plan");
    await add("agent:main:subagent:me:c", "child", { ...child, label: "plan" });
    const access = accessOver(store, settingsFor({ list: "tree", send: "all", history: "tree" }, []));
    expect(told(await access.find(asker, "plan", "list"))).toBe("child");
    expect(told(await access.find({ ...asker, sandboxed: true }, "plan", "send"))).toBe("child");
    // If the requester is allowed to see both, the order of references decides.
    expect(told(await access.find(asker, "plan", "send"))).toBe("plan");
  });

  test("several matches are ambiguous, and only the visible ones are named", async () => {
    const { store, add } = family();
    const asker = askerFrom(await add("agent:main:main", "me"));
    for (const [agentId, parent] of [
      ["main", "p1"],
      ["main", "p2"],
      ["beta", "p3"],
    ] as const)
      await add(`agent:${agentId}:subagent:${parent}:twin`, `${parent}-twin`);
    const find = (settings: AccessSettings) =>
      accessOver(store, settings).find(asker, "subagent:twin", "history");
    expect(await find(settingsFor("agent"))).toEqual({
      refusal: {
        allowed: false,
        status: "error",
        code: "ambiguous",
        error:
          "Session reference is ambiguous: subagent:twin matches agent:main:subagent:p1:twin, " +
          "agent:main:subagent:p2:twin (use the full sessionKey of one of them)",
        retryable: false,
      },
    });
    expect(told(await find(settingsFor("tree")))).toBe("not_found");
    expect(told(await find(settingsFor("self")))).toBe("self_visibility_restricted");
    const access = accessOver(store, settingsFor("agent"));
    const { decision, steps } = await access.explain(asker, "subagent:twin", "history");
    expect(decision).toMatchObject({ code: "ambiguous" });
    expect(steps).toMatchObject([{ rule: "lookup", outcome: "refuse" }]);
    await store.sessions.remove({}, "p1-twin");
    expect(told(await find(settingsFor("agent")))).toBe("p2-twin");
  });

  test("of many candidates, the first few are named", async () => {
    const { store, add } = family();
    const asker = askerFrom(await add("agent:main:main", "me"));
    for (const index of [1, 2, 3, 4, 5, 6, 7]) await add(`agent:main:subagent:p${index}:twin`, `t${index}`);
    const found = await accessOver(store, settingsFor("agent")).find(asker, "subagent:twin", "send");
    expect(found).toMatchObject({ refusal: { error: expect.stringContaining(":p5:twin and 2 more (") } });
  });

  test("a label of an agent is looked up only as a label", async () => {
    const { store, add } = family();
    const asker = askerFrom(await add("agent:main:main", "me"));
    await add("agent:main:session:plan", "plan", { label: "other plan" });
    await add("agent:beta:session:b", "b", { label: "plan" });
    const access = accessOver(store, settingsFor("all", []));
    const find = (label: string, agentId: string) =>
      access.find(asker, label, "send", { label: { agentId } });
    expect(told(await find("plan", "beta"))).toBe("b");
    expect(told(await find("plan", "BETA"))).toBe("b");
    for (const [label, agentId] of [
      ["plan", "main"],
      ["me", "main"],
      ["current", "main"],
      ["agent:beta:session:b", "beta"],
      ["plan", "no agent"],
    ] as const)
      expect(told(await find(label, agentId))).toBe("not_found");
  });
});

describe("failures", () => {
  const broken = (find: () => Promise<readonly SessionRecord[]>) =>
    createSessionAccess({
      store: { sessions: { find, trashed: async () => [], agentIds: async () => [] } },
      settings: () => settingsFor("self"),
      scope: "per-sender",
    });

  test.each(["self", "sandboxed"])("a failed lookup is refused as retryable: %s", async (how) => {
    const { add } = family();
    const asker = { ...askerFrom(await add("agent:main:main", "me")), sandboxed: how === "sandboxed" };
    const access = broken(() => Promise.reject(new Error("disk is gone")));
    const refusal = { status: "error", code: "lookup_failed", retryable: true };
    expect(await access.find(asker, "plan", "send")).toMatchObject({
      refusal: { ...refusal, error: expect.stringContaining("disk is gone") },
    });
    expect((await access.explain(asker, "plan", "send")).steps).toMatchObject([{ rule: "lookup" }]);
  });

  test("an unreadable lineage is refused as retryable", async () => {
    const { store, add } = family();
    const asker = askerFrom(await add("agent:main:main", "me"));
    const lost = await add("agent:main:subagent:p:c", "child", { spawnedBy: "agent:main:session:p" });
    // The reference is then ambiguous.
    await add("agent:main:subagent:me:d", "second", { label: "child", spawnedBy: "agent:main:main" });
    const access = createSessionAccess({
      store: {
        sessions: {
          find: (scope, lookup) =>
            lookup.by === "key" ? Promise.reject(new Error("torn")) : store.sessions.find(scope, lookup),
          trashed: async () => [],
          agentIds: async () => [],
        },
      },
      settings: () => settingsFor("all", []),
      scope: "per-sender",
    });
    expect(told(await access.find(asker, "child", "send"))).toBe("lookup_failed");
    expect(await access.check(asker, lost, "send")).toMatchObject({ code: "lookup_failed", retryable: true });
  });
});

describe("sandboxed sessions", () => {
  test("a session is sandboxed by its own setting or its agent's", async () => {
    const { store, add } = family();
    const app = fakeApp({ agents: { find: (id: string) => ({ sandboxed: id === "beta" }) } });
    const plain = await add("agent:main:main", "a");
    const marked = await add("agent:main:cron:b", "b", { sandboxed: true });
    const ofAgent = await add("agent:beta:main", "c", { sandboxed: false });
    expect([plain, marked, ofAgent].map((session) => isSandboxed(app, session))).toEqual([false, true, true]);
    // The requester cannot override whether its session is sandboxed.
    const policy = accessOver(store, settingsFor("all")).policyFor({
      ...askerFrom(marked),
      sandboxed: false,
    });
    expect(policy).toMatchObject({ sandboxed: true, visibility: { list: "tree", send: "tree" } });
  });
});

describe("reach", () => {
  test("sandboxed overrides everything else in a policy", async () => {
    const agentToAgent = { enabled: true, allow: [] };
    const visibility = { list: "all", history: "agent", send: "tree", status: "self" } as const;
    const policy = { visibility, agentToAgent, sandboxed: true };
    const asker = { agentId: "main", key: "agent:main:main" };
    for (const action of ["list", "history", "send", "status"] as const)
      expect((await reachBy(policy, action, asker, async () => ["main", "beta"])).agentIds).toEqual([]);
  });

  test.each([
    ["self", false, { treeOf: "agent:main:main", descendants: false, agentIds: [] }],
    ["tree", false, { treeOf: "agent:main:main", agentIds: [] }],
    ["agent", false, { treeOf: "agent:main:main", agentIds: ["main"] }],
    ["all", false, { treeOf: "agent:main:main", agentIds: ["main", "beta"] }],
    ["self", true, { treeOf: "agent:main:main", descendants: false, agentIds: [] }],
    ["all", true, { treeOf: "agent:main:main", agentIds: [] }],
  ] as const)("of %s, sandboxed %s", async (visibility, sandboxed, expected) => {
    const { store, add } = family();
    const asker = { ...askerFrom(await add("agent:main:main", "me")), sandboxed };
    await add("agent:beta:main", "b");
    await add("agent:gamma:main", "c");
    const access = accessOver(store, settingsFor(visibility, ["main -> beta", "gamma -> main"]));
    expect(await access.reach(asker, "list")).toEqual(expected);
    const nowhere = await access.reach({ ...asker, session: null }, "list");
    expect(nowhere).toEqual({ ...expected, treeOf: null });
  });
});
