import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ToolRule } from "./select-tools.ts";
import { isAskedAbout, joinTools, selectTools } from "./select-tools.ts";

const tools = [
  { name: "weather", groups: [] },
  { name: "sessions_list", groups: ["group:sessions"] },
  { name: "sessions_send", groups: ["group:sessions"] },
  { name: "files__read", groups: ["group:mcp", "group:mcp:files"] },
  { name: "files__write", groups: ["group:mcp", "mcp:files"] },
  { name: "web__get", groups: ["group:mcp", "group:mcp:web"] },
];
const all = tools.map(({ name }) => name);
const names = (...rules: ToolRule[]) =>
  selectTools(
    tools,
    rules.map((rule, index) => ({ of: `layer ${index}`, ...rule })),
  ).tools.map(({ name }) => name);

describe("selectTools", () => {
  test.each<[string, ToolRule[], string[]]>([
    ["no layers: all tools", [], all],
    ["an empty rule: all tools", [{}], all],
    ["an empty allow: no tools", [{ allow: [] }], []],
    ["a name", [{ allow: ["weather"] }], ["weather"]],
    ["a group", [{ allow: ["group:sessions"] }], ["sessions_list", "sessions_send"]],
    ["a server's group", [{ allow: ["group:mcp:files"] }], ["files__read", "files__write"]],
    ["all servers", [{ allow: ["group:mcp"] }], ["files__read", "files__write", "web__get"]],
    ["a pattern of groups", [{ allow: ["group:mcp:w*"] }], ["web__get"]],
    ["a pattern of names", [{ allow: ["*__*"] }], ["files__read", "files__write", "web__get"]],
    ["a star", [{ allow: ["*"] }], all],
    ["a wildcard for groups omits tools without one", [{ allow: ["group:*"] }], all.slice(1)],
    ["a name is not a group", [{ allow: ["sessions"] }], []],
    ["deny wins", [{ allow: ["*"], deny: ["group:mcp", "weather"] }], ["sessions_list", "sessions_send"]],
    ["only deny", [{ deny: ["*_*"] }], ["weather"]],
    [
      "layers intersect",
      [{ allow: ["group:sessions", "weather"] }, { allow: ["sessions_*"] }],
      all.slice(1, 3),
    ],
    ["a deny of any layer", [{ allow: ["*"] }, { deny: ["*_*"] }, {}], ["weather"]],
  ])("[POL1] %s", (_, rules, expected) => {
    expect(names(...rules)).toEqual(expected);
  });

  test("[POL1] another layer never adds a tool, and the order of layers does not matter", () => {
    const entry = fc.constantFrom("*", "weather", "group:sessions", "group:mcp*", "*__read", "none");
    const rule = fc.record(
      { allow: fc.array(entry, { maxLength: 3 }), deny: fc.array(entry, { maxLength: 2 }) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 3 }), rule, (rules, another) => {
        const before = names(...rules);
        const after = names(...rules, another);
        expect(before).toEqual(expect.arrayContaining(after));
        expect(names(another, ...rules.toReversed())).toEqual(after);
      }),
    );
  });

  test("an unmatched entry of allow is reported with its owner; one of deny is not", () => {
    const { unmatched } = selectTools(tools, [
      { of: "agent main", allow: ["wether", "weather", "group:nope"], deny: ["gone"] },
      { of: "this run", allow: ["*"] },
    ]);
    expect(unmatched).toEqual([
      {
        of: "agent main",
        entry: "wether",
        note: 'The entry "wether" in the allow list of agent main matches no tool.',
      },
      {
        of: "agent main",
        entry: "group:nope",
        note: 'The entry "group:nope" in the allow list of agent main matches no tool.',
      },
    ]);
  });

  test("[TOL10] two tools with one name are a conflict that names both", () => {
    const [one] = tools;
    if (one === undefined) throw new Error("unreachable");
    const sources = [
      { from: "agent main", tools: [one] },
      { from: "MCP server sky", tools: [{ name: "other", groups: [] }, one] },
    ];
    expect(() => joinTools(sources)).toThrow(
      expect.objectContaining({
        code: "conflict",
        message: expect.stringContaining('"weather": one from agent main and one from MCP server sky'),
      }),
    );
    expect(joinTools([{ from: "a", tools }])).toEqual(tools);
  });
});

describe("approval rules", () => {
  const asked = (...rules: ToolRule[]) => {
    const layers = rules.map((rule, index) => ({ of: `layer ${index}`, ...rule }));
    return tools.filter((tool) => isAskedAbout(tool, layers)).map(({ name }) => name);
  };

  test.each<[string, ToolRule[], string[]]>([
    ["nothing by default", [{}, { allow: ["*"], deny: [] }], []],
    ["a name", [{ ask: ["weather"] }], ["weather"]],
    ["a group", [{ ask: ["group:mcp:files"] }], ["files__read", "files__write"]],
    ["a pattern", [{ ask: ["sessions_*"] }], ["sessions_list", "sessions_send"]],
    [
      "everything that any layer asks about",
      [{ ask: ["weather"] }, {}, { ask: ["web__*"] }],
      ["weather", "web__get"],
    ],
  ])("[AJN1] %s", (_, rules, expected) => {
    expect(asked(...rules)).toEqual(expected);
    expect(names(...rules)).toEqual(all);
  });

  test("[AJN1] an entry that matches nothing is reported with its owner", () => {
    expect(selectTools(tools, [{ of: "agent main", ask: ["file__*", "weather"] }]).unmatched).toEqual([
      {
        of: "agent main",
        entry: "file__*",
        note: 'The entry "file__*" in the ask list of agent main matches no tool.',
      },
    ]);
  });
});
