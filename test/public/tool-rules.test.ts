import Type from "typebox";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod";
import type { SkeinEvent } from "../../src/index.ts";
import { defineTool } from "../../src/index.ts";
import type { Family } from "../support/family.ts";
import { call, withParts, words } from "../support/family.ts";
import { startHttpToolServer } from "../support/mcp-http.ts";
import { closeAll } from "../support/skein.ts";

afterEach(closeAll);

const main = "agent:main:main";

describe("arguments that do not match a tool's schema", () => {
  const weather = (parameters: Parameters<typeof defineTool>[0]["parameters"]) =>
    defineTool({ name: "weather", description: "Tells the weather.", parameters, execute: () => "sunny" });
  const byTypeBox = Type.Object({
    city: Type.String(),
    stops: Type.Optional(Type.Array(Type.Object({ at: Type.Integer() }))),
  });
  const byZod = z.object({ city: z.string(), stops: z.array(z.object({ at: z.int() })).optional() });

  test.each([
    ["TypeBox", byTypeBox, {}, "city: is required"],
    ["TypeBox", byTypeBox, { city: "K", stops: [{ at: 1 }, { at: 1.5 }] }, "stops.1.at: must be integer"],
    ["zod", byZod, { city: 5 }, "city: Invalid input"],
    ["zod", byZod, { city: "K", stops: [{ at: 1 }, { at: 1.5 }] }, "stops.1.at: "],
  ])("[TOL4] are reported with their path, by %s: %#", async (_, parameters, args, problem) => {
    const { skein, asked } = await withParts(
      { Begin: [call("weather", args), { text: "Sorry." }] },
      { agent: { tools: [weather(parameters)] } },
    );
    await skein.session().send("Begin").result;
    expect(words(asked("Begin")[1]).at(-1)).toContain(problem);
    const invoked = await skein.invokeTool("weather", args, { sessionKey: main });
    expect(invoked.isError).toBe(true);
    expect(JSON.stringify(invoked.result)).toContain(problem);
  });
});

test("[TOL10] two tools with one name are a conflict that names both origins", async () => {
  const shop = await startHttpToolServer();
  try {
    const tool = defineTool({ name: "shop__echo", description: "Repeats.", execute: () => "none" });
    const { skein } = await withParts(
      { Begin: [{ text: "Hi." }] },
      { agent: { tools: [tool] }, settings: { mcpServers: { shop: { url: shop.url } } } },
    );
    const error = await skein
      .session()
      .send("Begin")
      .result.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "conflict" });
    expect(String(error)).toContain('"shop__echo": one from agent main and one from the MCP server shop');
  } finally {
    await shop.close();
  }
});

describe("tools.ask", () => {
  const tools = ["pay", "pay_later", "look"].map((name) =>
    defineTool({ name, description: "Does it.", execute: () => `done: ${name}` }),
  );
  const each = [...tools.map(({ name }) => call(name)), { text: "Done." }];

  /** Approves every call and lists the calls that needed approval. */
  function approveAll({ skein }: Family): string[] {
    const needed: string[] = [];
    skein.subscribe((event: SkeinEvent) => {
      if (event.type !== "approval.requested") return;
      needed.push(`${event.sessionKey.includes(":subagent:") ? "child" : "main"} ${event.toolName}`);
      void skein.approvals.resolve(event.approvalId, "approved");
    });
    return needed;
  }

  test.each([
    [["pay"], ["main pay"]],
    [["pay*"], ["main pay", "main pay_later"]],
    [[], []],
  ])("[AJN1] %j makes every call of the named tools require approval", async (ask, expected) => {
    const family = await withParts(
      { Begin: each },
      { settings: { agents: { main: { tools: { ask } } } }, agent: { tools } },
    );
    const needed = approveAll(family);
    await family.skein.session().send("Begin").result;
    expect(needed).toEqual(expected);
    expect(words(family.asked("Begin").at(-1)).join()).toContain("done: pay");
  });

  test("[AJN2] applies to everything that a session spawns", async () => {
    const spawn = (task: string, agentId: string) =>
      call("sessions_spawn", { task, agentId, background: false });
    const family = await withParts(
      {
        Begin: [spawn("Delegate", "other"), { text: "Done." }],
        Delegate: [call("look"), spawn("Work", "third"), { text: "Done." }],
        Work: each,
      },
      {
        settings: { agents: { main: { tools: { ask: ["pay", "look"] } } } },
        agent: { tools, subagents: { allowAgents: ["other"], maxSpawnDepth: 3 } },
        others: [
          { id: "other", tools, subagents: { allowAgents: ["third"], maxSpawnDepth: 3 } },
          { id: "third", tools },
        ],
      },
    );
    const needed = approveAll(family);
    await family.skein.session().send("Begin").result;
    expect(needed).toEqual(["child look", "child pay", "child look"]);
  });
});

describe("subagents kill", () => {
  test("[OTH10] aborts the child and everything below it", async () => {
    const spawn = (task: string, label: string) => call("sessions_spawn", { task, label });
    const family = await withParts(
      {
        Begin: [spawn("Delegate", "lead"), { text: "Started." }],
        Delegate: [spawn("Work", "hand"), { text: "Wait…", stall: true }],
        Work: [{ text: "Wait…", stall: true }],
      },
      { agent: { subagents: { maxSpawnDepth: 2 } } },
    );
    const { skein } = family;
    await skein.session().send("Begin").result;
    const states = async () =>
      (await skein.runs.list()).filter(({ kind }) => kind === "spawn").map(({ state }) => state);
    await expect.poll(() => family.asked("Work").length).toBe(1);
    expect(await states()).toEqual(["running", "running"]);
    const killed = await family.call("subagents", { action: "kill", target: "lead" });
    expect(killed).toMatchObject({ status: "ok", descendants: 1 });
    expect(await states()).toEqual(["aborted", "aborted"]);
  });
});

describe("agents_list", () => {
  const others = [{ id: "research" }, { id: "helper" }];
  const listed = async (options: Parameters<typeof withParts>[1]) => {
    const family = await withParts({}, { others, ...options });
    await family.make(main);
    const { agents } = await family.call("agents_list", {});
    return (agents as { id: string; spawn: boolean; message: boolean }[]).map(
      ({ id, spawn, message }) => `${id}${spawn ? " spawn" : ""}${message ? " message" : ""}`,
    );
  };
  const reach = (visibility: string, ...allow: string[]) => ({
    tools: { sessions: { visibility }, agentToAgent: { enabled: true, allow } },
  });

  test("[OTH12] has only the caller's own agent if nothing else is allowed", async () => {
    expect(await listed({})).toEqual(["main spawn message"]);
  });

  test("[OTH12] has the agents that the caller may spawn", async () => {
    const agent = { subagents: { allowAgents: ["research", "gone"] } };
    expect(await listed({ agent })).toEqual(["main spawn message", "research spawn"]);
  });

  test("[OTH12] has the agents that the caller may message", async () => {
    const settings = reach("all", "main -> research", "helper -> main");
    const agent = { visibility: "all" as const };
    expect(await listed({ settings, agent })).toEqual(["main spawn message", "research message"]);
    const closer = { settings: reach("agent", "main -> research"), agent: { visibility: "agent" as const } };
    expect(await listed(closer)).toEqual(["main spawn message"]);
  });
});
