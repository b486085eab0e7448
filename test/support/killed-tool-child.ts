// A process that sends one order and waits for a run. Its tool kills the process unless the process is healthy.

import { scriptedModel } from "../../src/entry-testing.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";

const [dir = "", health, runId] = process.argv.slice(2);
const isHealthy = health === "healthy";
const crash = defineTool({
  name: "crash",
  description: "Kills its process.",
  execute: async () => {
    process.kill(process.pid, "SIGKILL");
    return new Promise<string>(() => undefined);
  },
});
const skein = await createSkein({
  dir,
  config: null,
  models: {
    "rehearsal/script": scriptedModel(() => (isHealthy ? { text: "Done." } : { calls: [{ name: "crash" }] })),
  },
  agents: [defineAgent({ id: "main", model: "rehearsal/script", tools: [crash] })],
});
const accepted = await skein.session().accept("Order the tickets", { idempotencyKey: "order" });
const run = await skein.ended(runId ?? accepted.runId);
const { state, code = null, reply = null } = run.outcome ?? {};
process.stdout.write(`${JSON.stringify({ runId: run.runId, state, code, reply })}\n`);
await skein.close();
