import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { anyConfig } from "../../test/support/config.ts";
import { effectiveConfigText, effectiveText, setConfigText } from "./effective.ts";
import { defaultConfig } from "./load.ts";
import { parseConfigText } from "./parse-yaml.ts";
import { problemText } from "./problems.ts";
import { readTree } from "./read-tree.ts";
import { secretValues } from "./secrets.ts";
import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";
import { filePath } from "./settings/kinds.ts";
import type { Node } from "./settings/setting.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };

function read(text: string, env: Record<string, string> = {}, node: Node = sections) {
  const { root, problems } = parseConfigText(text, "/p/skein.yaml", (name) => env[name]);
  const result = readTree(node, root === null ? [] : [root], () => place, place);
  return { ...result, problems: [...problems, ...result.problems] };
}

describe("the effective configuration", () => {
  test("is the same after writing and reading it", () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const first = read(stringify(config));
        const text = effectiveConfigText({ config: first.value as Config, sources: first.sources });
        const again = read(text);
        expect(again.problems).toEqual([]);
        expect(compared(again.value)).toEqual(compared(first.value));
      }),
    );
  });

  test("default values are marked as defaults", () => {
    const text = effectiveConfigText({ config: defaultConfig("/r"), sources: new Map() });
    expect(text).toContain("store: files:/r # default\n");
    expect(text).toContain("  maintenance:\n    mode: warn # default\n    pruneAfter: 30d # default\n");
    expect(read(text).value).toEqual(defaultConfig("/r"));
  });

  test("[CFG3] contains exactly the values that were set", () => {
    const text =
      "lock:\n  timeoutMs: 5\nacp: { agents: { gemini: {} } }\nagents: { main: { tools: { deny: [x] } } }\n";
    const { value, sources } = read(text);
    expect(setConfigText({ config: value as Config, sources })).toBe(
      [
        "lock:",
        "  timeoutMs: 5 # /p/skein.yaml:2",
        "agents:",
        "  main:",
        "    tools:",
        "      deny: [ x ] # /p/skein.yaml:4",
        "acp:",
        "  agents:",
        "    gemini: {}",
        "",
      ].join("\n"),
    );
    expect(setConfigText({ config: defaultConfig("/r"), sources: new Map() })).toBe("");
  });

  test("reading the set values again gives the same configuration", () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const first = read(stringify(config));
        const again = read(setConfigText({ config: first.value as Config, sources: first.sources }));
        expect(again.problems).toEqual([]);
        expect(compared(again.value)).toEqual(compared(first.value));
      }),
    );
  });

  test("[CFG3] each value has its source", () => {
    const { value, sources } = read("\nlock:\n  timeoutMs: 5\n");
    const text = effectiveConfigText({
      config: value as Config,
      sources: new Map([
        ...sources,
        ["store", { from: "option", option: "--dir" }],
        ["durability", { from: "environment", variable: "SKEIN_DURABILITY", file: "/p/.env", secret: false }],
      ]),
    });
    expect(text.split("\n").slice(0, 4)).toEqual([
      "store: files:/r # --dir",
      "durability: full # SKEIN_DURABILITY in /p/.env",
      "lock:",
      "  timeoutMs: 5 # /p/skein.yaml:3",
    ]);
  });

  test("[CFG11] a value from a variable is not shown", () => {
    const env = { SECRET: "/hunter2", LIMIT: "hunter2" };
    const { value, sources } = read('agents: { main: { cwd: "x${SECRET}" } }', env);
    const text = effectiveConfigText({ config: value as Config, sources });
    expect(text).toContain('cwd: "***" # /p/skein.yaml:1\n');
    expect(text).not.toContain("hunter2");
    const wrong = read('lock: { timeoutMs: "${LIMIT}" }\nsession: "${LIMIT}"\ndurability: "${LIMIT}"', env);
    const told = wrong.problems.map(problemText);
    expect(told.filter((each) => each.includes("found the value of ${LIMIT}"))).toHaveLength(3);
    expect(told.join()).not.toContain("hunter2");
  });

  test.each(["apiKey", "api_key", "token", "clientSecret", "PASSWORD", "authorization", "credentials"])(
    "[CFG11] a value named %s is not shown",
    (key) => {
      const setting = { node: "setting", about: "", kind: filePath, fallback: () => "/hunter2" } as const;
      const group = { node: "group", about: "", fields: { [key]: setting, maxTokens: setting } } as const;
      const text = effectiveText(group, { [key]: "/hunter2", maxTokens: "/shown" }, new Map());
      expect(text).toBe(`${key}: "***" # default\nmaxTokens: /shown # default\n`);
    },
  );

  test("[CFG11] keys and headers are shown nowhere, wherever they come from and whatever is wrong with them", () => {
    const provider =
      "{ apiKey: hunter2, headers: { x-team: hunter2 }, baseUrl: 'https://ann:hunter2@x.org/v1' }";
    const { value, sources, problems } = read(`models: { providers: { anthropic: ${provider} } }`);
    const text = effectiveConfigText({ config: value as Config, sources });
    expect(problems).toEqual([]);
    expect(text).toContain('apiKey: "***" # /p/skein.yaml:1');
    expect(text).toContain('x-team: "***" # /p/skein.yaml:1');
    expect(text).toContain("https://ann:***@x.org/v1");
    expect(text).not.toContain("hunter2");
    const wrong = read("models: { providers: { a: { apiKey: 1337, headers: { x-team: 1337 } } } }");
    expect(wrong.problems.map(problemText)).toEqual([
      "/p/skein.yaml:1:37: models.providers.a.apiKey: found a hidden value, expected a non-empty string, or null for the provider's usual environment variable",
      "/p/skein.yaml:1:62: models.providers.a.headers.x-team: found a hidden value, expected a non-empty string",
    ]);
  });

  test("a list has its source, and hides items that came from a variable", () => {
    const { value, sources } = read(
      'contextPruning: { tools: { allow: [a, "b*"], deny: [c, "${SECRET}"] } }',
      { SECRET: "hunter2" },
    );
    const text = effectiveConfigText({ config: value as Config, sources });
    expect(text).toContain("    allow: [ a, b* ] # /p/skein.yaml:1\n");
    expect(text).toContain('    deny: [ "***", "***" ] # /p/skein.yaml:1\n');
  });

  test("[CFG11] the password in an address is not shown", () => {
    const [told] = read("store: mysql://ann:hunter2@db/skein").problems.map(problemText);
    expect(told).toContain('found "mysql://ann:***@db/skein"');
    const { value, sources } = read("store: postgres://ann:hunter2@db/skein");
    const text = effectiveConfigText({ config: value as Config, sources });
    expect(text).toContain("store: postgres://ann:***@db/skein # ");
    expect(secretValues(value as Config)).toContain("hunter2");
  });
});

