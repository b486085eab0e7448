// A lead spawns helpers, sleeps until they have finished, and combines their answers. See README.md.
import { createHash } from "node:crypto";
import { createSkein, defineAgent } from "skein";

const model = process.env.MODEL ?? "rehearsal/basic";
const topics =
  "spawn three helpers to describe the gardens of Kyoto in 2 seconds; compare trains and buses in 3 seconds; plan a rainy day in 4 seconds and summarize";
const question = process.argv.slice(2).join(" ") || topics;

const skein = await createSkein({
  agents: [
    defineAgent({
      id: "lead",
      model,
      system:
        "Split the question into independent parts, spawn a helper for each, wait for them, and combine their answers.",
    }),
  ],
  config: { budget: { runs: 10 }, lanes: { subagent: 3 } },
});
const lead = skein.session({ sessionKey: "agent:lead:main" });

// The same question has the same key, so a second start continues the run of the first instead of asking again.
const idempotencyKey = createHash("sha256").update(question).digest("hex");
const turn = lead.send(question, { idempotencyKey });
console.log(`run ${turn.runId}`);
for await (const event of turn) {
  if (event.type === "child") console.log(`${event.childSessionKey}: ${event.state}`);
}
const { reply } = await turn.result;
console.log(`\n${reply}\n`);

const { result } = await skein.callTool("sessions_list", {}, { sessionKey: "agent:lead:main" });
const { sessions } = result as { sessions: { key: string; kind: string }[] };
console.log(`${sessions.length} sessions: ${sessions.map(({ key }) => key).join(", ")}`);
await skein.close();
