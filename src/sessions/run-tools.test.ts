import { describe, expect, test } from "vitest";
import { tool } from "../../test/support/turn.ts";
import type { Run } from "../runs/contract.ts";
import type { Agent } from "./agents.ts";
import { RunTools } from "./run-tools.ts";
import { ActiveTools } from "./with-state.ts";

const names = ["read", "bash", "sessions_spawn", "sessions_send", "cron"];
const source = { from: "here", tools: async () => names.map((name) => tool(name)) };
const agent = { id: "main", definition: null, tools: { deny: [] }, onDemand: [] } as unknown as Agent;
const run = { options: {} } as Run;

async function offered(meta: Readonly<Record<string, string | object[]>>, reports: unknown[] = []) {
  const policies: Record<string, { allow: string[]; deny: string[] }> = {
    lead: { allow: ["cron"], deny: ["bash"] },
  };
  const tools = new RunTools(
    [source],
    (error) => reports.push(error),
    (agentId) => {
      const found = policies[agentId];
      return found === undefined ? null : { tools: found };
    },
  );
  return (await tools.of(agent, run, { meta: meta as never })).map(({ name }) => name);
}

describe("the tools of a spawned session", () => {
  test("[POL3] a session that was not spawned has the tools of its agent", async () => {
    expect(await offered({})).toEqual(names);
  });

  test("[POL3] are those of its agent, within its lineage's, without those denied by the agent that spawned it", async () => {
    const spawnedBy = "agent:main:main";
    expect(await offered({ spawnedBy, role: "leaf" })).toEqual(["read", "bash"]);
    expect(await offered({ spawnedBy, role: "orchestrator" })).toEqual(["read", "bash", "sessions_spawn"]);
    expect(await offered({ spawnedBy: "agent:lead:main", role: "leaf" })).toEqual(["read", "cron"]);
    const reports: unknown[] = [];
    const toolLayers = [{ of: "agent lead", allow: ["read", "of_the_lead"] }];
    expect(await offered({ spawnedBy, role: "leaf", toolLayers }, reports)).toEqual(["read"]);
    expect(reports).toEqual([]);
  });
});

describe("the tools of the next turn", () => {
  const reach = { prefix: "notes__", groups: ["group:mcp", "group:mcp:notes"] };
  const server = (listed: string[] | null) => ({
    from: "the MCP server notes",
    reach,
    lastListed: () => listed?.map((name) => tool(name)) ?? null,
    tools: async () => expect.unreachable("looking starts nothing"),
  });
  const look = async (who: Agent, listed: string[] | null, meta = {}) => {
    const { tools, unlisted } = await new RunTools([source, server(listed)], () => undefined).offered(
      who,
      { meta },
      new ActiveTools(),
    );
    return { names: tools.map(({ name }) => name), unlisted: unlisted.map(({ from }) => from) };
  };

  test("are listed without starting a server; an earlier list of a server counts", async () => {
    expect(await look(agent, null)).toEqual({ names, unlisted: ["the MCP server notes"] });
    expect(await look(agent, ["notes__find"])).toEqual({ names: [...names, "notes__find"], unlisted: [] });
  });

  test("are those that the rules allow, and a server without allowed tools is not named", async () => {
    const reader = { ...agent, tools: { allow: ["read"], deny: [] } };
    expect(await look(reader, null)).toEqual({ names: ["read"], unlisted: [] });
    const strict = { ...agent, tools: { deny: ["group:mcp"] } };
    expect(await look(strict, ["notes__find"])).toEqual({ names, unlisted: [] });
    const child = { spawnedBy: "agent:main:main", role: "leaf" };
    expect((await look(agent, null, child)).names).toEqual(["read", "bash"]);
  });
});

describe("tools that require approval", () => {
  const lead = {
    id: "lead",
    definition: null,
    tools: { deny: [], ask: ["bash", "cron"] },
  } as unknown as Agent;

  async function asked(who: Agent, meta: Readonly<Record<string, string | object[]>> = {}) {
    const reports: unknown[] = [];
    const made = await new RunTools([source], (error) => reports.push(error)).of(who, run, {
      meta: meta as never,
    });
    const needed = await Promise.all(made.map(async (each) => [each.name, await each.needsApproval({})]));
    return { names: needed.filter(([, isNeeded]) => isNeeded === true).map(([name]) => name), reports };
  }

  test("[AJN1] are those of the rules, and the others follow their own definition", async () => {
    expect(await asked(lead)).toEqual({ names: ["bash", "cron"], reports: [] });
    expect(await asked(agent)).toEqual({ names: [], reports: [] });
  });

  test("[AJN1] a typo is reported", async () => {
    const { reports } = await asked({ ...lead, tools: { deny: [], ask: ["bsh"] } });
    expect(reports.map(String)).toEqual([
      'Error: The entry "bsh" in the ask list of agent lead matches no tool.',
    ]);
  });

  test("[AJN2] stay so in spawned sessions, whatever their agent's settings; an unreadable rule allows nothing", async () => {
    const spawnedBy = "agent:lead:main";
    const toolLayers = [{ of: "agent lead", ask: ["bash", "not_here"] }];
    expect(await asked(agent, { spawnedBy, toolLayers })).toEqual({ names: ["bash"], reports: [] });
    const spoilt = { spawnedBy, toolLayers: [{ of: "agent lead", ask: "bash" }] };
    const made = new RunTools([source], () => undefined).of(agent, run, { meta: spoilt as never });
    expect(await made).toEqual([]);
  });
});
