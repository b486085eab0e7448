import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { foldersOf, useConfigHome } from "../../test/support/config-home.ts";
import { defaultConfig } from "./load.ts";

const at = useConfigHome();
const { write, load, mistakes } = at;

const unsaid = { list: null, history: null, send: null, status: null };

describe("defaults and the location of the file", () => {
  test("without a file the defaults apply", async () => {
    const loaded = await load();
    expect(loaded).toMatchObject({ file: null, root: join(at.home, ".skein") });
    expect(loaded.config).toEqual(defaultConfig(join(at.home, ".skein")));
    expect(loaded.config).toEqual({
      store: { kind: "files", path: join(at.home, ".skein") },
      durability: "full",
      lock: { timeoutMs: 10_000 },
      postgres: { workerUrl: null, migratorUrl: null, directUrl: null, maxConnections: 10 },
      blobs: {
        s3: {
          bucket: null,
          endpoint: null,
          region: "us-east-1",
          prefix: "",
          accessKeyId: null,
          secretAccessKey: null,
          forcePathStyle: true,
        },
      },
      gateway: {
        host: "127.0.0.1",
        port: 18_790,
        expose: false,
        allowedHosts: [],
        trustProxy: [],
        basePath: null,
        console: true,
        role: "all",
      },
      agents: {
        main: {
          model: null,
          system: null,
          thinking: null,
          cwd: null,
          tools: { allow: [], deny: [], ask: [] },
          runTimeoutSeconds: null,
          maxSteps: null,
          sandboxed: null,
          visibility: unsaid,
          roots: [],
          subagents: {
            allowAgents: [],
            maxSpawnDepth: null,
            maxChildren: null,
            archiveAfterMinutes: null,
            tools: { allow: [], deny: [] },
            attachments: { maxFileBytes: null, maxTotalBytes: null, keep: null },
          },
        },
      },
      defaults: {
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
      },
      models: { providers: {} },
      mcpServers: {},
      acp: {
        agents: {},
        allowedAgents: [],
        defaultAgent: null,
        permissions: "ask",
        maxConcurrentSessions: 8,
        idleMinutes: 120,
        startTimeoutSeconds: 60,
      },
      tools: {
        sessions: {
          visibility: { list: "tree", history: "tree", send: "tree", status: "tree" },
          showPaths: false,
        },
        agentToAgent: { enabled: false, allow: [] },
      },
      queue: { mode: "steer" },
      redaction: { onWrite: false, rules: [] },
      lanes: { main: 4, subagent: 8, cron: 1, nested: 8, perProcess: null },
      budget: { hops: 8, runs: 100, tokens: null, costUsd: null },
      approvals: { timeoutSeconds: 120 },
      retries: { max: 3, stallSeconds: 120 },
      yield: { timeoutMinutes: 60 },
      telemetry: { otlp: null },
      logging: { level: "warn", file: null },
      session: {
        scope: "per-sender",
        dmScope: "per-channel-peer",
        identityLinks: {},
        sendPolicy: { default: "allow", rules: [] },
        agentToAgent: { maxPingPongTurns: 5 },
        reset: { mode: "none", atHour: 4, minutes: 60, byKind: {}, byChannel: {} },
        maintenance: {
          mode: "warn",
          pruneAfter: 30 * 86_400_000,
          maxSessions: 5000,
          maxDiskBytes: null,
          highWater: 0.8,
          trashAfter: 30 * 86_400_000,
        },
      },
      compaction: { mode: "safeguard", maxHistoryShare: 0.5 },
      contextPruning: { mode: "off", ttl: 300_000, tools: { allow: [], deny: [] } },
      search: { embed: null },
      channels: {},
      schedules: {},
    });
    expect([...loaded.sources.values()].every(({ from }) => from === "default")).toBe(true);
  });

  test.each([
    "",
    "\n",
    "# nothing\n",
    "---\n",
    "null\n",
    "{}",
    "session:\nagents:\nlock:\n",
    "\ufeff",
    "agents: {}",
  ])("%j gives the defaults", async (text) => {
    write({ "skein.yaml": text });
    expect((await load()).config).toEqual(defaultConfig(join(at.home, ".skein")));
  });

  test("[CFG2] uses the nearest file upwards, then the one in the root folder", async () => {
    write({ ".skein/skein.json": '{"durability": "os"}' });
    mkdirSync(join(at.home, "a/b/c"), { recursive: true });
    const from = (cwd: string) => load({}, { cwd: join(at.home, cwd) });
    expect((await from("a/b/c")).file).toBe(join(at.home, ".skein/skein.json"));
    const above = write({ "a/skein.yml": "durability: os" });
    expect((await from("a/b/c")).file).toBe(above);
    const near = write({ "a/b/skein.yaml": "durability: os" });
    mkdirSync(join(at.home, "a/b/c/skein.yaml"));
    expect(await from("a/b/c")).toMatchObject({ file: near, config: { durability: "os" } });
    expect((await load({}, { cwd: "/", root: join(at.home, "a") })).file).toBe(above);
    expect((await load({ SKEIN_DIR: join(at.home, "a") }, { cwd: "/" })).file).toBe(above);
  });

  test("[CFG2] a named file must exist and be readable text; two in one folder are refused", async () => {
    const named = write({ "other.yaml": "durability: os", "bytes.yaml": "" });
    expect(await load({}, { file: "other.yaml" })).toMatchObject({
      file: named,
      config: { durability: "os" },
    });
    writeFileSync(join(at.home, "bytes.yaml"), Uint8Array.of(0xff, 0xfe, 0x61, 0x00));
    await expect(load({}, { file: "none.yaml" })).rejects.toThrow(
      `Configuration file not found: "${join(at.home, "none.yaml")}". Check the path`,
    );
    await expect(load({}, { file: "bytes.yaml" })).rejects.toThrow("it is not UTF-8. Save it as UTF-8.");
    await expect(load({}, { file: "." })).rejects.toThrow("it is a folder. Specify a file.");
    write({ "skein.yaml": "", "skein.json": "{}" });
    await expect(load()).rejects.toThrow("matches more than one configuration file");
  });
});

