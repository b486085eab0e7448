import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mcpToolName } from "./open-servers.ts";

describe("mcpToolName", () => {
  test.each([
    ["files", "read", "files__read"],
    ["files", "__read", "files____read"],
    ["my-files", "read_all", "my-files__read_all"],
  ])("[MCT1] keeps %s and %s: %s", (server, tool, name) => {
    expect(mcpToolName(server, tool)).toBe(name);
  });

  test.each([
    ["files", "read.all", /^files__read_all_[0-9a-f]{8}$/],
    ["my files", "read", /^my_files__read_[0-9a-f]{8}$/],
    ["a__b", "c", /^a__b__c_[0-9a-f]{8}$/],
    ["a_", "b", /^a___b_[0-9a-f]{8}$/],
    ["天気", "今日", /^______[0-9a-f]{8}$|^__+[0-9a-f]{8}$/],
    ["files", "r".repeat(100), /^files__r{48}_[0-9a-f]{8}$/],
  ])("[MCT1] adds a hash for %s and %s", (server, tool, pattern) => {
    expect(mcpToolName(server, tool)).toMatch(pattern);
  });

  test("[MCT1] is always valid, and different tools never share a name", () => {
    const part = fc.oneof(
      fc.string({ minLength: 1 }),
      fc.stringMatching(/^[ab_.]{1,6}$/),
      fc.stringMatching(/^x{28,70}$/),
    );
    fc.assert(
      fc.property(part, part, part, part, (server, tool, otherServer, otherTool) => {
        const name = mcpToolName(server, tool);
        expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        const isSame = server === otherServer && tool === otherTool;
        expect(mcpToolName(otherServer, otherTool) === name).toBe(isSame);
      }),
    );
  });
});
