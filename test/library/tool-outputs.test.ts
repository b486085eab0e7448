import { Check, Errors } from "typebox/value";
import { afterEach, describe, expect, test } from "vitest";
import type { Skein } from "../../src/index.ts";
import { closeAll, connected, rehearsedSkein } from "../support/mcp-client.ts";
import { startMcp } from "../support/mcp-gateway.ts";

afterEach(closeAll);

type Json = Readonly<Record<string, unknown>>;

/** Fields that other programs add to messages are not checked. Everything else must be in the schema. */
const open = new Set(["messages", "pending"]);

/** Returns the same schema, closed to additional fields. */
function strict(schema: Json): Json {
  const { properties, items, anyOf } = schema as { properties?: Json; items?: Json; anyOf?: Json[] };
  const inside = Object.entries(properties ?? {}).map(([name, each]) => [
    name,
    open.has(name) ? each : strict(each as Json),
  ]);
  return {
    ...schema,
    ...(properties === undefined
      ? {}
      : { properties: Object.fromEntries(inside), additionalProperties: false }),
    ...(items === undefined ? {} : { items: strict(items) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(strict) }),
  };
}

/** The result schemas that an MCP client reads. */
async function outputSchemas(skein: Skein): Promise<Map<string, Json>> {
  const client = await connected(await startMcp(skein), "2025-11-25");
  const { tools } = await client.listTools();
  return new Map(tools.map(({ name, outputSchema }) => [name, strict({ ...outputSchema })]));
}

async function world() {
  const skein = await rehearsedSkein({ visibility: "agent" });
  const sessionKey = "agent:main:main";
  await skein.session({ sessionKey }).send("repeat good morning").result;
  const schemas = await outputSchemas(skein);
  const call = async (name: string, args: Json): Promise<Json> => {
    const { result } = await skein.callTool(name, args, { sessionKey });
    const schema = schemas.get(name) as Json;
    if (!Check(schema, result)) {
      const problems = [...Errors(schema, result)].map(
        ({ instancePath, message }) => `${instancePath} ${message}`,
      );
      throw new Error(`${name} gave ${JSON.stringify(result)}:\n${problems.join("\n")}`);
    }
    return result;
  };
  return { skein, call };
}

describe("results of session tools", () => {
  test("[GMC1] every tool has an object schema for its results", async () => {
    const schemas = await outputSchemas(await rehearsedSkein());
    expect(schemas.size).toBe(10);
    for (const schema of schemas.values()) expect(schema).toMatchObject({ type: "object" });
  });

  test("[GMC1] results of reading tools match their schemas", async () => {
    const { skein, call } = await world();
    await call("sessions_spawn", { task: "repeat one", background: false, label: "child" });
    const slow = skein.session({ sessionKey: "agent:main:session:slow" });
    slow.send("be slow for 300 seconds");
    slow.send("repeat later", { queueMode: "followup" });
    await expect.poll(async () => (await skein.runs.list()).length).toBeGreaterThanOrEqual(4);
    expect(await call("sessions_list", { messageLimit: 3 })).toMatchObject({ count: 3 });
    await call("sessions_list", { limit: 1 });
    await call("sessions_history", { sessionKey: "main", includeTools: true });
    expect(await call("sessions_history", { sessionKey: "session:slow" })).toHaveProperty("pending");
    for (const args of [{}, { sessionKey: "session:slow" }, { sessionKey: "child" }])
      await call("session_status", args);
    expect(await call("session_search", { query: "morning" })).toMatchObject({ hits: [{}, {}] });
    await call("session_list", {});
    await call("agents_list", {});
  });

  test("[GMC1] results of tools that start something match their schemas", async () => {
    const { call } = await world();
    const file = { name: "note.txt", content: "hello" };
    await call("sessions_spawn", { task: "repeat one", attachments: [file], tools: ["nothing_*"] });
    await call("sessions_spawn", { task: "repeat two", background: false, label: "child", mode: "session" });
    await call("sessions_spawn", { task: "be slow for 300 seconds", label: "slow" });
    await call("subagents", { action: "list" });
    await call("subagents", { action: "steer", target: "slow", message: "hurry" });
    await call("subagents", { action: "kill", target: "slow" });
    await call("subagents", { action: "kill", target: "slow" });
    await call("sessions_send", { label: "child", message: "repeat three" });
    await call("sessions_send", { label: "child", message: "repeat four", timeoutSeconds: 600 });
    await call("sessions_send", { label: "child", message: "be slow for 9 seconds", timeoutSeconds: 0.05 });
    await call("sessions_send", { label: "child", message: "a note", role: "assistant" });
  });

  test("[GMC1] refusals match their schemas too", async () => {
    const { call } = await world();
    const refused: readonly (readonly [string, Json])[] = [
      ["sessions_list", { kinds: ["none"] }],
      ["sessions_history", { sessionKey: "cron:none" }],
      ["sessions_history", { sessionKey: "agent:other:main" }],
      ["sessions_send", { message: "nobody" }],
      ["sessions_send", { sessionKey: "cron:none", message: "nobody" }],
      ["sessions_spawn", {}],
      ["sessions_spawn", { task: "x", runtime: "acp" }],
      ["sessions_yield", {}],
      ["session_status", { sessionKey: "cron:none" }],
      ["subagents", { action: "kill", target: "none" }],
      ["session_search", { query: "x", since: "when" }],
      ["session_list", { limit: "many" }],
      ["agents_list", { extra: true }],
    ];
    for (const [name, args] of refused)
      expect(await call(name, args)).toMatchObject({ code: expect.any(String), error: expect.any(String) });
  });
});
