// Two agents answer a group chat. One asks the other, and a refund waits for a person's approval. See README.md.
import { createSkein, defineAgent, defineTool } from "skein";
import Type from "typebox";
import { ChatPlatform } from "./chat-platform.ts";

const model = process.env.MODEL ?? "rehearsal/basic";
const secret = "only-for-this-example";
const room = "support";
const company = "company";
const answers: (() => void)[] = [];

const platform = new ChatPlatform(secret, ({ room: where, from, text }) => {
  console.log(`#${where}  ${from}: ${text.trim().replaceAll("\n", " ")}`);
  if (from === "desk") answers.shift()?.();
});

const refund = defineTool({
  name: "refund",
  description: "Refunds an order.",
  parameters: Type.Object({ order: Type.String() }),
  approval: true,
  execute: async ({ order }) => `Refunded order ${order}.`,
});

const skein = await createSkein({
  agents: [
    defineAgent({
      id: "desk",
      model,
      tools: [refund],
      system: "You answer customers. Ask billing about invoices.",
    }),
    defineAgent({ id: "billing", model, system: "You know every invoice." }),
  ],
  config: {
    channels: { team: { type: "webhook", secret, url: await platform.listen(), user: company } },
    tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow: ["desk -> billing"] } },
    session: { agentToAgent: { maxPingPongTurns: 0 } },
  },
});
const billing = { userId: company, sessionKey: "agent:billing:main" };
await skein.session(billing).send("repeat invoices are ready").result;

// In a product, a button in the chat would answer. Here a supervisor approves every refund.
skein.subscribe((event) => {
  if (event.type !== "approval.requested") return;
  console.log(`#approvals  supervisor: approve ${event.toolName}`);
  void skein.approvals.resolve(event.approvalId, "approved", "supervisor");
});

const webhook = skein.webhook("team");
if (webhook === null) throw new Error("The channel team is not configured.");
for (const [from, text] of [
  ["Ann", "describe your opening hours"],
  ["Ben", 'use the tool refund with {"order": "A-17"}'],
  ["Ann", "ask agent:billing:main describe the invoice of order A-17 and wait"],
] as const) {
  const answered = new Promise<void>((resolve) => answers.push(resolve));
  await platform.write(webhook, { room, from, text });
  await answered;
}

const { result } = await skein.callTool("sessions_list", {}, billing);
const { sessions } = result as { sessions: { key: string }[] };
console.log(`billing may list ${sessions.length} session: ${sessions.map(({ key }) => key).join(", ")}`);
await skein.close();
await platform.close();
