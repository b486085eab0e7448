import { describe, expect, test } from "vitest";
import { sessionToolTable } from "./all.ts";
import { modelParameters } from "./session-tool.ts";

describe("group:sessions", () => {
  test("has ten tools, each with its own name, label and description", () => {
    expect(sessionToolTable.map(({ name, label }) => [name, label]).slice(0, 5)).toEqual([
      ["sessions_list", "Sessions"],
      ["sessions_history", "Session History"],
      ["sessions_send", "Session Send"],
      ["sessions_spawn", "Sessions"],
      ["sessions_yield", "Yield"],
    ]);
    expect(sessionToolTable.map(({ name }) => name).slice(5)).toEqual([
      "session_status",
      "subagents",
      "session_search",
      "session_list",
      "agents_list",
    ]);
    expect(new Set(sessionToolTable.map(({ description }) => description)).size).toBe(10);
  });

  test.each(sessionToolTable.map((tool) => [tool.name, tool] as const))(
    "%s accepts an object, and its aliases stand for existing names",
    (_, { parameters, aliases = {}, exclusiveAliases = [], refusedNames = {} }) => {
      const { type, properties } = modelParameters(parameters);
      const names = Object.keys(properties ?? {});
      expect(type).toBe("object");
      for (const name of Object.values(aliases)) expect(names).toContain(name);
      for (const alias of exclusiveAliases) expect(Object.keys(aliases)).toContain(alias);
      for (const name of Object.keys(refusedNames)) expect(names).not.toContain(name);
    },
  );
});
