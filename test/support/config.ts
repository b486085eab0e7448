import fc from "fast-check";

/** Generators for configuration files. */

const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 3 });

function record(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .record(fields)
    .map((value) => Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)));
}

const duration = fc
  .tuple(fc.integer({ min: 1, max: 500 }), fc.constantFrom("ms", "s", "m", "h", "d", "w"))
  .map(([count, unit]) => `${count}${unit}`);
const size = fc.oneof(
  fc.integer({ min: 1, max: 1e12 }),
  fc
    .tuple(fc.integer({ min: 1, max: 500 }), fc.constantFrom("B", "KB", "GB", "MiB"))
    .map(([n, u]) => `${n}${u}`),
);
const path = fc.constantFrom("~/work", "work", "./a b", "/srv/x", "~", "..", "日本");

const resetRule = fc.oneof(
  record({ mode: fc.constant("none") }),
  record({ mode: fc.constant("daily"), atHour: some(fc.integer({ min: 0, max: 23 })) }),
  record({ mode: fc.constant("idle"), minutes: some(fc.integer({ min: 1, max: 9999 })) }),
);
const maybeNull = <T>(arbitrary: fc.Arbitrary<T>) => some(fc.oneof(arbitrary, fc.constant(null)));
const globs = maybeNull(
  fc.array(fc.constantFrom("*", "read_*", "web_?earch", "true", "1"), { maxLength: 3 }),
);
const toolLists = maybeNull(record({ allow: globs, deny: globs }));
const seen = fc.constantFrom("self", "tree", "agent", "all");
const visibility = maybeNull(
  fc.oneof(
    seen,
    record({
      list: maybeNull(seen),
      history: maybeNull(seen),
      send: maybeNull(seen),
      status: maybeNull(seen),
    }),
  ),
);
const roots = maybeNull(fc.array(path, { maxLength: 3 }));
/** `leave` determines whether a value can come from elsewhere. */
const subagents = (leave: typeof maybeNull) =>
  maybeNull(
    record({
      allowAgents: maybeNull(fc.array(fc.constantFrom("*", "main", "b-2"), { maxLength: 3 })),
      maxSpawnDepth: leave(fc.integer({ min: 1, max: 5 })),
      maxChildren: leave(fc.integer({ min: 1, max: 20 })),
      archiveAfterMinutes: leave(fc.constantFrom(0, 60)),
      tools: toolLists,
      attachments: maybeNull(
        record({ maxFileBytes: leave(size), maxTotalBytes: leave(size), keep: leave(fc.boolean()) }),
      ),
    }),
  );
const agent = record({
  sandboxed: maybeNull(fc.boolean()),
  visibility,
  roots,
  subagents: subagents(maybeNull),
  tools: toolLists,
  runTimeoutSeconds: maybeNull(fc.constantFrom(0, 60)),
  maxSteps: maybeNull(fc.constantFrom(1, 200)),
  cwd: maybeNull(path),
  model: maybeNull(fc.constantFrom("anthropic/claude-sonnet-4-5", "local/qwen3:8b", "a/b/c")),
  system: maybeNull(fc.constantFrom("You are Ann's helper.", "one line: here", "- # 'quoted'")),
  thinking: maybeNull(fc.constantFrom("off", "low", "xhigh", false)),
});
const kind = fc.constantFrom("main", "group", "cron", "hook", "node", "other");
const channel = fc.constantFrom("slack", "a.b", "My Channel", "constructor", "42", "true");

const count = maybeNull(fc.integer({ min: 1, max: 1e6 }));
const channelSettings = record({
  type: maybeNull(fc.constantFrom("webhook", "cli", "console")),
  secret: maybeNull(fc.constantFrom("s3cret", "42")),
  url: maybeNull(fc.constantFrom("https://example.org/in", "http://127.0.0.1:9")),
  user: maybeNull(fc.constantFrom("alice", "Ann Example")),
  users: maybeNull(
    fc.dictionary(
      fc.constantFrom("U1", "@a:b.org"),
      fc.oneof(fc.constant(null), fc.constantFrom("ann", "1")),
    ),
  ),
  historyLimit: count,
  dmHistoryLimit: count,
  dms: maybeNull(fc.dictionary(fc.constantFrom("U1", "@a:b.org", "1"), record({ historyLimit: count }))),
});
const sendRule = fc
  .tuple(
    record({ action: fc.constantFrom("allow", "deny") }),
    record({
      match: maybeNull(
        record({
          channel: maybeNull(channel),
          chatType: maybeNull(fc.constantFrom("direct", "group", "channel")),
          keyPrefix: maybeNull(fc.constantFrom("agent:main:", "slack:")),
        }),
      ),
    }),
  )
  .map(([action, match]) => ({ ...action, ...match }));
