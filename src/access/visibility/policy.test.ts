import { describe, expect, test } from "vitest";
import type { AccessSettings, Visibility, VisibilitySetting } from "./policy.ts";
import { accessPolicy } from "./policy.ts";

const all = (word: Visibility) => ({ list: word, history: word, send: word, status: word });

function settings(
  general: VisibilitySetting,
  agents: AccessSettings["agents"] = {},
  allow: string[] = [],
): AccessSettings {
  return { tools: { sessions: { visibility: general }, agentToAgent: { enabled: true, allow } }, agents };
}

const free = { agentId: "main", sandboxed: false };

describe("what holds for an asker", () => {
  test.each<[string, VisibilitySetting, VisibilitySetting | null | undefined, object]>([
    ["one word", "agent", undefined, all("agent")],
    ["a word for each action", { ...all("self"), send: "all" }, undefined, { ...all("self"), send: "all" }],
    ["nothing said is tree", {}, undefined, all("tree")],
    ["what is left out is tree", { send: "all", list: null }, undefined, { ...all("tree"), send: "all" }],
    ["the agent's word goes first", { ...all("all"), send: "self" }, "agent", all("agent")],
    ["the agent says null", "agent", null, all("agent")],
    [
      "the agent says some actions",
      "agent",
      { history: "self", send: null },
      { ...all("agent"), history: "self" },
    ],
    ["both say some", { send: "all" }, { list: "self" }, { ...all("tree"), send: "all", list: "self" }],
  ])("[ACC8] %s", (_, general, own, expected) => {
    const agents = own === undefined ? {} : { main: { visibility: own } };
    expect(accessPolicy(settings(general, agents), free).visibility).toEqual(expected);
    expect(accessPolicy(settings(general, agents), { ...free, agentId: "Main" }).visibility).toEqual(
      expected,
    );
  });

  test("[ACC8] an agent that is not configured has what tools says, whatever it is called", () => {
    for (const agentId of ["other", "constructor", "toString", "__proto__", "not an id"]) {
      const policy = accessPolicy(settings("agent", { main: { visibility: "all" } }), { ...free, agentId });
      expect(policy.visibility).toEqual(all("agent"));
    }
    const inherited = Object.create({ ghost: { visibility: "all" } }) as AccessSettings["agents"];
    const ghost = accessPolicy(settings("self", inherited), { ...free, agentId: "ghost" });
    expect(ghost.visibility).toEqual(all("self"));
  });

  test.each<[Visibility, Visibility]>([
    ["self", "self"],
    ["tree", "tree"],
    ["agent", "tree"],
    ["all", "tree"],
  ])("[ACC8] sandboxed, %s is %s", (said, expected) => {
    const asker = { agentId: "main", sandboxed: true };
    for (const given of [settings(said), settings("all", { main: { visibility: said } })])
      expect(accessPolicy(given, asker)).toMatchObject({ visibility: all(expected), sandboxed: true });
    const mixed = accessPolicy(settings({ ...all("all"), list: "self" }), asker).visibility;
    expect(mixed).toEqual({ ...all("tree"), list: "self" });
  });

  test("[ACC10] the list of pairs is read, with its mistakes", () => {
    const { agentToAgent } = accessPolicy(settings("all", {}, ["Main -> x*", "b", "->"]), free);
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
