import { describe, expect, test } from "vitest";
import { agentSettings } from "./agent-settings.ts";
import { parseConfigText } from "./parse-yaml.ts";
import { readTree } from "./read-tree.ts";
import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };

function configOf(text: string): Config {
  const { root } = parseConfigText(text, "/p/skein.yaml", () => undefined);
  const { value, problems } = readTree(sections, root === null ? [] : [root], () => place, place);
  expect(problems).toEqual([]);
  return value as Config;
}

const unsaid = { list: null, history: null, send: null, status: null };
const everywhere = (word: string) => ({ list: word, history: word, send: word, status: word });

const builtIn = {
  model: null,
  system: null,
  thinking: "off",
  cwd: null,
  tools: { allow: [], deny: [], ask: [] },
  runTimeoutSeconds: 3600,
  maxSteps: 50,
  sandboxed: false,
  visibility: unsaid,
  roots: [],
  subagents: {
    allowAgents: [],
    maxSpawnDepth: 1,
    maxChildren: 5,
    archiveAfterMinutes: 60,
    tools: { allow: [], deny: [] },
    attachments: { maxFileBytes: 1024 ** 2, maxTotalBytes: 5 * 1024 ** 2, keep: false },
  },
};

/** Every key with a value other than its default, in its written form. */
const all = {
  model: "local/a",
  system: "Be kind.",
  thinking: "high",
  cwd: "/w",
  tools: { allow: ["read_*"], deny: ["group:sessions"], ask: ["shell*"] },
  runTimeoutSeconds: 0,
  maxSteps: 7,
  sandboxed: true,
  visibility: everywhere("agent"),
  roots: ["/w", "/v"],
  subagents: {
    allowAgents: ["*"],
    maxSpawnDepth: 2,
    maxChildren: 20,
    archiveAfterMinutes: 0,
    tools: { allow: ["cron"], deny: ["group:mcp"] },
    attachments: { maxFileBytes: 1, maxTotalBytes: 2, keep: true },
  },
};

describe("the settings of an agent", () => {
  test("without settings, the built-in values apply, also to an agent that is not configured", () => {
    const config = configOf("");
    expect(agentSettings(config, "main")).toEqual(builtIn);
    expect(agentSettings(config, "constructor")).toEqual(builtIn);
  });

  test.each(Object.keys(all))("%s: its own, or that of defaults", (key) => {
    const said = { [key]: all[key as keyof typeof all] };
    const others = JSON.stringify({
      model: "b/b",
      system: "x",
      thinking: "low",
      cwd: "/x",
      tools: { allow: ["x"], deny: ["y"], ask: ["z"] },
      runTimeoutSeconds: 5,
      maxSteps: 5,
      sandboxed: false,
      visibility: { ...everywhere("self"), send: "all" },
      roots: ["/x"],
      subagents: {
        allowAgents: ["main"],
        maxSpawnDepth: 5,
        maxChildren: 6,
        archiveAfterMinutes: 7,
        tools: { allow: ["x"], deny: ["y"] },
        attachments: { maxFileBytes: 8, maxTotalBytes: 9, keep: false },
      },
    });
    const own = configOf(`agents: { main: ${JSON.stringify(said)}, other: {} }\ndefaults: ${others}`);
    expect(agentSettings(own, "main")).toEqual({ ...JSON.parse(others), ...said });
    expect(agentSettings(own, "other")).toEqual(JSON.parse(others));
    const general = configOf(`agents: { main: { ${key}: null } }\ndefaults: ${JSON.stringify(said)}`);
    expect(agentSettings(general, "main")).toEqual({ ...builtIn, ...said });
    expect(agentSettings(general, "unheard-of")).toEqual({ ...builtIn, ...said });
  });

  test("[AJN1] each list of tools counts separately, and an empty one has no effect", () => {
    const config = configOf(
      "agents: { main: { tools: { allow: [weather], deny: [], ask: [] } } }\ndefaults: { tools: { allow: [a], deny: [b], ask: [c] } }",
    );
    expect(agentSettings(config, "main").tools).toEqual({ allow: ["weather"], deny: ["b"], ask: ["c"] });
  });

  test("one key of spawn or visibility settings can be set without the others", () => {
    const config = configOf(
      [
        "tools: { sessions: { visibility: agent } }",
        "agents: { main: { visibility: { send: all }, subagents: { maxChildren: 2, attachments: { keep: true } } } }",
        "defaults: { visibility: { send: self, list: self }, subagents: { maxSpawnDepth: 3, allowAgents: [Main] } }",
      ].join("\n"),
    );
    const settings = agentSettings(config, "main");
    expect(settings.visibility).toEqual({ ...unsaid, send: "all", list: "self" });
    expect(settings.subagents).toEqual({
      ...builtIn.subagents,
      allowAgents: ["main"],
      maxSpawnDepth: 3,
      maxChildren: 2,
      attachments: { ...builtIn.subagents.attachments, keep: true },
    });
  });

  test("roots are absolute, wherever they were written", () => {
    const config = configOf("agents: { main: { roots: [~/work, here, /srv] } }");
    expect(agentSettings(config, "main").roots).toEqual(["/home/ann/work", "/p/here", "/srv"]);
  });

  test.each([
    ["subagents: { maxSpawnDepth: 0 }", "a whole number from 1 to 5"],
    ["subagents: { maxSpawnDepth: 6 }", "a whole number from 1 to 5"],
    ["subagents: { maxChildren: 21 }", "a whole number from 1 to 20"],
    ["subagents: { archiveAfterMinutes: -1 }", "a whole number from 0"],
    ["subagents: { allowAgents: [m*] }", "an agent ID, or * for any agent"],
    ["subagents: { attachments: { maxFileBytes: 0 } }", "a number of bytes"],
    ["visibility: some", '"self", "tree", "agent" or "all"'],
    ["sandboxed: 1", "true or false"],
    ["roots: [~bob/x]", "a path"],
  ])("%s is a mistake, in an agent and in defaults", (text, expected) => {
    for (const where of [`agents: { main: { ${text} } }`, `defaults: { ${text} }`]) {
      const { root } = parseConfigText(where, "/p/skein.yaml", () => undefined);
      const { problems } = readTree(sections, root === null ? [] : [root], () => place, place);
      expect(problems).toHaveLength(1);
      expect(problems[0]?.expected).toContain(expected);
    }
  });
});
