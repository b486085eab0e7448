import { describe, expect, test } from "vitest";
import type { AgentSpec } from "./define-agent.ts";
import { defineAgent } from "./define-agent.ts";
import { defineTool } from "./define-tool.ts";

const weather = defineTool({ name: "weather", description: "Tells the weather.", execute: () => "sunny" });
const notes = { key: "notes", save: () => null, load: () => undefined };

describe("defineAgent", () => {
  test("keeps the given values, in its own frozen lists", () => {
    const tools = [weather];
    const spec: AgentSpec = {
      id: "Research",
      model: "anthropic/claude-sonnet-4-5",
      system: "Be brief.",
      thinking: "low",
      tools,
      allow: ["weather", "group:sessions"],
      deny: ["group:mcp:*"],
      state: () => [notes],
      cwd: "/work",
      maxSteps: 20,
      runTimeoutSeconds: 0,
      maxOutputTokens: 1000,
      sandboxed: true,
      visibility: { send: "all" },
      roots: ["/work"],
      subagents: {
        allowAgents: ["*"],
        maxSpawnDepth: 2,
        maxChildren: 3,
        archiveAfterMinutes: 0,
        tools: { allow: ["cron"], deny: [] },
        attachments: { maxFileBytes: 1, maxTotalBytes: 2, keep: true },
      },
    };
    const agent = defineAgent(spec);
    expect(agent).toEqual({ ...spec, id: "research" });
    tools.push(weather);
    expect(agent.tools).toEqual([weather]);
    expect(Object.isFrozen(agent) && Object.isFrozen(agent.tools)).toBe(true);
    const { subagents, visibility } = agent;
    const inner = [visibility, subagents, subagents?.allowAgents, subagents?.tools?.allow];
    expect(inner.every((each) => Object.isFrozen(each))).toBe(true);
    expect(defineAgent({ id: "main" })).toEqual({ id: "main" });
    const lowered = defineAgent({
      id: "main",
      visibility: "agent",
      subagents: { allowAgents: ["Research"] },
    });
    expect(lowered).toMatchObject({ visibility: "agent", subagents: { allowAgents: ["research"] } });
  });

  test.each<[string, unknown, string]>([
    ["a value that is not an object", null, "no ID"],
    ["no id", {}, "no ID"],
    ["an unknown field", { id: "main", sytem: "x" }, 'no field "sytem"'],
    ["a field of every object", { id: "main", toString: 1 }, 'no field "toString"'],
    ["a model without a provider", { id: "main", model: "gpt" }, "such as"],
    ["a model with a space", { id: "main", model: "a/b c" }, "model"],
    ["an invalid thinking level", { id: "main", thinking: "hard" }, "xhigh"],
    ["invalid tools", { id: "main", tools: [{ name: "a" }] }, "defineTool"],
    ["allow as a string", { id: "main", allow: "weather" }, "allow"],
    ["deny with a number", { id: "main", deny: [1] }, "deny"],
    ["an invalid state", { id: "main", state: [{ key: "a" }] }, "state modules"],
    ["a relative folder", { id: "main", cwd: "work" }, "absolute"],
    ["no steps", { id: "main", maxSteps: 0 }, "whole number from 1"],
    ["half a second", { id: "main", runTimeoutSeconds: 0.5 }, "runTimeoutSeconds"],
    ["a string for sandboxed", { id: "main", sandboxed: "yes" }, "true or false"],
    ["an invalid visibility", { id: "main", visibility: "some" }, "one of self, tree, agent, all, or keys"],
    [
      "a visibility of an unknown action",
      { id: "main", visibility: { read: "all" } },
      'no field "visibility.read"',
    ],
    [
      "a wrong visibility of an action",
      { id: "main", visibility: { send: "any" } },
      "invalid visibility.send",
    ],
    ["relative roots", { id: "main", roots: ["work"] }, "absolute"],
    ["sub-agents as a list", { id: "main", subagents: [] }, "Expected keys (allowAgents"],
    ["an invalid allowed agent", { id: "main", subagents: { allowAgents: ["a b"] } }, "agent IDs"],
    ["six deep", { id: "main", subagents: { maxSpawnDepth: 6 } }, "whole number from 1 to 5"],
    ["no children", { id: "main", subagents: { maxChildren: 0 } }, "whole number from 1 to 20"],
    ["an unknown limit", { id: "main", subagents: { attachments: { max: 1 } } }, "attachments.max"],
    ["two tools with one name", { id: "main", tools: [weather, weather] }, 'two tools named "weather"'],
    ["two states with one key", { id: "main", state: [notes, notes] }, 'key "notes"'],
  ])("refuses %s", (_, spec, words) => {
    expect(() => defineAgent(spec as AgentSpec)).toThrow(
      expect.objectContaining({ code: "invalid_arguments", message: expect.stringContaining(words) }),
    );
  });

  test("refuses an invalid ID", () => {
    expect(() => defineAgent({ id: "some one" })).toThrow(
      expect.objectContaining({ code: "invalid_agent_id" }),
    );
  });
});
