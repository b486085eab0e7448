import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { Check } from "typebox/schema";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { anyConfig } from "../../test/support/config.ts";
import { minContextWindow } from "../transcript/compaction/limits.ts";
import { variableOf } from "./environment.ts";
import { configJsonSchema, writtenDefault } from "./json-schema.ts";
import { parseConfigText } from "./parse-yaml.ts";
import { readTree } from "./read-tree.ts";
import { sections } from "./sections/all.ts";
import type { Node } from "./settings/setting.ts";

const fromRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

describe("published configuration documents", () => {
  test("schema/skein.schema.json is the schema of the sections", async () => {
    const text = `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot(fromRoot("schema/skein.schema.json"));
  });

  const accepts = (config: unknown) => Check(configJsonSchema(), config);

  test("the schema accepts what the reader accepts", () => {
    fc.assert(fc.property(anyConfig, (config) => accepts(config)));
    expect(accepts({ $schema: "x", agents: { Main: { cwd: "${W}" } }, lock: { timeoutMs: "${T}" } })).toBe(
      true,
    );
  });

  test.each([
    { durabilty: "os" },
    { durability: "fast" },
    { store: "redis://x" },
    { lock: { timeoutMs: -1 } },
    { gateway: { port: 65_536 } },
    { gateway: { host: "" } },
    { gateway: { allowedHosts: ["https://skein.example.org"] } },
    { gateway: { trustProxy: ["proxy.lan"] } },
    { agents: { "a b": {} } },
    { agents: { a: { cwd: "~bob" } } },
    { session: { reset: { mode: "daily", atHour: 24 } } },
    { session: { reset: { byKind: { subagent: { mode: "none" } } } } },
    { session: { reset: { byChannel: { slack: { minutes: 5 } } } } },
    { session: { maintenance: { pruneAfter: 30 } } },
    { session: { maintenance: { maxDiskBytes: "10G" } } },
    { session: { maintenance: { highWater: 0 } } },
    { compaction: { mode: "off" } },
    { compaction: { maxHistoryShare: 0.05 } },
    { compaction: { maxHistoryShare: 1 } },
    { contextPruning: { mode: true } },
    { contextPruning: { ttl: 300 } },
    { contextPruning: { tools: { allow: "read" } } },
    { contextPruning: { tools: { allow: [1] } } },
    { contextPruning: { tools: ["read"] } },
    { channels: { slack: { historyLimit: 0 } } },
    { channels: { slack: { type: "telegram" } } },
    { channels: { slack: { url: "ftp://x.org" } } },
    { channels: { slack: { secret: "" } } },
    { channels: { slack: { users: { U1: "" } } } },
    { session: { dmScope: "per-user" } },
    { session: { identityLinks: { "a:b": [] } } },
    { session: { identityLinks: { ann: ["U1"] } } },
    { session: { sendPolicy: { rules: {} } } },
    { session: { sendPolicy: { rules: [{ match: { channel: "slack" } }] } } },
    { session: { sendPolicy: { rules: [{ action: "deny", match: { chatType: "dm" } }] } } },
    { session: { sendPolicy: { rules: [null] } } },
    { session: { sendPolicy: { rules: ["deny"] } } },
    { session: { agentToAgent: { maxPingPongTurns: 6 } } },
    { channels: { slack: { dms: { U1: 5 } } } },
    { models: { providers: { local: { type: "ollama" } } } },
    { models: { providers: { local: { api: "openai" } } } },
    { models: { providers: { "a/b": {} } } },
    { models: { providers: { local: { apiKey: "" } } } },
    { models: { providers: { local: { baseUrl: "127.0.0.1:11434" } } } },
    { models: { providers: { local: { headers: { "no spaces": "x" } } } } },
    { models: { providers: { local: { models: { q: { contextWindow: minContextWindow - 1 } } } } } },
    { models: { providers: { local: { models: { q: { policy: { turns: "openai" } } } } } } },
    { agents: { a: { model: "claude" } } },
    { agents: { a: { thinking: "much" } } },
    { agents: { a: { tools: ["read"] } } },
    { agents: { a: { maxSteps: 0 } } },
    { agents: { a: { sandboxed: "yes" } } },
    { agents: { a: { visibility: "none" } } },
    { agents: { a: { visibility: { read: "all" } } } },
    { agents: { a: { roots: "~/work" } } },
    { agents: { a: { roots: ["~bob"] } } },
    { agents: { a: { subagents: { allowAgents: ["a*"] } } } },
    { agents: { a: { subagents: { maxSpawnDepth: 6 } } } },
    { agents: { a: { subagents: { maxChildren: 0 } } } },
    { agents: { a: { subagents: { attachments: { maxFileBytes: "1M" } } } } },
    { defaults: { subagents: { maxSpawnDepth: null } } },
    { tools: { sessions: { visibility: "none" } } },
    { tools: { agentToAgent: { allow: ["a <-> b"] } } },
    { defaults: { runTimeoutSeconds: -1 } },
    { defaults: { thinking: null } },
    { queue: { mode: "drop" } },
    { lanes: { main: 0 } },
    { lanes: { cron: 1001 } },
    { lanes: { fast: 1 } },
    { budget: { hops: -1 } },
    { budget: { costUsd: "5" } },
    { approvals: { timeoutSeconds: 0 } },
    { retries: { max: 1.5 } },
    { yield: { timeoutMinutes: 0 } },
    { telemetry: { otlp: "collector:4318" } },
    { logging: { level: "trace" } },
    { mcpServers: { "a b": { command: "x" } } },
    { mcpServers: { a: { command: ["x"] } } },
    { mcpServers: { a: { command: "x", env: { "A-B": "x" } } } },
    { mcpServers: { a: { url: "ws://x" } } },
    { acp: { agents: { Claude: {} } } },
    { acp: { agents: { a: { command: ["x"] } } } },
    { acp: { agents: { a: { env: { "A-B": "x" } } } } },
    { acp: { agents: { a: { permissions: "yes" } } } },
    { acp: { allowedAgents: "claude" } },
    { acp: { permissions: null } },
    { acp: { maxConcurrentSessions: 0 } },
    { models: { providers: { local: { models: { q: { price: { input: -1 } } } } } } },
  ])("the schema refuses %j, as the reader does", (config) => {
    expect(accepts(config)).toBe(false);
  });

  test("docs/configuration.md lists every setting", () => {
    const page = readFileSync(fromRoot("docs/configuration.md"), "utf8");
    const rows = [...page.matchAll(/^\| `(.+?)` \| (.+?) \| (.+) \|$/gm)].map((match) => match.slice(1, 4));
    expect(rows).toEqual(rowsOf(sections));
  });

  test("the example has no mistake, and the schema accepts it", () => {
    const page = readFileSync(fromRoot("docs/configuration.md"), "utf8");
    const example = /^```yaml\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? "";
    const place = { folder: "/p", home: "/h", root: "/r" };
    const { root, problems } = parseConfigText(example, "/p/skein.yaml", () => "value");
    expect(problems).toEqual([]);
    expect(readTree(sections, root === null ? [] : [root], () => place, place).problems).toEqual([]);
    expect(accepts(parse(example))).toBe(true);
  });

  test("the documented variables are the ones that are read", () => {
    const page = readFileSync(fromRoot("docs/configuration.md"), "utf8");
    expect(page).toContain(`\`${variableOf(["session", "maintenance", "pruneAfter"])}=90d\``);
  });
});

/** Returns the path, default and meaning of every setting. */
function rowsOf(node: Node, path = ""): string[][] {
  if (node.node === "setting") {
    const fallback = writtenDefault(node);
    return [[path, fallback === undefined ? "(required)" : `\`${fallback}\``, node.about]];
  }
  if (node.node === "list") return [[path, "`[]`", node.about]];
  if (node.node === "rows") return [[path, "`[]`", node.about], ...rowsOf(node.of, `${path}[]`)];
  if (node.node === "table") return rowsOf(node.of, `${path}.${node.keyName}`);
  return Object.entries(node.fields).flatMap(([key, field]) =>
    rowsOf(field, path === "" ? key : `${path}.${key}`),
  );
}