describe("precedence", () => {
  test("[CFG3] the environment overrides the file, which overrides the default", async () => {
    const file = write({
      "skein.yaml": "durability: os\nsession:\n  maintenance:\n    mode: enforce\n    maxSessions: 7\n",
    });
    const { config, sources } = await load({ SKEIN_SESSION__MAINTENANCE__MODE: "warn" });
    expect(config).toMatchObject({
      durability: "os",
      session: { maintenance: { mode: "warn", maxSessions: 7, highWater: 0.8 } },
    });
    expect(sources.get("durability")).toEqual({ from: "file", file, line: 1, column: 13, secret: false });
    expect(sources.get("session.maintenance.maxSessions")).toMatchObject({ line: 5, column: 18 });
    expect(sources.get("session.maintenance.mode")).toEqual({
      from: "environment",
      variable: "SKEIN_SESSION__MAINTENANCE__MODE",
      file: null,
      secret: false,
    });
    expect(sources.get("session.maintenance.highWater")).toEqual({ from: "default" });
  });

  test("[CFG3] the real environment overrides .env, which is read only next to the file", async () => {
    write({
      "p/skein.yaml": 'agents: { main: { cwd: "${W}/x" } }',
      "p/.env": "W=/dot\nSKEIN_DURABILITY=os\nONLY=1\n",
      "p/q/.env": "W=/no",
    });
    const cwd = join(at.home, "p/q");
    const dotted = await load({}, { cwd });
    expect(dotted.config).toMatchObject({ durability: "os", agents: { main: { cwd: "/dot/x" } } });
    expect(dotted.sources.get("durability")).toMatchObject({
      variable: "SKEIN_DURABILITY",
      file: join(at.home, "p/.env"),
    });
    expect([dotted.variable("ONLY"), dotted.variable("NOBODY")]).toEqual(["1", undefined]);
    const real = await load({ W: "/real", SKEIN_DURABILITY: "" }, { cwd });
    expect(real.config).toMatchObject({ durability: "full", agents: { main: { cwd: "/real/x" } } });
    expect(process.env.ONLY).toBeUndefined();
  });

  test("[CFG3] the order is --dir, SKEIN_STORE, SKEIN_DIR, then the file's store", async () => {
    write({ "skein.yaml": "store: files:./kept" });
    const storeOf = async (env: Record<string, string>, root?: string) => {
      const { config, sources } = await load(env, root === undefined ? {} : { root });
      return [config.store.path.slice(at.home.length), sources.get("store")?.from];
    };
    expect(await storeOf({})).toEqual(["/kept", "file"]);
    expect(await storeOf({ SKEIN_DIR: "~/dir" })).toEqual(["/dir", "environment"]);
    expect(await storeOf({ SKEIN_DIR: "dir", SKEIN_STORE: "files:s" })).toEqual(["/s", "environment"]);
    expect(await storeOf({ SKEIN_DIR: "dir", SKEIN_STORE: "files:s" }, "opt")).toEqual(["/opt", "option"]);
    await expect(load({ SKEIN_DIR: "~bob/x" })).rejects.toThrow("only ~/ is expanded");
  });

  test("paths start at the at.home folder, or at the folder of the file or of the caller", async () => {
    write({
      "p/skein.yaml":
        "store: files:../s\nagents:\n  a: { cwd: ~/w }\n  b: { cwd: w }\n  c: { cwd: ~ }\n  d: { cwd: /abs }\n",
    });
    const { config } = await load({ SKEIN_AGENTS__D__CWD: "here" }, { cwd: join(at.home, "p") });
    expect(config.store.path).toBe(join(at.home, "s"));
    expect(foldersOf(config)).toEqual({
      a: { cwd: join(at.home, "w") },
      b: { cwd: join(at.home, "p/w") },
      c: { cwd: null },
      d: { cwd: join(at.home, "p/here") },
    });
    expect(await mistakes("agents: { a: { cwd: ~bob/x } }")).toEqual([
      expect.stringContaining("a.cwd: found"),
    ]);
  });
});
