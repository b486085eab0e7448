import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { ConfigInput } from "../../src/index.ts";
import { createSkein } from "../../src/index.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder("skein-configuration-");
});
afterEach(() => folder.remove());

const visibility = { list: "all", history: "agent", send: "tree", status: "self" } as const;
const tools = { allow: ["sessions_*"], deny: ["session_search"], ask: ["sessions_send"] };
const subagents = {
  allowAgents: ["desk"],
  maxSpawnDepth: 2,
  maxChildren: 3,
  archiveAfterMinutes: 5,
  tools: { allow: ["sessions_list"], deny: ["subagents"] },
  attachments: { maxFileBytes: "2MiB", maxTotalBytes: "3MiB", keep: true },
};
const idle = { mode: "idle", minutes: 90 } as const;
const daily = { mode: "daily", atHour: 5 } as const;

/**
 * Every setting in docs/configuration.md, each with a value other than its default. `rule` contains the settings for
 * one kind of reset.
 */
const everySetting = (root: string, rule: typeof idle | typeof daily): ConfigInput => ({
  store: `files:${root}`,
  durability: "os",
  lock: { timeoutMs: 5000 },
  postgres: {
    workerUrl: "postgres://worker@localhost/skein",
    migratorUrl: "postgres://owner@localhost/skein",
    directUrl: "postgres://listener@localhost/skein",
    maxConnections: 20,
  },
  blobs: {
    s3: {
      bucket: "images",
      endpoint: "https://s3.example.org",
      region: "eu-central-1",
      prefix: "skein/",
      accessKeyId: "id",
      secretAccessKey: "secret",
      forcePathStyle: false,
    },
  },
  gateway: {
    host: "localhost",
    port: 0,
    expose: true,
    allowedHosts: ["skein.example.org"],
    trustProxy: ["10.0.0.0/8"],
    basePath: "/skein",
    console: false,
    role: "all",
  },
  agents: {
    desk: {
      model: "rehearsal/basic",
      system: "You sell tickets.",
      thinking: "low",
      cwd: "desk/{userId}",
      tools,
      runTimeoutSeconds: 60,
      maxSteps: 7,
      sandboxed: true,
      visibility,
      roots: ["desk"],
      subagents,
    },
  },
  defaults: {
    model: "rehearsal/basic",
    system: "You plan journeys.",
    thinking: "high",
    cwd: "work/{userId}",
    tools,
    runTimeoutSeconds: 120,
    maxSteps: 9,
    sandboxed: true,
    visibility,
    roots: ["work"],
    subagents,
  },
  models: {
    providers: {
      local: {
        type: "openai-compatible",
        api: "openai-completions",
        apiKey: "a-key-of-the-desk",
        baseUrl: "http://127.0.0.1:9/v1",
        headers: { "x-desk": "a-header-of-the-desk" },
        reasoningContent: true,
        models: {
          m: {
            contextWindow: 50_000,
            maxOutput: 4000,
            vision: true,
            price: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 },
            policy: {
              sanitizeMode: "images-only",
              toolCallIds: "strict9",
              callsWithoutTools: "text",
              repairToolPairing: false,
              missingResults: "drop",
              thinking: "plain",
              foreignThinking: "drop",
              firstTurn: "user",
              turns: "mistral",
              toolResultImages: "behind",
            },
          },
        },
      },
    },
  },
  mcpServers: {
    notes: { command: "notes", args: ["--quiet"], env: { NOTES: "here" }, cwd: "notes", timeoutSeconds: 5 },
    shop: { url: "http://127.0.0.1:9/mcp", headers: { "x-shop": "a-header-of-the-shop" }, approval: true },
  },
  acp: {
    agents: { coder: { command: "coder", args: ["--acp"], env: { CODER: "here" }, permissions: "deny" } },
    allowedAgents: ["coder"],
    defaultAgent: "coder",
    permissions: "allow",
    maxConcurrentSessions: 2,
    idleMinutes: 3,
    startTimeoutSeconds: 4,
  },
  tools: {
    sessions: { visibility, showPaths: true },
    agentToAgent: { enabled: true, allow: ["desk -> main"] },
  },
  session: {
    scope: "per-sender",
    dmScope: "per-peer",
    identityLinks: { ann: ["desk:U1"] },
    sendPolicy: {
      default: "deny",
      rules: [{ action: "allow", match: { channel: "desk", chatType: "group", keyPrefix: "group" } }],
    },
    agentToAgent: { maxPingPongTurns: 2 },
    reset: {
      ...rule,
      byKind: { group: idle, hook: daily },
      byChannel: { desk: idle, slack: daily },
    },
    maintenance: {
      mode: "enforce",
      pruneAfter: "60d",
      maxSessions: 99,
      maxDiskBytes: "9GB",
      highWater: 0.5,
      trashAfter: "9d",
    },
  },
  queue: { mode: "followup" },
  lanes: { main: 2, subagent: 3, cron: 4, nested: 5, perProcess: 6 },
  budget: { hops: 3, runs: 30, tokens: 3000, costUsd: 0.3 },
  approvals: { timeoutSeconds: 30 },
  retries: { max: 1, stallSeconds: 30 },
  yield: { timeoutMinutes: 3 },
  compaction: { mode: "default", maxHistoryShare: 0.3 },
  contextPruning: { mode: "cache-ttl", ttl: "3m", tools: { allow: ["read"], deny: ["write"] } },
  search: { embed: "openai/text-embedding-3-small" },
  channels: {
    desk: {
      type: "webhook",
      secret: "a-secret-of-the-desk",
      url: "http://127.0.0.1:9/out",
      user: "ann",
      users: { U1: "ann" },
      agent: "desk",
      historyLimit: 30,
      dmHistoryLimit: 20,
      dms: { U1: { historyLimit: 10 } },
    },
    team: {
      type: "chat-sdk",
      adapter: "slack",
      settings: { botToken: "a-token-of-the-team", signingSecret: "a-secret-of-the-team" },
      groups: "all",
      streaming: "off",
      editIntervalMs: 200,
      approvers: ["U1"],
    },
  },
  schedules: {
    daily: {
      cron: "0 9 * * 1-5",
      timezone: "Europe/Berlin",
      agent: "desk",
      message: "Good morning",
      session: "job",
      missed: "once",
      user: "ann",
      deliverTo: { channel: "desk", to: "U1", accountId: "a", threadId: "t" },
    },
  },
  redaction: { onWrite: true, rules: [{ name: "tickets", pattern: "T-[0-9]+", keep: "nothing" }] },
  telemetry: { otlp: "http://127.0.0.1:9" },
  logging: { level: "error", file: "skein.log" },
});

