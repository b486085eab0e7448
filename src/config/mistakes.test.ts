import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { foldersOf, useConfigHome } from "../../test/support/config-home.ts";

const at = useConfigHome();
const { write, load, mistakes } = at;

describe("mistakes", () => {
  test("[CFG4] all are reported at once, with position, path, actual and expected value", async () => {
    const text = `store: redis://x
lock: 5
agents:
  "a b": {}
session:
  scope: [a]
  maintenance: { mode: wran, pruneAfter: 30, maxSessions: 0 }
`;
    expect(await mistakes(text)).toEqual([
      '1:8: store: found "redis://x", expected "files:<folder>", for example "files:~/.skein" or "files:~/.skein/agents/{agentId}", or "postgres://<role>:<password>@<host>/<database>" with special characters such as / and # percent-encoded',
      "2:7: lock: found 5, expected keys (timeoutMs)",
      '4:3: agents: found the key "a b", expected an agent ID: up to 64 letters, digits, underscores and hyphens, starting with a letter or digit',
      '6:10: session.scope: found a list, expected "per-sender" or "global"',
      '7:24: session.maintenance.mode: found "wran", expected "warn" or "enforce" (did you mean "warn"?)',
      '7:42: session.maintenance.pruneAfter: found 30, expected a duration such as "30d", "12h" or "45m" (units: ms s m h d w), or null for never',
      "7:59: session.maintenance.maxSessions: found 0, expected a whole number from 1 up, or null for no limit",
    ]);
    const file = join(at.home, "skein.yaml");
    await expect(load()).rejects.toMatchObject({
      code: "invalid_config",
      message:
        `The configuration is not valid: ${file}:1:8: store: found "redis://x", expected "files:<folder>", ` +
        `for example "files:~/.skein" or "files:~/.skein/agents/{agentId}", or "postgres://<role>:<password>@<host>/<database>" with special characters such as / and # percent-encoded, and 6 more. Correct ${[
          file,
          file,
          file,
          file,
          file,
        ]
          .map((each, index) => `${each}:${["1:8", "2:7", "4:3", "6:10", "7:24"][index]}`)
          .join(", ")} and 2 more; docs/configuration.md lists every key.`,
    });
  });

  test("[CFG4] reports a single one, and one in an incomplete group", async () => {
    write({ "skein.yaml": "durability: fast" });
    await expect(load()).rejects.toThrow(/found "fast", expected "full" or "os"\. Correct \S+:1:13;/);
    expect(await mistakes("session:\n  reset:\n    byKind:\n      cron: { minutes: 5 }")).toEqual([
      "4:13: session.reset.byKind.cron: found no mode, expected a mode",
    ]);
    expect(await mistakes("session: { reset: { byKind: { subagent: { mode: none } } } }")).toEqual([
      '1:31: session.reset.byKind: found the key "subagent", expected main, group, cron, hook, node or other',
    ]);
  });

  test("[CFG4] reports a field without effect in this mode", async () => {
    expect(await mistakes("session:\n  reset:\n    minutes: 30")).toEqual([
      '3:5: session.reset: found minutes, expected "mode: idle" with it (mode is none)',
    ]);
    const daily = "session: { reset: { mode: daily, atHour: 3 } }";
    expect(await mistakes(daily)).toEqual([]);
    expect(await mistakes(daily, { SKEIN_SESSION__RESET__MODE: "idle" })).toEqual([]);
  });

  test("[CFG5] reports unknown keys, with the nearest known one", async () => {
    expect(await mistakes("durabilty: os\nsession:\n  maintenence: {}\n  zebra: 1\n")).toEqual([
      '1:1: found the key "durabilty", expected one of store, durability, lock, postgres, blobs, gateway, agents, defaults, models, mcpServers, acp, tools, session, queue, lanes, budget, approvals, retries, yield, compaction, contextPruning, search, channels, schedules, redaction, telemetry, logging (did you mean durability?)',
      '3:3: session: found the key "maintenence", expected one of scope, dmScope, identityLinks, sendPolicy, agentToAgent, reset, maintenance (did you mean maintenance?)',
      '4:3: session: found the key "zebra", expected one of scope, dmScope, identityLinks, sendPolicy, agentToAgent, reset, maintenance',
    ]);
    expect(await mistakes('{"$schema": "./skein.schema.json"}')).toEqual([]);
    expect(await mistakes("lock: { $schema: x }")).toHaveLength(1);
  });

  test("[CFG6] variables are expanded once; missing ones and malformed names are mistakes", async () => {
    write({
      "skein.yaml":
        'agents:\n  a: { cwd: "/${A}/$${A}/${B}" }\nlock: { timeoutMs: "${T}" }\nsession: { maintenance: { pruneAfter: "${P}" } }',
    });
    const { config } = await load({ A: "${B}", B: "", T: "0x10", P: "null" });
    expect(config.agents.a?.cwd).toBe("/${B}/${A}");
    expect([config.lock.timeoutMs, config.session.maintenance.pruneAfter]).toEqual([16, null]);
    const text = "agents:\n  a:\n    cwd: >\n      /x/${GONE}\n      ${A\n      ${WENT}\n";
    expect(await mistakes(text, { A: "1" })).toEqual([
      "4:10: agents.a.cwd: found ${GONE}, expected the variable GONE to be set, in the environment or in the .env file next to this file",
      '5:7: agents.a.cwd: found "${", expected a variable name followed by } (use $${ for a literal ${)',
      "6:7: agents.a.cwd: found ${WENT}, expected the variable WENT to be set, in the environment or in the .env file next to this file",
    ]);
  });

  test("[CFG11] a key in the environment is not shown, nor is one in a mistyped variable", async () => {
    const env = {
      SKEIN_MODELS__PROVIDERS__ANTHROPIC__API_KEY: "hunter2",
      SKEIN_MODELS__PROVIDERS__ANTHROPIC__APIKEY: "hunter2",
      SKEIN_MODELS__PROVIDERS__ANTHROPIC__MY_API_KEY: "hunter2",
    };
    const told = await mistakes("", env);
    expect(told).toHaveLength(2);
    expect(told.join()).not.toContain("hunter2");
    const { config } = await load({ SKEIN_MODELS__PROVIDERS__ANTHROPIC__API_KEY: "true" });
    expect(config.models.providers.anthropic?.apiKey).toBe("true");
  });

  test("a single value may stand for a list, and a wrong item is reported at its position", async () => {
    const tools = (text: string) => `contextPruning:\n  tools:\n    deny: ${text}\n`;
    for (const [text, deny] of [
      ["[read_*, 'web_?']", ["read_*", "web_?"]],
      ['\n      - read_*\n      - "true"', ["read_*", "true"]],
      ["[]", []],
      ["", []],
      ["~", []],
      ['["${A}", "${A}x"]', ["a,b", "a,bx"]],
      ['"${A}, c,,"', ["a", "b", "c"]],
    ] as const) {
      write({ "skein.yaml": tools(text) });
      expect((await load({ A: "a,b" })).config.contextPruning.tools.deny).toEqual(deny);
    }
    const each = "a non-empty string";
    expect(await mistakes(tools("[a, 1, '', {b: c}, [d], ~]"))).toEqual([
      `3:15: contextPruning.tools.deny.1: found 1, expected ${each}`,
      `3:18: contextPruning.tools.deny.2: found "", expected ${each}`,
      `3:22: contextPruning.tools.deny.3: found keys, expected ${each}`,
      `3:30: contextPruning.tools.deny.4: found a list, expected ${each}`,
      `3:35: contextPruning.tools.deny.5: found null, expected ${each}`,
    ]);
    expect(await mistakes(tools("&a [*a, '${GONE}']"))).toEqual([
      "3:15: contextPruning.tools.deny.0: found the alias *a, expected a non-empty string",
      expect.stringContaining("3:20: contextPruning.tools.deny.1: found ${GONE}"),
    ]);
    expect(await mistakes(tools("read_*"))).toEqual([
      `3:11: contextPruning.tools.deny: found "read_*", expected a list; each item must be ${each}`,
    ]);
    expect(await mistakes(tools("{ a: b }"))).toEqual([
      `3:11: contextPruning.tools.deny: found keys, expected a list; each item must be ${each}`,
    ]);
  });

  test("in the environment, commas separate items, and the whole list is replaced", async () => {
    write({ "skein.yaml": "contextPruning: { tools: { deny: [a, b] } }" });
    const name = "SKEIN_CONTEXT_PRUNING__TOOLS__DENY";
    const { config, sources } = await load({ [name]: " c , d*,," });
    expect(config.contextPruning.tools).toEqual({ allow: [], deny: ["c", "d*"] });
    expect(Object.isFrozen(config.contextPruning.tools.deny)).toBe(true);
    expect(sources.get("contextPruning.tools.deny")).toMatchObject({ from: "environment", variable: name });
    expect(sources.get("contextPruning.tools.allow")).toEqual({ from: "default" });
    expect(await mistakes("", { [`${name}__0`]: "x" })).toEqual([
      `${name}__0: found "x", expected ${name}, without a suffix`,
    ]);
  });

  test.each([
    "contextPruning: { mode: off }\nagents: { main: { thinking: off } }",
    '{"contextPruning": {"mode": false}, "agents": {"main": {"thinking": false}}}',
    "%YAML 1.1\n---\ncontextPruning: { mode: off }\nagents: { main: { thinking: no } }",
    'contextPruning: { mode: "${OFF}" }\nagents: { main: { thinking: "${OFF}" } }',
  ])("off means off, even if it was parsed as false: %j", async (text) => {
    write({ "skein.yaml": text });
    const { config } = await load({ OFF: "off" });
    expect([config.contextPruning.mode, config.agents.main?.thinking]).toEqual(["off", "off"]);
    expect(await mistakes("contextPruning: { mode: true }")).toEqual([
      '1:25: contextPruning.mode: found true, expected "off" or "cache-ttl"',
    ]);
  });

  test("a variable of a setting is checked like the file, and named", async () => {
    const env = {
      SKEIN_DURABILITY: "fast",
      SKEIN_DURABILTY: "os",
      SKEIN_LOCK: "1",
      SKEIN_LOCK__TIMEOUT_MS__X: "1",
      SKEIN_SESSION__MODE: "x",
      SKEIN_SESSION__RESET__BY_KIND__CRON__MINUTES: "soon",
      SKEIN_AGENTS____CWD: "/x",
      SKEIN_CRASH_ROUNDS: "9",
      SKEINY: "1",
    };
    expect(await mistakes("", env)).toEqual([
      expect.stringMatching(/^SKEIN_AGENTS____CWD: agents: found the key "", expected an agent ID/),
      'SKEIN_DURABILITY: durability: found "fast", expected "full" or "os"',
      expect.stringMatching(
        /^SKEIN_DURABILTY: found "os", expected one of .*did you mean SKEIN_DURABILITY\?/,
      ),
      'SKEIN_LOCK: found "1", expected SKEIN_LOCK__TIMEOUT_MS',
      'SKEIN_LOCK__TIMEOUT_MS__X: found "1", expected SKEIN_LOCK__TIMEOUT_MS, without a suffix',
      'SKEIN_SESSION__MODE: found "x", expected one of SKEIN_SESSION__SCOPE, SKEIN_SESSION__DM_SCOPE, SKEIN_SESSION__IDENTITY_LINKS, SKEIN_SESSION__SEND_POLICY, SKEIN_SESSION__AGENT_TO_AGENT, SKEIN_SESSION__RESET, SKEIN_SESSION__MAINTENANCE',
      "SKEIN_SESSION__RESET__BY_KIND__CRON__MINUTES: session.reset.byKind.cron: found no mode, expected a mode",
      'SKEIN_SESSION__RESET__BY_KIND__CRON__MINUTES: session.reset.byKind.cron.minutes: found "soon", expected a whole number from 1 to 5256000',
    ]);
    expect(await mistakes("", { SKEIN_LOCK__TIMEOUTMS: "1", SKEIN_LOCK__TIMEOUT_MS: "2" })).toEqual([
      'SKEIN_LOCK__TIMEOUT_MS: lock.timeoutMs: found "2", expected only one variable for this setting (SKEIN_LOCK__TIMEOUTMS is also set)',
    ]);
  });

  test("environment text can set numbers and null, and finds keys of the file", async () => {
    write({
      "skein.yaml":
        "agents: { my-agent: {}, Other: {} }\nsession: { reset: { mode: none, byChannel: { Slack: { mode: none } } } }",
    });
    const { config } = await load({
      SKEIN_LOCK__TIMEOUT_MS: "2000",
      SKEIN_SESSION__MAINTENANCE__MAX_SESSIONS: "null",
      SKEIN_SESSION__MAINTENANCE__MAX_DISK_BYTES: "2GB",
      SKEIN_SESSION__MAINTENANCE__HIGHWATER: "0.5",
      SKEIN_AGENTS__MY_AGENT__CWD: "123",
      SKEIN_AGENTS__OTHER__CWD: "null",
      SKEIN_AGENTS__NEW__CWD: "/new",
      SKEIN_SESSION__RESET__BY_CHANNEL__SLACK__MODE: "daily",
    });
    expect(config.lock.timeoutMs).toBe(2000);
    expect(config.session.maintenance).toMatchObject({
      maxSessions: null,
      maxDiskBytes: 2e9,
      highWater: 0.5,
    });
    expect(foldersOf(config)).toEqual({
      "my-agent": { cwd: join(at.home, "123") },
      other: { cwd: join(at.home, "null") },
      new: { cwd: "/new" },
    });
    expect(config.session.reset.byChannel).toMatchObject({ Slack: { mode: "daily" } });
  });

  test.each([
    [
      "a repeated key",
      "durability: os\nlock: {}\ndurability: full",
      '3:1: found a duplicate key "durability", expected a unique key (first used on line 1)',
    ],
    [
      "a repeated key of JSON",
      '{"lock": {"timeoutMs": 1,\n "timeoutMs": 2}}',
      '2:2: lock: found a duplicate key "timeoutMs", expected a unique key (first used on line 1)',
    ],
    [
      "the same agent twice",
      "agents:\n  main: {}\n  Main: {}",
      '3:3: agents: found the key "Main", expected a unique key ("main" is the same key)',
    ],
    ["a tab", "lock:\n\ttimeoutMs: 1", "2:1: found a tab used for indentation, expected spaces"],
    [
      "an alias",
      "lock: &l { timeoutMs: 1 }\nagents: { a: *l }",
      "2:14: agents.a: found the alias *l, expected the value itself (aliases are not supported)",
    ],
    [
      "a merge key",
      "lock:\n  <<: { timeoutMs: 1 }",
      "2:3: lock: found a merge key (<<), expected the keys themselves (merging is not supported)",
    ],
    [
      "a merge key of YAML 1.1",
      "%YAML 1.1\n---\nlock:\n  <<: { timeoutMs: 1 }",
      "4:3: lock: found a merge key (<<), expected the keys themselves (merging is not supported)",
    ],
    [
      "a list",
      "- a\n- b",
      "1:1: found a list, expected keys (store, durability, lock, postgres, blobs, gateway, agents, defaults, models, mcpServers, acp, tools, session, queue, lanes, budget, approvals, retries, yield, compaction, contextPruning, search, channels, schedules, redaction, telemetry, logging)",
    ],
    [
      "a text",
      "hello",
      '1:1: found "hello", expected keys (store, durability, lock, postgres, blobs, gateway, agents, defaults, models, mcpServers, acp, tools, session, queue, lanes, budget, approvals, retries, yield, compaction, contextPruning, search, channels, schedules, redaction, telemetry, logging)',
    ],
    ["two documents", "lock: {}\n---\nlock: {}", "2:1: found a second document, expected a single document"],
    [
      "a prototype",
      "lock: {}\nagents:\n  __proto__: {}",
      '3:3: agents: found the key "__proto__", expected a different name',
    ],
    [
      "a prototype at the top",
      '{"__proto__": {"durability": "os"}}',
      '1:2: found the key "__proto__", expected a different name',
    ],
    ["a key that is a list", "? [a]\n: b", "1:3: found a key that is not a string, expected a string"],
    [
      "a tag",
      "durability: !os full",
      "1:13: found invalid YAML (unresolved tag: !os), expected valid YAML or JSON",
    ],
    [
      "bytes",
      "durability: !!binary aGk=",
      "1:22: durability: found a value with a custom tag, expected text, a number, true, false or null",
    ],
    [
      "a variable in braces",
      "agents: { a: { cwd: ${W} } }",
      expect.stringContaining('(did you mean "${NAME}" with quotes?)'),
    ],
    ["deep nesting", "[".repeat(20_000), expect.stringContaining("brackets nested too deeply")],
    ["a megabyte", `# ${"x".repeat(1_000_000)}`, "1:1: found 1000002 characters, expected at most 1000000"],
  ])("refuses %s", async (_, text, expected) => {
    const [first, ...others] = await mistakes(text);
    expect(first).toEqual(expected);
    expect(others.length).toBeLessThan(10);
  });

  test("an alias bomb is harmless", async () => {
    const lines = Array.from(
      { length: 30 },
      (_, n) => `  a${n}: &a${n} [${`*a${n - 1}, `.repeat(n === 0 ? 0 : 9)}]`,
    );
    expect(await mistakes(`agents:\n${lines.join("\n")}\n`)).toHaveLength(30);
  });

  test("the loaded configuration is frozen, and its tables inherit nothing", async () => {
    write({ "skein.yaml": "agents: { constructor: {} }" });
    const { config } = await load();
    expect(Object.keys(config.agents)).toEqual(["constructor"]);
    expect([config.agents.toString, config.session.reset.byChannel.constructor]).toEqual([
      undefined,
      undefined,
    ]);
    const parts = [
      config,
      config.store,
      config.agents,
      config.agents.constructor,
      config.session.reset.byKind,
    ];
    expect(parts.every((part) => Object.isFrozen(part))).toBe(true);
  });
});
