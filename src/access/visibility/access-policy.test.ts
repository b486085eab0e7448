import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AccessSettings, Visibility, VisibilitySetting } from "./access-policy.ts";
import { checkAgentPair, readAllowList, resolveAccessPolicy } from "./access-policy.ts";

const all = (word: Visibility) => ({ list: word, history: word, send: word, status: word });

function settings(
  general: VisibilitySetting,
  agents: AccessSettings["agents"] = {},
  allow: string[] = [],
): AccessSettings {
  return { tools: { sessions: { visibility: general }, agentToAgent: { enabled: true, allow } }, agents };
}

const free = { agentId: "main", sandboxed: false };

describe("the settings for an asker", () => {
  test.each<[string, VisibilitySetting, VisibilitySetting | null | undefined, object]>([
    ["one word", "agent", undefined, all("agent")],
    ["a word for each action", { ...all("self"), send: "all" }, undefined, { ...all("self"), send: "all" }],
    ["no setting means tree", {}, undefined, all("tree")],
    ["an omitted action means tree", { send: "all", list: null }, undefined, { ...all("tree"), send: "all" }],
    ["the agent's setting takes precedence", { ...all("all"), send: "self" }, "agent", all("agent")],
    ["the agent's setting is null", "agent", null, all("agent")],
    [
      "the agent sets some actions",
      "agent",
      { history: "self", send: null },
      { ...all("agent"), history: "self" },
    ],
    [
      "both set some actions",
      { send: "all" },
      { list: "self" },
      { ...all("tree"), send: "all", list: "self" },
    ],
  ])("%s", (_, general, own, expected) => {
    const agents = own === undefined ? {} : { main: { visibility: own } };
    expect(resolveAccessPolicy(settings(general, agents), free).visibility).toEqual(expected);
    expect(resolveAccessPolicy(settings(general, agents), { ...free, agentId: "Main" }).visibility).toEqual(
      expected,
    );
  });

  test("an agent that is not configured uses the settings under tools, whatever its name", () => {
    for (const agentId of ["other", "constructor", "toString", "__proto__", "not an id"]) {
      const policy = resolveAccessPolicy(settings("agent", { main: { visibility: "all" } }), {
        ...free,
        agentId,
      });
      expect(policy.visibility).toEqual(all("agent"));
    }
    const inherited = Object.create({ ghost: { visibility: "all" } }) as AccessSettings["agents"];
    const ghost = resolveAccessPolicy(settings("self", inherited), { ...free, agentId: "ghost" });
    expect(ghost.visibility).toEqual(all("self"));
  });

  test.each<[Visibility, Visibility]>([
    ["self", "self"],
    ["tree", "tree"],
    ["agent", "tree"],
    ["all", "tree"],
  ])("when sandboxed, %s is %s", (said, expected) => {
    const asker = { agentId: "main", sandboxed: true };
    for (const given of [settings(said), settings("all", { main: { visibility: said } })])
      expect(resolveAccessPolicy(given, asker)).toMatchObject({ visibility: all(expected), sandboxed: true });
    const mixed = resolveAccessPolicy(settings({ ...all("all"), list: "self" }), asker).visibility;
    expect(mixed).toEqual({ ...all("tree"), list: "self" });
  });

  test("the list of pairs is parsed and its mistakes are reported", () => {
    const { agentToAgent } = resolveAccessPolicy(settings("all", {}, ["Main -> x*", "b", "->"]), free);
    expect(agentToAgent).toEqual({
      enabled: true,
      allow: [
        { is: "pair", text: "Main -> x*", from: "main", to: "x*" },
        { is: "bare", text: "b", agent: "b" },
        { is: "mistake", text: "->", problem: "the agent before -> is missing" },
      ],
    });
  });
});

const policy = (...allow: string[]) => ({ enabled: true, allow: readAllowList(allow) });
const may = (allow: readonly string[], from: string, to: string) =>
  checkAgentPair(policy(...allow), from, to).allowed;

const agentId = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,5}$/);