const documented = [
  ...readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8").matchAll(
    /^\| `([^`]+)` \|/gm,
  ),
].map(([, path = ""]) => path);

describe("createSkein({ config })", () => {
  async function effectiveWith(config: string | ConfigInput, root: string) {
    const skein = await createSkein({ config, cwd: folder.path, env: {}, quiet: true });
    try {
      const gateway = await mountOverHttp(skein, root);
      const { effective } = await gateway.call("config.get", {});
      await gateway.close();
      return effective;
    } finally {
      await skein.close({ graceMs: 0 });
    }
  }

  test.each([
    ["idle", idle],
    ["daily", daily],
  ])("[LBR1] has the effect of a skein.yaml with the same settings, reset %s", async (_, rule) => {
    const root = join(folder.path, "root");
    const file = join(folder.path, "skein.yaml");
    writeFileSync(file, stringify(everySetting(root, rule), { aliasDuplicateObjects: false }));
    const ofFile = await effectiveWith(file, root);
    const ofObject = await effectiveWith(everySetting(root, rule), root);
    // Each value is followed by its source.
    expect(ofObject).toBe(ofFile.replaceAll(/# \S+skein\.yaml:\d+$/gm, "# createSkein({ config })"));
    expect(ofObject).toContain("system: You sell tickets. # createSkein({ config })");
  });

  test("[LBR1] every documented setting is compared", () => {
    const paths = [idle, daily].flatMap((rule) => pathsIn(everySetting("root", rule)));
    const missing = documented.filter((setting) => {
      const place = setting.replaceAll("[]", ".<index>").split(".");
      const names = place.map((name) => (name.startsWith("<") ? "[^.]+" : name)).join("\\.");
      return !paths.some((path) => new RegExp(`^${names}(?:\\.|$)`).test(path));
    });
    expect(documented.length).toBeGreaterThan(150);
    expect(missing).toEqual([]);
  });

  const mistakes: readonly (readonly [string, object])[] = [
    ["an unknown section", { agnets: {} }],
    ["an unknown key", { agents: { main: { modle: "rehearsal/basic" } } }],
    ["a word that is not one of the allowed ones", { queue: { mode: "folowup" } }],
    ["a number that is too large", { gateway: { port: 70_000 } }],
    ["a text for a number", { lock: { timeoutMs: "long" } }],
    ["a number for a text", { defaults: { system: 7 } }],
    ["a list for a group", { session: [] }],
    ["a model without a provider", { defaults: { model: "claude" } }],
    ["an invalid URL", { channels: { desk: { type: "webhook", url: "ftp://example.org" } } }],
    ["settings that exclude each other", { session: { reset: { mode: "idle", atHour: 4 } } }],
    ["a missing required setting", { redaction: { rules: [{ name: "tickets" }] } }],
    ["a size with an unknown unit", { session: { maintenance: { maxDiskBytes: "10G" } } }],
    ["a name that is not allowed", { agents: { "a b": {} } }],
  ];
  test.each(mistakes)("[LBR2] is refused with the message that a file gets: %s", async (_, mistake) => {
    const file = join(folder.path, "skein.yaml");
    writeFileSync(file, stringify(mistake));
    const messageOf = async (config: string | ConfigInput) => {
      const opening = createSkein({ memory: true, config, cwd: folder.path, env: {}, quiet: true });
      const error = await opening.then(
        () => null,
        (thrown: unknown) => thrown as Error & { code: string },
      );
      expect(error).toMatchObject({ code: "invalid_config" });
      return error?.message ?? "";
    };
    const ofFile = await messageOf(file);
    expect(ofFile).toMatch(/skein\.yaml:\d+:\d+: /);
    const ofObject = await messageOf(mistake as ConfigInput);
    expect(ofObject).toBe(ofFile.replaceAll(/\S+skein\.yaml:\d+:\d+/g, "createSkein({ config })"));
  });
});

/** Returns the path of every value, such as `agents.desk.tools.allow.0`. */
function pathsIn(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([key, each]) => pathsIn(each, path === "" ? key : `${path}.${key}`));
}
