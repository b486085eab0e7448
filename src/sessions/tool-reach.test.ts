import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mcpToolName, mcpToolPrefix } from "../agents/mcp/open-servers.ts";
import { selectTools } from "../agents/tools/select-tools.ts";
import { mayReach } from "./run-tools.ts";

const reachOf = (server: string) => ({
  prefix: mcpToolPrefix(server),
  groups: ["group:mcp", `group:mcp:${server}`],
});

describe("which MCP servers rules exclude", () => {
  test.each([
    [{}, true],
    [{ allow: [] }, false],
    [{ allow: ["read"] }, false],
    [{ allow: ["group:mcp"] }, true],
    [{ allow: ["group:mcp:desk"] }, true],
    [{ allow: ["group:mcp:other"] }, false],
    [{ allow: ["desk__open"] }, true],
    [{ allow: ["desk__*"] }, true],
    [{ allow: ["d*n"] }, true],
    [{ allow: ["other__*"] }, false],
    [{ deny: ["desk__open"] }, true],
    [{ deny: ["desk__*"] }, false],
    [{ deny: ["*"] }, false],
    [{ deny: ["*n"] }, true],
    [{ deny: ["group:mcp"] }, false],
    [{ deny: ["group:mcp:*"] }, false],
    [{ allow: ["desk__*"], deny: ["group:mcp:desk"] }, false],
  ])("[LIB23] %j leaves tools: %s", (rule, expected) => {
    expect(mayReach(reachOf("desk"), [rule])).toBe(expected);
  });

  test("[LIB23] never skips a server with an allowed tool", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "_", "*", "?", "."), maxLength: 6 });
    const entry = fc.oneof(
      word,
      fc.constantFrom("group:mcp", "group:mcp:*", "group:*"),
      word.map((w) => `a__${w}`),
    );
    const rule = fc.record(
      { allow: fc.array(entry, { maxLength: 3 }), deny: fc.array(entry, { maxLength: 2 }) },
      { requiredKeys: [] },
    );
    const name = fc.string({ unit: fc.constantFrom("a", "_", "."), minLength: 1, maxLength: 70 });
    fc.assert(
      fc.property(name, name, fc.array(rule, { maxLength: 2 }), (server, tool, rules) => {
        const one = { name: mcpToolName(server, tool), groups: reachOf(server).groups };
        const { tools } = selectTools(
          [one],
          rules.map((each) => ({ of: "it", ...each })),
        );
        expect(tools.length === 1 && !mayReach(reachOf(server), rules)).toBe(false);
      }),
    );
  });
});