const model = record({
  contextWindow: maybeNull(fc.integer({ min: 2000, max: 1e6 })),
  maxOutput: count,
  vision: maybeNull(fc.boolean()),
  price: maybeNull(record({ input: maybeNull(fc.constantFrom(0, 0.25, 15)), cacheRead: count })),
  policy: maybeNull(
    record({
      toolCallIds: maybeNull(fc.constantFrom("strict", "strict9", "kept")),
      repairToolPairing: maybeNull(fc.boolean()),
      turns: maybeNull(fc.constantFrom("anthropic", "any")),
    }),
  ),
});
const provider = record({
  type: maybeNull(fc.constantFrom("openai-compatible", "anthropic")),
  api: maybeNull(fc.constantFrom("openai-responses", "openai-completions")),
  apiKey: maybeNull(fc.constantFrom("sk-123", "true")),
  baseUrl: maybeNull(fc.constantFrom("http://127.0.0.1:11434/v1", "https://example.org")),
  headers: maybeNull(fc.dictionary(fc.constantFrom("x-team", "Authorization"), fc.constantFrom("a", "b: c"))),
  models: maybeNull(fc.dictionary(fc.constantFrom("qwen3:8b", "a/b", "constructor"), model, { maxKeys: 2 })),
});

const mcpServer = fc.oneof(
  record({
    command: fc.constantFrom("npx", "./server"),
    args: maybeNull(fc.array(fc.constantFrom("-y", "a b", "true"), { maxLength: 3 })),
    env: maybeNull(fc.dictionary(fc.constantFrom("HOME", "api_key"), fc.constantFrom("", "x: y"))),
    cwd: maybeNull(path),
    timeoutSeconds: some(fc.integer({ min: 1, max: 600 })),
  }),
  record({
    url: fc.constantFrom("https://example.org/mcp"),
    headers: maybeNull(
      fc.dictionary(fc.constantFrom("x-team", "Authorization"), fc.constantFrom("a", "b: c")),
    ),
  }),
);
const few = some(fc.integer({ min: 1, max: 1000 }));
const acpAgent = {
  args: maybeNull(fc.array(fc.constantFrom("-y", "a b", "true"), { maxLength: 3 })),
  env: maybeNull(fc.dictionary(fc.constantFrom("HOME", "api_key"), fc.constantFrom("", "x: y"))),
  permissions: maybeNull(fc.constantFrom("allow", "ask", "deny")),
};
const acpLimits = {
  permissions: some(fc.constantFrom("allow", "ask", "deny")),
  maxConcurrentSessions: few,
  idleMinutes: few,
  startTimeoutSeconds: few,
};
const acp = fc.oneof(
  record({ agents: maybeNull(fc.constant({ claude: null })), ...acpLimits }),
  record({
    agents: record({ claude: record(acpAgent), own_1: record({ command: fc.constant("./x"), ...acpAgent }) }),
    allowedAgents: maybeNull(fc.subarray(["claude", "own_1"]).map((names) => [...names, "claude"])),
    defaultAgent: maybeNull(fc.constant("claude")),
    ...acpLimits,
  }),
);

