import { beforeEach, describe, expect, test } from "vitest";
import { agentNamed, noLimits, WatchingWorld } from "../../test/support/watching-world.ts";
import type { Visibility } from "../access/visibility/access-policy.ts";
import type { SessionRecord } from "../store/contract.ts";
import { agentsList } from "./agents-list.ts";

let world: WatchingWorld;
let session: SessionRecord;
beforeEach(async () => {
  world = new WatchingWorld();
  session = await world.session("agent:main:main");
  world.agents.clear();
  for (const id of ["helper", "main", "research"]) world.agents.set(id, agentNamed(id, { model: `m/${id}` }));
});

const may = (allowAgents: readonly string[]) =>
  world.agents.set("main", agentNamed("main", { model: "m/main", subagents: { ...noLimits, allowAgents } }));
const reach = (visibility: Visibility, allow: readonly string[], enabled = true) => {
  world.settings = { tools: { sessions: { visibility }, agentToAgent: { enabled, allow } }, agents: {} };
};
const shown = async (sandboxed = false) => {
  const { result } = await agentsList.execute({}, world.caller(session, null, { sandboxed }), world.deps);
  return result as { requester: string; agents: { id: string; spawn: boolean; message: boolean }[] };
};
const short = async (sandboxed = false) =>
  (await shown(sandboxed)).agents.map(({ id, spawn, message }) => `${id} ${spawn} ${message}`);

describe("agents_list", () => {
  test("[OTH12] lists only itself if no other agent is allowed", async () => {
    expect(await shown()).toEqual({
      requester: "main",
      agents: [{ id: "main", model: "m/main", configured: true, spawn: true, message: true }],
      note: "You may send messages only to sessions that you have spawned, regardless of their agent.",
    });
    reach("self", []);
    expect(await short()).toEqual(["main true false"]);
  });

  test("[OTH12] lists the agents that may be spawned", async () => {
    may(["research", "gone"]);
    expect(await short()).toEqual(["main true true", "research true false"]);
    may(["*"]);
    expect(await short()).toEqual(["main true true", "helper true false", "research true false"]);
  });

  test("[OTH12] a leaf, and a session at the depth limit, can spawn nothing", async () => {
    may(["*"]);
    const lineage = { spawnedBy: "agent:main:main", spawnDepth: 1 };
    for (const role of ["leaf", "orchestrator"]) {
      session = await world.session(`agent:main:session:${role}`, { ...lineage, role });
      expect(await short()).toEqual(["main false true"]);
    }
  });

  test("lists ACP agents last, for callers that may spawn them", async () => {
    world.acpNames = ["codex", "pi"];
    expect((await shown()).agents.slice(1)).toEqual(
      ["codex", "pi"].map((id) => ({ id, runtime: "acp", configured: true, spawn: true, message: false })),
    );
    expect(await short(true)).toEqual(["main true true"]);
    world.agents.delete("main");
    expect(await short()).toEqual([]);
  });

  test("a leaf is shown no ACP agents", async () => {
    world.acpNames = ["codex"];
    session = await world.session("agent:main:session:leaf", {
      spawnedBy: "agent:main:main",
      spawnDepth: 1,
      role: "leaf",
    });
    expect(await short()).toEqual(["main false true"]);
  });

  test("[OTH12] lists agents that may be messaged: by pairs, with visibility all", async () => {
    reach("all", ["main -> research", "helper -> main"]);
    expect(await short()).toEqual(["main true true", "research false true"]);
    reach("all", ["main -> research"], false);
    expect(await short()).toEqual(["main true true"]);
    reach("agent", ["main -> research"]);
    expect(await short()).toEqual(["main true true"]);
  });

  test("[OTH12] a sandboxed session sees no agent that it could not reach", async () => {
    reach("all", []);
    may(["*"]);
    world.agents.set("research", agentNamed("research", { sandboxed: true }));
    expect(await short(true)).toEqual(["main true true", "research true false"]);
  });

  test("[OTH12] an undefined agent may not spawn or message any other", async () => {
    world.agents.delete("main");
    expect((await shown()).agents).toEqual([]);
  });
});
