import { describe, expect, test } from "vitest";
import { resolveAccessPolicy } from "../access/visibility/access-policy.ts";
import type { AgentDefinition } from "../agents/tools/define-agent.ts";
import { defineAgent } from "../agents/tools/define-agent.ts";
import { parseConfigText } from "../config/parse-yaml.ts";
import { readTree } from "../config/read-tree.ts";
import type { Config } from "../config/sections/all.ts";
import { sections } from "../config/sections/all.ts";
import { Agents } from "./agents.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };

function agentsOf(text: string, ...definitions: AgentDefinition[]): Agents {
  const { root } = parseConfigText(text, "/p/skein.yaml", () => undefined);
  const { value, problems } = readTree(sections, root === null ? [] : [root], () => place, place);
  expect(problems).toEqual([]);
  const config = value as Config;
  return new Agents({ config, env: () => undefined, definitions, configured: Object.keys(config.agents) });
}

const seenBy = (agents: Agents, agentId: string, sandboxed = false) =>
  resolveAccessPolicy(agents.access, { agentId, sandboxed }).visibility;

describe("agent settings in sessions", () => {
  test("the code comes first, then the agent's configuration, then the defaults", () => {
    const agents = agentsOf(
      [
        "agents: { main: { sandboxed: true, roots: [/a], tools: { deny: [shell] }, subagents: { maxChildren: 2, tools: { allow: [x] } } } }",
        "defaults: { cwd: /w, subagents: { maxSpawnDepth: 3, attachments: { keep: true } } }",
      ].join("\n"),
      defineAgent({
        id: "main",
        model: "a/b",
        roots: ["/b"],
        subagents: { maxChildren: 7, tools: { deny: ["y"] }, attachments: { maxFileBytes: 9 } },
      }),
    );
    expect(agents.find("main")).toMatchObject({
      id: "main",
      model: "a/b",
      cwd: "/w",
      sandboxed: true,
      roots: ["/b"],
      tools: { deny: ["shell"] },
      subagents: {
        allowAgents: [],
        maxSpawnDepth: 3,
        maxChildren: 7,
        archiveAfterMinutes: 60,
        tools: { allow: ["x"], deny: ["y"] },
        attachments: { maxFileBytes: 9, maxTotalBytes: 5 * 1024 ** 2, keep: true },
      },
    });
    expect(agents.ids).toEqual(["main"]);
    expect([agents.find("nobody"), agents.find("constructor")]).toEqual([null, null]);
  });

  test("false in the code overrides true in the configuration", () => {
    const agents = agentsOf("defaults: { sandboxed: true }", defineAgent({ id: "main", sandboxed: false }));
    expect(agents.find("main")?.sandboxed).toBe(false);
  });

  test("visibility for each action comes from the code, the agent, the defaults, then tools", () => {
    const agents = agentsOf(
      [
        "tools: { sessions: { visibility: agent }, agentToAgent: { enabled: true, allow: ['a -> b'] } }",
        "agents: { a: { visibility: { history: self } }, b: {} }",
        "defaults: { visibility: { list: self } }",
      ].join("\n"),
      defineAgent({ id: "a", visibility: { send: "all" } }),
      defineAgent({ id: "c", visibility: "all" }),
    );
    expect(seenBy(agents, "a")).toEqual({ list: "self", history: "self", send: "all", status: "agent" });
    expect(seenBy(agents, "b")).toEqual({ list: "self", history: "agent", send: "agent", status: "agent" });
    expect(seenBy(agents, "c")).toEqual({ list: "all", history: "all", send: "all", status: "all" });
    expect(seenBy(agents, "c", true)).toEqual({
      list: "tree",
      history: "tree",
      send: "tree",
      status: "tree",
    });
    expect(seenBy(agents, "unheard-of")).toEqual(seenBy(agents, "b"));
    expect(agents.access.tools.agentToAgent).toEqual({ enabled: true, allow: ["a -> b"] });
  });
});
