// An application with an agent `main` defined in code. `accept` accepts one message and kills the process, `die` is
// killed in the middle of the turn, and `run` waits for a run to end.

import { scriptedModel } from "../../src/entry-testing.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";

const [dir = "", how = "", key = "", text = "", runId] = process.argv.slice(2);
const killThis = () => process.kill(process.pid, "SIGKILL");
const stamp = defineTool({
  name: "stamp",
  description: "Stamps a letter.",
  execute: async () => {
    if (how === "die") killThis();
    return "stamped";
  },
});
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
  killThis();
} else {
  const ended = await skein.ended(runId ?? accepted.runId);
  process.stdout.write(`${JSON.stringify(ended.outcome)}\n`);
  await skein.close();
}