/** A configuration file's contents as plain data. */
export const anyConfig = record({
  store: some(path.map((each) => `files:${each}`)),
  durability: some(fc.constantFrom("full", "os")),
  lock: some(record({ timeoutMs: some(fc.integer({ min: 0, max: 60_000 })) })),
  gateway: some(
    record({
      host: some(fc.constantFrom("127.0.0.1", "localhost", "::1", "0.0.0.0")),
      port: some(fc.integer({ min: 0, max: 65_535 })),
      expose: some(fc.boolean()),
      allowedHosts: maybeNull(
        fc.array(fc.constantFrom("skein.example.org", "localhost:5173"), { maxLength: 2 }),
      ),
      trustProxy: maybeNull(
        fc.array(fc.constantFrom("10.0.0.1", "10.0.0.0/8", "fd00::/8"), { maxLength: 2 }),
      ),
      basePath: maybeNull(fc.constantFrom("/skein", "/tools/skein")),
      console: some(fc.oneof(fc.boolean(), path)),
    }),
  ),
  agents: some(fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_-]{0,5}$/), agent, { maxKeys: 3 })),
  session: some(
    record({
      scope: some(fc.constantFrom("per-sender", "global")),
      dmScope: some(fc.constantFrom("main", "per-peer", "per-channel-peer", "per-account-channel-peer")),
      identityLinks: maybeNull(
        fc.dictionary(
          fc.constantFrom("ann", "bob"),
          maybeNull(fc.array(fc.constantFrom("slack:U1", "matrix:@a:b.org"), { maxLength: 2 })).map(
            (each) => each ?? null,
          ),
        ),
      ),
      sendPolicy: maybeNull(
        record({
          default: some(fc.constantFrom("allow", "deny")),
          rules: maybeNull(fc.array(sendRule, { maxLength: 3 })),
        }),
      ),
      agentToAgent: maybeNull(record({ maxPingPongTurns: some(fc.integer({ min: 0, max: 5 })) })),
      reset: some(
        fc
          .tuple(
            resetRule,
            record({
              byKind: some(fc.dictionary(kind, resetRule, { maxKeys: 3 })),
              byChannel: some(fc.dictionary(channel, resetRule, { maxKeys: 3 })),
            }),
          )
          .map(([rule, more]) => ({ ...rule, ...more })),
      ),
      maintenance: some(
        record({
          mode: some(fc.constantFrom("warn", "enforce")),
          pruneAfter: some(fc.oneof(duration, fc.constant(null))),
          maxSessions: some(fc.oneof(fc.integer({ min: 1, max: 1e6 }), fc.constant(null))),
          maxDiskBytes: some(fc.oneof(size, fc.constant(null))),
          highWater: some(fc.constantFrom(0.1, 0.5, 1)),
          trashAfter: some(fc.oneof(duration, fc.constant(null))),
        }),
      ),
    }),
  ),
  defaults: some(
    record({
      model: maybeNull(fc.constantFrom("local/qwen3:8b")),
      system: maybeNull(fc.constantFrom("one line: here")),
      thinking: some(fc.constantFrom("off", "high", false)),
      cwd: maybeNull(path),
      tools: toolLists,
      runTimeoutSeconds: some(fc.constantFrom(0, 60)),
      maxSteps: few,
      sandboxed: some(fc.boolean()),
      visibility,
      roots,
      subagents: subagents(some as typeof maybeNull),
    }),
  ),
  tools: some(
    record({
      sessions: maybeNull(record({ visibility: maybeNull(seen) })),
      agentToAgent: maybeNull(
        record({
          enabled: some(fc.boolean()),
          allow: maybeNull(fc.array(fc.constantFrom("a -> b", "*->main", "c"), { maxLength: 3 })),
        }),
      ),
    }),
  ),
  mcpServers: some(fc.dictionary(fc.constantFrom("files", "My_Server-2", "constructor"), mcpServer)),
  acp: some(acp),
  queue: some(record({ mode: some(fc.constantFrom("steer", "followup", "interrupt")) })),
  lanes: some(record({ main: few, subagent: few, cron: few, nested: few, perProcess: few })),
  budget: some(
    record({ hops: few, runs: few, tokens: count, costUsd: maybeNull(fc.constantFrom(0, 0.5, 5)) }),
  ),
  approvals: some(record({ timeoutSeconds: few })),
  retries: some(record({ max: some(fc.integer({ min: 0, max: 20 })), stallSeconds: few })),
  yield: some(record({ timeoutMinutes: few })),
  telemetry: some(record({ otlp: maybeNull(fc.constant("http://127.0.0.1:4318")) })),
  logging: some(record({ level: some(fc.constantFrom("silent", "debug")), file: maybeNull(path) })),
  models: some(
    record({
      providers: some(fc.dictionary(fc.constantFrom("anthropic", "local", "constructor"), provider)),
    }),
  ),
  compaction: some(
    record({
      mode: some(fc.constantFrom("default", "safeguard")),
      maxHistoryShare: some(fc.constantFrom(0.1, 0.5, 0.9)),
    }),
  ),
  contextPruning: some(
    record({
      mode: some(fc.constantFrom("off", "cache-ttl", false)),
      ttl: some(duration),
      tools: toolLists,
    }),
  ),
  channels: some(fc.dictionary(channel, channelSettings, { maxKeys: 3 })),
});
