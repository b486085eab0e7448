import { expect, test } from "vitest";
import type { ContextMessage } from "../../src/core/context.ts";
import { prepareTranscript } from "../../src/transcript/pipeline/prepare.ts";
import { resolveTranscriptPolicy } from "../../src/transcript/policy.ts";
import { cpuMsOf } from "../support/cpu-time.ts";
import { Conversation, speakers } from "./conversation.ts";
import { damageNames, damages } from "./damage.ts";
import { Chance } from "./random.ts";
import { anySigner } from "./signer.ts";

/** Blocks of a hundred messages, each damaged, so that ten times as many have ten times the damage. */
function damaged(blocks: number): readonly ContextMessage[] {
  const chance = new Chance(7);
  return Array.from({ length: blocks }, () => {
    const messages = new Conversation(chance, anySigner).turns(25).messages.slice(0, 100);
    for (let count = 0; count < 10; count++) damages[chance.pick(damageNames)]?.(messages, chance);
    return messages;
  }).flat();
}

/** What tempts a matcher to look at everything for each: one id for all calls, one speaker for all turns. */
const hostile: Readonly<Record<string, (count: number) => readonly ContextMessage[]>> = {
  "one id for all calls": (count) =>
    Array.from(
      { length: count },
      (_, at): ContextMessage =>
        at % 2 === 0
          ? { role: "assistant", content: [{ type: "toolCall", id: "call_0", name: "read", arguments: {} }] }
          : {
              role: "toolResult",
              toolCallId: "call_0",
              toolName: "read",
              content: [{ type: "text", text: "x" }],
            },
    ),
  "all calls in one message": (count) => [
    {
      role: "assistant",
      content: Array.from(
        { length: count },
        () => ({ type: "toolCall", id: "call_0", name: "read", arguments: {} }) as const,
      ),
    },
  ],
  "only users": (count) =>
    Array.from({ length: count }, (): ContextMessage => ({ role: "user", content: "x" })),
  "only assistants": (count) =>
    Array.from(
      { length: count },
      (): ContextMessage => ({ role: "assistant", content: [{ type: "text", text: "x" }] }),
    ),
  "only orphans": (count) =>
    Array.from(
      { length: count },
      (): ContextMessage => ({ role: "toolResult", toolCallId: "a", toolName: "b", content: [] }),
    ),
  "only hooks": (count) =>
    Array.from(
      { length: count },
      (): ContextMessage => ({ role: "custom", customType: "x", content: "y", timestamp: 1 }),
    ),
  "a line of ours, behind line ends of other kinds": (count) => [
    { role: "user", content: `${"\r\u2028".repeat(count * 5)}x [Inter-session message]` },
    { role: "user", content: `${"\r [Inter-session message]".repeat(count)}` },
  ],
  damaged: (count) => damaged(count / 100),
};

function timeOf(messages: readonly ContextMessage[]): Promise<number> {
  const policies = speakers.map((speaker) => resolveTranscriptPolicy(speaker));
  return cpuMsOf(async () => {
    for (const policy of policies) await prepareTranscript(messages, policy);
  });
}

test.each(Object.entries(hostile))(
  "[TR18] the time grows linearly with the messages: %s",
  async (_, make) => {
    const [few, many] = [await timeOf(make(1000)), await timeOf(make(10_000))];
    // Ten times as many take a hundred times as long where a step is quadratic.
    expect(many / few).toBeLessThan(40);
  },
);
