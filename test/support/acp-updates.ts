import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Act, TurnLogOptions } from "../../src/acp/client/turn-log.ts";
import { TurnLog } from "../../src/acp/client/turn-log.ts";
import type { AgentTurnEnd } from "../../src/acp/client/turn-outcome.ts";

/** Updates from an ACP agent, a turn log that receives them, and the results as one line per write. */

export type Loose = { readonly sessionUpdate: string; readonly [field: string]: unknown };

export function openedLog(more: Partial<TurnLogOptions> = {}) {
  let now = 0;
  const log = new TurnLog({
    agent: "crab",
    terminalText: (id) => (id === "t1" ? "42 tests pass" : null),
    now: () => now++,
    costBefore: 0,
    ...more,
  });
  const take = (...updates: readonly Loose[]) =>
    updates.flatMap((update) => log.take(update as unknown as SessionUpdate));
  return { log, take };
}

export const said = (text: string, messageId?: string): Loose => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
  ...(messageId !== undefined && { messageId }),
});
export const thought = (text: string): Loose => ({
  sessionUpdate: "agent_thought_chunk",
  content: { type: "text", text },
});
export const begun = (toolCallId: string, more: object = {}): Loose => ({
  sessionUpdate: "tool_call",
  toolCallId,
  title: `Title of ${toolCallId}`,
  kind: "read",
  ...more,
});
export const ended = (toolCallId: string, more: object = {}): Loose => ({
  sessionUpdate: "tool_call_update",
  toolCallId,
  status: "completed",
  content: [{ type: "content", content: { type: "text", text: `done ${toolCallId}` } }],
  ...more,
});

/** Returns one line per write. */
export function lines(acts: readonly Act[]): string[] {
  return acts.map((act) => {
    if (act.act === "note") return `note ${(act.draft as { customType?: string }).customType}`;
    if (act.act === "emit") {
      const { event } = act;
      if (event.type === "delta") return `delta ${event.kind} ${event.delta}`;
      if (event.type === "tool_call")
        return `call ${event.call.name} ${JSON.stringify(event.call.arguments)}`;
      return event.type === "tool_result"
        ? `ended ${event.call.id}${event.isError ? " failed" : ""}`
        : event.type;
    }
    const { message } = act;
    if (message.role === "toolResult")
      return `result ${message.toolCallId}${message.isError ? " failed" : ""}`;
    if (message.role !== "assistant") return message.role;
    const blocks = message.content.map((block) =>
      block.type === "text" ? block.text : block.type === "thinking" ? `(${block.thinking})` : `→${block.id}`,
    );
    return `${message.stopReason}: ${blocks.join(" | ")}`;
  });
}

export const says = (acts: readonly Act[]) => lines(acts.filter(({ act }) => act !== "emit"));
export const done: AgentTurnEnd = { stopReason: "end_turn" };
