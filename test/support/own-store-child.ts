// A process with its own store in a file. Its tool kills the process once, in the middle of a turn.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scriptedModel } from "../../src/entry-testing.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const [folder = ""] = process.argv.slice(2);
const killed = join(folder, "killed");
const crash = defineTool({
  name: "crash",
  description: "Kills its process, once.",
  replay: "safe",
  execute: async () => {
    if (existsSync(killed)) return "survived";
    writeFileSync(killed, "");
    process.kill(process.pid, "SIGKILL");
    return new Promise<string>(() => undefined);
  },
});
const model = scriptedModel(({ prompt }) =>
  prompt.some(({ role }) => role === "tool") ? { text: "Ordered." } : { calls: [{ name: "crash" }] },
);
const store = openSqliteStore(join(folder, "mine.db"));
const skein = await createSkein({
  dir: join(folder, "runs"),
  store,
  config: null,
  models: { "rehearsal/script": model },
  agents: [defineAgent({ id: "main", model: "rehearsal/script", tools: [crash] })],
});
const accepted = await skein
  .session({ userId: "ann" })
  .accept("Order the tickets", { idempotencyKey: "order" });
const run = await skein.ended(accepted.runId);
process.stdout.write(`${JSON.stringify({ runId: run.runId, reply: run.outcome?.reply ?? null })}\n`);
await skein.close();
await store.close();
