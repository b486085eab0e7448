import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { system } from "../support/family.ts";
import { answering, closeAll, withScript } from "../support/skein.ts";

let folder: TemporaryFolder;
let home: string;
beforeEach(() => {
  folder = temporaryFolder("skein-file-");
  home = realpathSync(folder.path);
});
afterEach(async () => {
  await closeAll();
  folder.remove();
});

type Env = Readonly<Record<string, string>>;

function write(name: string, text: string): string {
  const file = join(home, name);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
  return file;
}

interface Configuration {
  readonly file?: string;
  readonly problems: readonly string[];
  readonly effective: string;
}

/** Returns the configuration that `doctor` reports for a folder. */
async function configurationAt(cwd = home, env: Env = {}): Promise<Configuration> {
  const { out } = await run(["doctor", "--json"], { cwd, home, env: { SKEIN_GATEWAY__PORT: "0", ...env } });
  return JSON.parse(out).configuration;
}

/** Returns the errors in a `skein.yaml` that `doctor` reports. */
async function problemsOf(text: string, env: Env = {}): Promise<string> {
  write("skein.yaml", text);
  return (await configurationAt(home, env)).problems.join("\n");
}

const slack = "type: chat-sdk, adapter: slack";

test.each([
  [
    "no adapter",
    "{ type: chat-sdk }",
    /2:17: channels\.team\.type: found chat-sdk without an adapter, expected an adapter \(slack, telegram/,
  ],
  [
    "a missing setting",
    `{ ${slack}, settings: { botToken: x } }`,
    /2:36: channels\.team\.adapter: found slack, expected settings\.signingSecret: the Slack app's signing secret/,
  ],
  [
    "an unknown setting",
    `{ ${slack}, settings: { botToken: x, signingSecret: y, signinSecret: z } }`,
    /found signinSecret, expected a setting of the Slack adapter \(botToken, signingSecret, apiUrl\).*did you mean signingSecret/,
  ],
  [
    "a variable that is not set",
    `{ ${slack}, settings: { botToken: x, signingSecret: "\${SLACK_SECRET}" } }`,
    /SLACK_SECRET/,
  ],
  [
    "one of several",
    "{ type: chat-sdk, adapter: gchat, settings: { credentials: '{}' } }",
    /expected settings\.googleChatProjectNumber or settings\.endpointUrl/,
  ],
  [
    "text that is not JSON",
    "{ type: chat-sdk, adapter: gchat, settings: { credentials: secret-key, endpointUrl: x } }",
    /^(?!.*secret-key).*expected a JSON object, written as text/,
  ],
])("[CHT15] a chat channel with %s is reported with its line", async (_, channel, problem) => {
  expect(await problemsOf(`channels:\n  team: ${channel}\n`)).toMatch(problem);
});

test.each([
  ["a chat platform", `${slack}, settings: { botToken: x, signingSecret: y }`],
  ["a webhook", 'type: webhook, secret: "0123456789abcdef0123456789abcdef"'],
])("[CHT21] an unknown agent of %s is reported with its line", async (_, channel) => {
  const told = await problemsOf(`agents: { desk: {} }\nchannels:\n  team: { ${channel},\n    agent: dsk }\n`);
  expect(told).toMatch(
    /:4:12: channels\.team\.agent: found "dsk", expected an agent: desk \(did you mean "desk"\?\)/,
  );
  expect(await problemsOf(`agents: { desk: {} }\nchannels: { team: { ${channel}, agent: desk } }\n`)).toBe(
    "",
  );
});

test("[SCH15] a schedule's message that is blank is reported", async () => {
  expect(await problemsOf('schedules: { daily: { cron: "@daily", message: "  " } }\n')).toContain(
    'schedules.daily.message: found "  ", expected text that is not blank',
  );
});

test("[CHT24] a channel's agent is reported if all messages go to one session", async () => {
  const told = await problemsOf(
    `session: { scope: global }\nagents: { desk: {} }\nchannels:\n  team: { ${slack}, settings: { botToken: x, signingSecret: y }, agent: desk }\n`,
  );
  expect(told).toMatch(
    /channels\.team\.agent: found "desk", expected no agent, because session\.scope is global/,
  );
});

test.each([
  ["61 9 * * 1-5", "a valid first field: minutes from 0 to 59"],
  ["0 25 * * *", "a valid second field: hours from 0 to 23"],
  ["0 9 32 * *", "a valid third field: days of the month from 1 to 31"],
  ["0 9 * FOO *", "a valid fourth field: months from 1 to 12"],
  ["0 9 * * 8", "a valid fifth field: days of the week from 0 (Sunday) to 7"],
  [
    "0 17-9 * * *",
    "a valid second field: hours from 0 to 23, with ranges in ascending order and steps of at least 1",
  ],
  ["0 0 30 2 *", "a time that occurs; this one never does"],
  ["0 9 * *", 'five fields such as "0 9 * * 1-5"'],
])("[SCH15] the cron expression %s is reported with what it needs", async (cron, needed) => {
  const told = await problemsOf(`schedules: { daily: { cron: "${cron}", message: x } }\n`);
  expect(told).toContain(`schedules.daily.cron: found "${cron}", expected a cron expression with ${needed}`);
});

test("[CFG4] every command prints each of several mistakes", async () => {
  const daily =
    '{ cron: "61 9 * * *", message: x, timezone: Europe/Berln, agent: nobody, deliverTo: { channel: no } }';
  write("skein.yaml", `schedules:\n  daily: ${daily}\n`);
  const { err, exit } = await run(["schedules", "ls"], { cwd: home, home });
  expect(exit).toBe(1);
  const [first, ...others] = err.trimEnd().split("\n");
  expect(first).toContain("schedules.daily.cron: found");
  expect(others).toEqual([
    expect.stringMatching(
      /^ {2}\S+skein\.yaml:2:\d+: schedules\.daily\.timezone: found "Europe\/Berln", expected/,
    ),
    expect.stringMatching(/^ {2}\S+skein\.yaml:2:\d+: schedules\.daily\.agent: found "nobody", expected/),
    expect.stringMatching(
      /^ {2}\S+skein\.yaml:2:\d+: schedules\.daily\.deliverTo\.channel: found "no", expected/,
    ),
  ]);
});

test("[SCH18] schedules ls shows due times in the time zone of the schedule", async () => {
  write(
    "skein.yaml",
    [
      "store: files:.skein",
      "schedules:",
      '  office: { cron: "0 9 * * *", timezone: Europe/Berlin, message: x }',
      '  server: { cron: "30 9 * * *", message: x }',
      "",
    ].join("\n"),
  );
  await run(["sessions", "new"], { cwd: home, home });
  const { out } = await run(["schedules", "ls"], { cwd: home, home });
  expect(out).toMatch(/office .* \d{4}-\d\d-\d\d 09:00 GMT\+[12]\b/);
  expect(out).toMatch(/server .* \d{4}-\d\d-\d\d 09:30 UTC\b/);
});

describe("the configuration file", () => {
  test("[CFG2] is the nearest one upward from the current folder", async () => {
    const deep = join(home, "a/b/c");
    mkdirSync(deep, { recursive: true });
    expect(await configurationAt(deep)).not.toHaveProperty("file");
    const above = write("a/skein.yml", "durability: os");
    expect((await configurationAt(deep)).file).toBe(above);
    const near = write("a/b/skein.json", '{"lock": {"timeoutMs": 5}}');
    const { file, effective } = await configurationAt(deep);
    expect(file).toBe(near);
    expect(effective).toContain(`timeoutMs: 5 # ${near}:1`);
    expect(effective).toContain("durability: full # default");
    expect((await configurationAt(join(home, "a"))).file).toBe(above);
  });

  test("[CFG3] is overridden by an environment variable", async () => {
    write("skein.yaml", "durability: os\nlanes: { main: 3, cron: 2 }\n");
    const { effective } = await configurationAt(home, { SKEIN_LANES__MAIN: "9" });
    expect(effective).toContain("main: 9 # SKEIN_LANES__MAIN\n");
    expect(effective).toContain(`cron: 2 # ${home}/skein.yaml:2\n`);
    expect(effective).toContain(`durability: os # ${home}/skein.yaml:1\n`);
  });

  test("[CFG3] the real environment takes precedence over .env", async () => {
    write("skein.yaml", "lanes: { main: 3 }\n");
    write(".env", "SKEIN_LANES__MAIN=5\nSKEIN_LANES__CRON=6\n");
    const { effective } = await configurationAt(home, { SKEIN_LANES__MAIN: "9" });
    expect(effective).toContain("main: 9 # SKEIN_LANES__MAIN\n");
    expect(effective).toContain("cron: 6 # SKEIN_LANES__CRON in ");
  });

  test("[CFG4] with several mistakes is reported with file, line and column of each", async () => {
    const told = await problemsOf("lock: 5\nsession:\n  scope: [a]\n  maintenance: { mode: wran }\n");
    for (const place of ["1:7: lock", "3:10: session.scope", "4:24: session.maintenance.mode"])
      expect(told).toContain(`${home}/skein.yaml:${place}`);
  });

  test("[CFG4] that is not YAML is reported with the position", async () => {
    expect(await problemsOf("lock: {}\nagents: { main: \n")).toMatch(/skein\.yaml:[23]:\d+/);
  });

  test("[CFG5] with an unknown setting is reported with the closest one", async () => {
    const told = await problemsOf("durabilty: os\nsession:\n  maintenence: {}\n");
    expect(told).toContain('found the key "durabilty"');
    expect(told).toContain("did you mean durability?");
    expect(told).toContain("did you mean maintenance?");
  });

  test("[CFG5] an unknown Skein variable is a mistake too", async () => {
    expect(await problemsOf("", { SKEIN_DURABILTY: "os" })).toContain("SKEIN_DURABILITY");
  });
});

// biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of the configuration
const who = "${WHO}";

describe("a variable in the configuration file", () => {
  const main = `agents: { main: { model: rehearsal/script, system: "You are ${who}, not $${who}." } }\n`;

  test("[CFG6] is replaced by its value, once", async () => {
    const config = write("skein.yaml", main);
    const { skein, model } = await withScript(
      answering(),
      {},
      { config, agents: [], env: { WHO: `the ${who}` } },
    );
    await skein.session().send("hello").result;
    expect(system(model.requests[0])).toContain(`You are the ${who}, not ${who}.`);
  });

  test("[CFG6] that is not set is a mistake at its position", async () => {
    expect(await problemsOf(`\n${main}`)).toContain(`skein.yaml:2:61: agents.main.system: found ${who}`);
  });
});

describe("secret settings", () => {
  const key = "hunter2-and-more";
  const provider = `{ apiKey: ${key}, headers: { x-team: ${key} }, baseUrl: 'https://ann:${key}@x.org/v1' }`;
  const text = `models: { providers: { anthropic: ${provider} } }
acp: { agents: { claude: { env: { TEAM: ${key} } } } }
defaults: { system: "${who}" }
`;

  test.each([["doctor"], ["doctor --all"], ["doctor --json"]])(
    "[CFG11] are not printed by %s",
    async (args) => {
      write("skein.yaml", text);
      const env = { SKEIN_GATEWAY__PORT: "0", SKEIN_MODELS__PROVIDERS__OPENAI__API_KEY: key, WHO: key };
      const { out, err } = await run(args.split(" "), { cwd: home, home, env });
      for (const name of ["apiKey", "x-team", "TEAM", "system"])
        expect(out).toMatch(new RegExp(`${name}: \\\\?"\\*\\*\\*`));
      expect(out + err).not.toContain("hunter2");
    },
  );

  test("[CFG11] are not printed in mistakes", async () => {
    const told = await problemsOf(
      "models: { providers: { a: { apiKey: [hunter2] } } }\nacp: { agents: { claude: { env: { TEAM: [hunter2] } } } }\n",
    );
    expect(told).toContain("apiKey");
    expect(told).toContain("TEAM");
    expect(told).not.toContain("hunter2");
  });
});

describe("an agent without a configured model", () => {
  const groq = "{ apiKey: k, baseUrl: 'https://x.org/v1', models: { one: {}, two: {} } }";
  test.each<[string, Env, string, RegExp]>([
    ["without a key, the rehearsal", {}, "", /^rehearsal\/basic$/],
    ["with a blank key, the rehearsal", { ANTHROPIC_API_KEY: " " }, "", /^rehearsal\/basic$/],
    ["Anthropic", { ANTHROPIC_API_KEY: "k" }, "", /^anthropic\//],
    ["OpenAI", { OPENAI_API_KEY: "k" }, "", /^openai\//],
    ["Google", { GEMINI_API_KEY: "k" }, "", /^google\//],
    ["Mistral", { MISTRAL_API_KEY: "k" }, "", /^mistral\//],
    ["the first of several", { MISTRAL_API_KEY: "k", OPENAI_API_KEY: "k" }, "", /^openai\//],
    ["a key in the file", {}, "models: { providers: { mistral: { apiKey: k } } }", /^mistral\//],
    ["another server", {}, `models: { providers: { groq: ${groq} } }`, /^groq\/one$/],
    ["the configured model", { OPENAI_API_KEY: "k" }, "defaults: { model: rehearsal/basic }", /^rehearsal\//],
  ])("[CFG19] uses the provider whose key is set: %s", async (_, env, text, model) => {
    const config = write("skein.yaml", text);
    const skein = await createSkein({ memory: true, config, env, quiet: true });
    try {
      const sessionKey = "agent:main:main";
      await skein.store.sessions.create({ agentId: "main" }, { key: sessionKey, cwd: home });
      const { result } = await skein.callTool("agents_list", {}, { sessionKey });
      expect(result).toMatchObject({ agents: [{ id: "main", model: expect.stringMatching(model) }] });
    } finally {
      await skein.close();
    }
  });
});
