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

const builtIn = {
  model: null,
  system: null,
  thinking: "off",
  cwd: null,
  tools: { allow: [], deny: [] },
  runTimeoutSeconds: 3600,
  maxSteps: 50,
};

/** Every key, other than it is built in, and written. */
const all = {
  model: "local/a",
  system: "Be kind.",
  thinking: "high",
  cwd: "/w",
  tools: { allow: ["read_*"], deny: ["group:sessions"] },
  runTimeoutSeconds: 0,
  maxSteps: 7,
};

describe("what holds for an agent", () => {
  test("[CFG18] nobody says anything: the built-in values, for an agent that is not configured too", () => {
    const config = configOf("");
    expect(agentSettings(config, "main")).toEqual(builtIn);
    expect(agentSettings(config, "constructor")).toEqual(builtIn);
  });

  test.each(Object.keys(all))("[CFG18] %s: its own, else that of defaults", (key) => {
    const said = { [key]: all[key as keyof typeof all] };
    const others = JSON.stringify({
      model: "b/b",
      system: "x",
      thinking: "low",
      cwd: "/x",
      tools: { allow: ["x"], deny: ["y"] },
      runTimeoutSeconds: 5,
      maxSteps: 5,
    });
    const own = configOf(`agents: { main: ${JSON.stringify(said)}, other: {} }\ndefaults: ${others}`);
    expect(agentSettings(own, "main")).toEqual({ ...JSON.parse(others), ...said });
    expect(agentSettings(own, "other")).toEqual(JSON.parse(others));
    const general = configOf(`agents: { main: { ${key}: null } }\ndefaults: ${JSON.stringify(said)}`);
    expect(agentSettings(general, "main")).toEqual({ ...builtIn, ...said });
    expect(agentSettings(general, "unheard-of")).toEqual({ ...builtIn, ...said });
  });

  test("[CFG18] the two lists of tools count each by itself, and an empty one says nothing", () => {
    const config = configOf(
      "agents: { main: { tools: { allow: [weather], deny: [] } } }\ndefaults: { tools: { allow: [a], deny: [b] } }",
    );
    expect(agentSettings(config, "main").tools).toEqual({ allow: ["weather"], deny: ["b"] });
  });
});
