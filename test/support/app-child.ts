// An application of its own with an agent `main` in code. It sends one message, and runs what its folder has for it.
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/runtimes/rehearsal/scripted-model.ts";

const [dir = "", how = "", key = "", text = "", runId] = process.argv.slice(2);
const stamp = defineTool({ name: "stamp", description: "Stamps a letter.", execute: async () => "stamped" });
const skein = await createSkein({
  dir,
  config: null,
  quiet: true,
  models: {
    "rehearsal/script": scriptedModel(({ prompt }) =>
      prompt.at(-1)?.role === "tool" ? { text: `Stamped: ${text}` } : { calls: [{ name: "stamp" }] },
    ),
  },
  agents: [defineAgent({ id: "main", model: "rehearsal/script", tools: [stamp] })],
  workers: how !== "accept",
});
const accepted = await skein.session({ sessionId: key }).accept(text, { idempotencyKey: key });
if (how === "accept") {
  process.stdout.write(`${accepted.runId}\n`);
  // The process has to be gone, not closed: what it accepted is all that is left.
  process.kill(process.pid, "SIGKILL");
} else {
  const ended = await skein.ended(runId ?? accepted.runId);
  process.stdout.write(`${JSON.stringify(ended.outcome)}\n`);
  await skein.close();
}
