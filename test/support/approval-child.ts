import { createSkein, defineAgent, defineTool } from "../../src/index.ts";

// A process that runs a tool that requires approval and prints the outcome.

const [dir = ""] = process.argv.slice(2);
const pay = defineTool({
  name: "pay",
  description: "Pays a bill.",
  approval: true,
  execute: () => "paid",
});
const agents = [defineAgent({ id: "main", model: "rehearsal/basic", tools: [pay] })];
const skein = await createSkein({ dir, config: null, agents });
const turn = skein.session().send("use the tool pay");
for await (const event of turn) {
  if (event.type === "approval" && event.answer === null) process.stdout.write(`asked ${event.approvalId}\n`);
  if (event.type === "tool_result") process.stdout.write(`result ${JSON.stringify(event.content)}\n`);
}
await turn.result;
await skein.close();
