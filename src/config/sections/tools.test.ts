import fc from "fast-check";
import { Check } from "typebox/schema";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { AccessSettings } from "../../access/visibility/access-policy.ts";
import { readAllowList, resolveAccessPolicy } from "../../access/visibility/access-policy.ts";
import { effectiveText } from "../effective.ts";
import { environmentLayer } from "../environment.ts";
import { configJsonSchema } from "../json-schema.ts";
import { parseConfigText } from "../parse-yaml.ts";
import { problemText } from "../problems.ts";
import { readTree } from "../read-tree.ts";
import type { Group, Read, Table } from "../settings/setting.ts";
import { agents as plainAgents } from "./agents.ts";
import { agentVisibility, tools } from "./tools.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };
const agent = { node: "group", about: "", fields: { visibility: agentVisibility } } satisfies Group;
const agents: Table<typeof agent> = { ...plainAgents, of: agent };
const sections = { node: "group", about: "", fields: { tools, agents } } satisfies Group;

function read(text: string, env: Record<string, string> = {}) {
  const parsed = parseConfigText(text, "/p/skein.yaml", (name) => env[name]);
  const variables = Object.entries(env).map(([name, value]) => ({ name, value, file: null }));
  const layer = environmentLayer(variables, sections, parsed.root);
  const layers = [...(parsed.root === null ? [] : [parsed.root]), layer.root];
  const { value, problems, sources } = readTree(sections, layers, () => place, place);
  const told = [...parsed.problems, ...problems, ...layer.problems].map((problem) =>
    problemText(problem).replace("/p/skein.yaml:", ""),
  );
  return { config: value as Read<typeof sections>, told, sources };
}

const sessions = (visibility: string) => `tools: { sessions: { visibility: ${visibility} } }`;
const all = (word: string | null) => ({ list: word, history: word, send: word, status: word });
const accepts = (config: unknown) => Check(configJsonSchema(sections), config);
const expected = '"self", "tree", "agent" or "all", or keys (list, history, send, status)';