describe("pairs of agents", () => {
  test.each<[string[], string, string, boolean]>([
    [["a -> b"], "a", "b", true],
    [["a -> b"], "b", "a", false],
    [["a->b"], "a", "b", true],
    [["  a   ->\tb "], "a", "b", true],
    [["A -> b"], "a", "B", true],
    [["a- -> b"], "a-", "b", true],
    [["a-->b"], "a-", "b", true],
    [["planner -> *"], "planner", "anybody", true],
    [["planner -> *"], "anybody", "planner", false],
    [["* -> desk"], "x", "desk", true],
    [["* -> desk"], "x", "y", false],
    [["team-* -> *-desk"], "team-1", "front-desk", true],
    [["team-* -> *-desk"], "team", "front-desk", false],
    [["a*c -> b"], "abbbc", "b", true],
    [["* -> *"], "x", "y", true],
    [["a", "b"], "a", "b", true],
    [["a", "b"], "b", "a", true],
    [["a", "b"], "a", "c", false],
    [["a"], "a", "b", false],
    [["*"], "x", "y", true],
    [["team-*"], "team-1", "team-2", true],
    [["team-*"], "team-1", "x", false],
    [["a", "b -> c"], "a", "c", false],
    [["a", "b -> c"], "a", "b", false],
    [["a -> b", "b -> c"], "a", "c", false],
    [[], "x", "y", true],
    [["a -> b"], "x", "x", true],
  ])("[ACC9] %j: %s to %s is %s", (allow, from, to, expected) => {
    expect(may(allow, from, to)).toBe(expected);
  });

  test("[ACC9] when disabled, only the same agent is allowed, whatever the list contains", () => {
    const off = { enabled: false, allow: readAllowList(["*", "a -> b"]) };
    expect(checkAgentPair(off, "a", "b")).toEqual({ allowed: false, because: "disabled" });
    expect(checkAgentPair({ ...off, allow: [] }, "a", "b")).toEqual({ allowed: false, because: "disabled" });
    expect(checkAgentPair(off, "a", "A")).toEqual({ allowed: true, by: "it is the same agent" });
  });

  test("[ACC9] a pair of two agents is allowed in its direction only", () => {
    fc.assert(
      fc.property(agentId, agentId, (from, to) => {
        fc.pre(from !== to);
        expect([may([`${from} -> ${to}`], from, to), may([`${from} -> ${to}`], to, from)]).toEqual([
          true,
          false,
        ]);
        expect([may([from, to], from, to), may([from, to], to, from)]).toEqual([true, true]);
      }),
    );
  });

  test("[ACC9] adding entries to a list never removes a pair", () => {
    const entry = fc.oneof(
      agentId,
      fc.tuple(agentId, agentId).map((pair) => pair.join(" -> ")),
    );
    fc.assert(
      fc.property(
        fc.array(entry, { minLength: 1 }),
        fc.array(entry),
        agentId,
        agentId,
        (few, more, from, to) => {
          if (may(few, from, to)) expect(may([...few, ...more], from, to)).toBe(true);
        },
      ),
    );
  });

  test("[ACC9] an invalid agent ID reaches no agent and cannot be reached", () => {
    for (const none of ["", "a b", "*", "a -> b", "x".repeat(65), "\u212a"]) {
      expect(may([], none, "a") || may(["*"], "a", none) || may(["* -> *"], none, none)).toBe(false);
    }
  });
});

describe("mistakes in the list", () => {
  test.each([
    ["", "it is blank"],
    ["  \t", "it is blank"],
    ["->", "the agent before -> is missing"],
    ["-> b", "the agent before -> is missing"],
    ["a ->", "the agent after -> is missing"],
    ["a -> b -> c", "it has more than one ->"],
    ["a b", '"a b" is not an agent ID or a pattern with *'],
    ["a <-> b", '"a <" is not an agent ID or a pattern with *'],
    ["a → b", '"a → b" is not an agent ID or a pattern with *'],
    ["a => b", '"a => b" is not an agent ID or a pattern with *'],
    ["a -> b?", '"b?" is not an agent ID or a pattern with *'],
    ["-x -> b", '"-x" is not an agent ID or a pattern with *'],
    ["a, b", '"a, b" is not an agent ID or a pattern with *'],
    ["(a|b)+ -> c", '"(a|b)+" is not an agent ID or a pattern with *'],
    ["a\u001b", '"a\\u001b" is not an agent ID or a pattern with *'],
  ])("%j: %s", (text, problem) => {
    const allow = readAllowList(["ok -> fine", text]);
    expect(allow[1]).toEqual({ is: "mistake", text, problem });
    expect(may([text], "a", "b")).toBe(false);
  });

  test("a pattern longer than any agent ID is a mistake", () => {
    const [long, longer] = [`${"x".repeat(63)}*`, `${"x".repeat(64)}*`];
    expect(readAllowList([long, `a -> ${long}`, longer, `${longer} -> a`]).map(({ is }) => is)).toEqual([
      "bare",
      "pair",
      "mistake",
      "mistake",
    ]);
  });

  test("any entry is either understood or reported, and a mistake allows nothing", () => {
    const any = fc.oneof(fc.string(), fc.stringMatching(/^[ab*<>? -]{0,8}$/));
    fc.assert(
      fc.property(fc.array(any, { minLength: 1 }), agentId, agentId, (texts, from, to) => {
        const allow = readAllowList(texts);
        expect(allow.map(({ text }) => text)).toEqual(texts);
        const wrong = allow.filter(({ is }) => is === "mistake");
        if (from !== to && wrong.length > 0)
          expect(checkAgentPair({ enabled: true, allow: wrong }, from, to).allowed).toBe(false);
      }),
    );
  });
});