/** A field that has no effect because of the others can have any value, and secrets are not written. */
function compared(value: unknown): unknown {
  const config = structuredClone(value) as {
    session: { reset: Plain & { byKind: Plain; byChannel: Plain } };
    models: { providers: Record<string, { apiKey: string | null; headers: Plain }> };
    mcpServers: Record<string, { env: Plain; headers: Plain }>;
    acp: { agents: Record<string, { env: Plain }> };
    channels: Record<string, { secret: string | null }>;
  };
  const ofServers = Object.values(config.mcpServers).flatMap(({ env, headers }) => [env, headers]);
  for (const secrets of [...ofServers, ...Object.values(config.acp.agents).map(({ env }) => env)]) {
    for (const name of Object.keys(secrets)) secrets[name] = "***";
  }
  for (const channel of Object.values(config.channels)) channel.secret &&= "***";
  for (const provider of Object.values(config.models.providers)) {
    provider.apiKey &&= "***";
    for (const name of Object.keys(provider.headers)) provider.headers[name] = "***";
  }
  const { reset } = config.session;
  for (const rule of [reset, ...Object.values(reset.byKind), ...Object.values(reset.byChannel)] as Plain[]) {
    if (rule.mode !== "daily") delete rule.atHour;
    if (rule.mode !== "idle") delete rule.minutes;
  }
  return config;
}

type Plain = Record<string, unknown>;
