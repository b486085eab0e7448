import { afterEach, beforeEach, expect, test } from "vitest";
import type { TemporaryFolder, Twin } from "../../src/entry-testing.ts";
import { startTwin, temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { usesDatabases } from "../support/empty-store.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let folder: TemporaryFolder;
let twin: Twin;
let gateway: WholeGateway;

beforeEach(async () => {
  folder = temporaryFolder("skein-system-");
  twin = await startTwin({ api: "openai-completions" });
  const config = {
    models: { providers: { local: { baseUrl: twin.url } } },
    defaults: { model: "local/qwen3", system: "You plan journeys." },
  };
  const text = Object.entries(config).map(([section, value]) => `${section}: ${JSON.stringify(value)}\n`);
  gateway = await wholeGateway({ folder, config: text.join("") });
});
afterEach(async () => {
  await gateway.close();
  await twin.close();
  folder.remove();
});

const systemPrompts = () =>
  twin.requests.map(({ body }) => {
    const { messages } = body as { messages: { role: string; content: string }[] };
    return messages.find(({ role }) => role === "system")?.content;
  });
const skein = (...args: string[]) =>
  run(args, { cwd: folder.path, home: folder.path, env: { SKEIN_DIR: gateway.root } });

test("[XRW9] agent and sessions.send accept a system prompt for one run from an admin", async () => {
  const message = { message: "Hello", system: "You garden." };
  const { body } = await gateway.rpc("agent", { sessionKey: "main", idempotencyKey: "a", ...message });
  const { runId } = body as { runId: string };
  await gateway.rpc("agent.wait", { runId, timeoutMs: 60_000 });
  const sent = { key: "main", idempotencyKey: "b", timeoutMs: 60_000 };
  await gateway.rpc("sessions.send", { ...sent, ...message });
  await gateway.rpc("sessions.send", { ...sent, idempotencyKey: "c", message: "Hello" });
  expect(systemPrompts()).toEqual(["You garden.", "You garden.", "You plan journeys."]);
});

test("[XRW9] a token without the admin scope is refused", async () => {
  const token = await gateway.token({ scopes: ["read", "write"], userId: "ann" });
  const message = { message: "Hello", idempotencyKey: "a", system: "You garden." };
  for (const [method, to] of [
    ["agent", { sessionKey: "main" }],
    ["sessions.send", { key: "main" }],
  ] as const) {
    const { status, body } = await gateway.rpc(method, { ...to, ...message }, token);
    expect([status, body]).toMatchObject([403, { error: { code: "forbidden" } }]);
  }
  expect(systemPrompts()).toEqual([]);
});

// Without a gateway, commands do not use a database.
test.skipIf(usesDatabases())("[XRW9] skein send --system, over a gateway and on the folder", async () => {
  expect(await skein("send", "main", "Hello", "--system", "You garden.")).toMatchObject({ exit: 0 });
  await gateway.stop();
  expect(await skein("send", "main", "Hello", "--system", "You cook.")).toMatchObject({ exit: 0 });
  expect(await skein("send", "main", "Hello")).toMatchObject({ exit: 0 });
  expect(systemPrompts()).toEqual(["You garden.", "You cook.", "You plan journeys."]);
});