describe("visibility settings", () => {
  test.each([
    ["", all("tree")],
    [sessions("all"), all("all")],
    [sessions("~"), all("tree")],
    [sessions("{}"), all("tree")],
    [sessions("{ send: all, list: self }"), { ...all("tree"), send: "all", list: "self" }],
  ])("%j", (text, visibility) => {
    const { config, told } = read(text);
    expect(told).toEqual([]);
    expect(config.tools.sessions.visibility).toEqual(visibility);
    expect(Object.isFrozen(config.tools.sessions.visibility)).toBe(true);
    expect(accepts(parse(text) ?? {})).toBe(true);
  });

  test("an agent has no setting, one word, or one word for some actions, which give a policy", () => {
    const text = `${sessions("agent")}\nagents: { a: {}, b: { visibility: self }, c: { visibility: { send: all, list: ~ } } }`;
    const { config, told } = read(text);
    expect(told).toEqual([]);
    expect(Object.values(config.agents).map(({ visibility }) => visibility)).toEqual([
      all(null),
      all("self"),
      { ...all(null), send: "all" },
    ]);
    const settings: AccessSettings = config;
    const policies = ["a", "b", "c", "d"].map((agentId) =>
      resolveAccessPolicy(settings, { agentId, sandboxed: false }),
    );
    expect(policies.map(({ visibility }) => visibility)).toEqual([
      all("agent"),
      all("self"),
      { ...all("agent"), send: "all" },
      all("agent"),
    ]);
    expect(policies[0]?.agentToAgent).toEqual({ enabled: false, allow: [] });
    expect(accepts(parse(text))).toBe(true);
  });

  test.each([
    ["tre", `1:34: tools.sessions.visibility: found "tre", expected ${expected} (did you mean "tree"?)`],
    ["5", `1:34: tools.sessions.visibility: found 5, expected ${expected}`],
    ["[self]", `1:34: tools.sessions.visibility: found a list, expected ${expected}`],
    [
      "{ sned: all }",
      '1:36: tools.sessions.visibility: found the key "sned", expected one of list, history, send, status (did you mean send?)',
    ],
    [
      "{ send: al }",
      '1:42: tools.sessions.visibility.send: found "al", expected "self", "tree", "agent" or "all" (did you mean "all"?)',
    ],
  ])("%j is a mistake, reported once", (text, problem) => {
    const { told, config } = read(sessions(text));
    expect(told).toEqual([problem]);
    expect(config.tools.sessions.visibility).toEqual(all("tree"));
    expect(accepts(parse(sessions(text)))).toBe(false);
  });

  test("the environment may contain a word, a word for an action, or both", () => {
    const name = "SKEIN_TOOLS__SESSIONS__VISIBILITY";
    const visibilityOf = (env: Record<string, string>, text = sessions("{ send: self, list: self }")) => {
      const { told, config } = read(text, env);
      expect(told).toEqual([]);
      return config.tools.sessions.visibility;
    };
    expect(visibilityOf({ [name]: "all" })).toEqual(all("all"));
    expect(visibilityOf({ [`${name}__SEND`]: "all" })).toEqual({ ...all("tree"), send: "all", list: "self" });
    expect(visibilityOf({ [`${name}__SEND`]: "all" }, sessions("self"))).toEqual({
      ...all("self"),
      send: "all",
    });
    expect(visibilityOf({ [name]: "agent", [`${name}__SEND`]: "all" })).toEqual({
      ...all("agent"),
      send: "all",
    });
    expect(visibilityOf({ SKEIN_AGENTS__MAIN__VISIBILITY: "all" })).toEqual({
      ...all("tree"),
      send: "self",
      list: "self",
    });
    expect(read("", { [name]: "some" }).told).toEqual([
      `${name}: tools.sessions.visibility: found "some", expected ${expected}`,
    ]);
    expect(read("", { SKEIN_TOOLS__SESSIONS: "all" }).told).toEqual([
      'SKEIN_TOOLS__SESSIONS: found "all", expected SKEIN_TOOLS__SESSIONS__VISIBILITY, SKEIN_TOOLS__SESSIONS__SHOW_PATHS',
    ]);
  });

  test("are shown with their source, hide a variable, and read back the same", () => {
    const written = read(`${sessions("agent")}\nagents: { b: { visibility: '\${V}' } }`, { V: "self" });
    expect(written.told).toEqual([]);
    const shown = effectiveText(sections, written.config, written.sources);
    expect(shown).toContain("      list: agent # /p/skein.yaml:1\n");
    expect(shown).toContain('      send: "***" # /p/skein.yaml:2\n');
    const plain = read(sessions("{ send: self }"));
    const again = read(effectiveText(sections, plain.config, plain.sources));
    expect(again.told).toEqual([]);
    expect(again.config).toEqual(plain.config);
    expect(read(sessions("'${V}'"), { V: "tre" }).told).toEqual([
      `1:34: tools.sessions.visibility: found the value of \${V}, expected ${expected}`,
    ]);
  });
});

describe("settings for pairs of agents", () => {
  test("[ACC9] are off and empty by default", () => {
    expect(read("").config.tools.agentToAgent).toEqual({ enabled: false, allow: [] });
    const text = 'tools: { agentToAgent: { enabled: true, allow: ["main -> research", "planner->*", a] } }';
    const { config, told } = read(text);
    expect(told).toEqual([]);
    expect(config.tools.agentToAgent).toEqual({
      enabled: true,
      allow: ["main -> research", "planner->*", "a"],
    });
    expect(accepts(parse(text))).toBe(true);
    const env = {
      SKEIN_TOOLS__AGENT_TO_AGENT__ALLOW: "a -> b, c",
      SKEIN_TOOLS__AGENT_TO_AGENT__ENABLED: "true",
    };
    expect(read("", env).config.tools.agentToAgent).toEqual({ enabled: true, allow: ["a -> b", "c"] });
  });

  test("[ACC9] a malformed one is a mistake at its position", () => {
    expect(read('tools: { agentToAgent: { allow: ["a -> b", "a <-> b"] } }').told).toEqual([
      '1:44: tools.agentToAgent.allow.1: found "a <-> b", expected a pair such as "main -> research", or an agent ID; * matches any characters',
    ]);
  });

  test("[ACC9] the policy understands everything that the configuration accepts", () => {
    const some = fc.constantFrom("a", "B", "*", "-", "->", ">", " ", "\t", "_", "?", "é", "x".repeat(62));
    const any = fc.oneof(
      fc.string(),
      fc.array(some, { maxLength: 8 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(any, (text) => {
        const isTaken = tools.fields.agentToAgent.fields.allow.of.read(text, place) !== null;
        expect(isTaken).toBe(readAllowList([text])[0]?.is !== "mistake");
      }),
    );
  });
});
