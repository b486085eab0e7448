import type { ContextMessage } from "../src/core/context.ts";
import { resolveTranscriptPolicy } from "../src/transcript/policy.ts";
import { prepareTranscript } from "../src/transcript/steps/prepare-transcript.ts";
import { Conversation } from "../test/transcript/conversation.ts";
import { damageNames, damages } from "../test/transcript/damage.ts";
import { Chance } from "../test/transcript/random.ts";
import { anySigner } from "../test/transcript/signer.ts";
import type { Acts, Job } from "./side.ts";
import { timedOften } from "./side.ts";

/** The time it takes to prepare a transcript for a provider. */
export const acts: Acts = {
  prepare: async (job) => {
    const messages = transcriptOf(job);
    return { ms: await timedOften(9, () => prepareTranscript(messages, policy)) };
  },
};

export const policy = resolveTranscriptPolicy({ provider: "anthropic", model: "claude-sonnet-4-5" });

/** A transcript with this many messages, either valid or with ten defects per hundred messages. */
export function transcriptOf({ count = 1, kind }: Job): readonly ContextMessage[] {
  if (kind === "clean") return clean(count);
  const chance = new Chance(7);
  return Array.from({ length: Math.ceil(count / 100) }, () => {
    const messages = new Conversation(chance, anySigner).turns(40).messages.slice(0, 100);
    for (let each = 0; each < 10; each++) damages[chance.pick(damageNames)]?.(messages, chance);
    return messages;
  }).flat();
}

const { provider, model } = policy;

function clean(count: number): readonly ContextMessage[] {
  return Array.from({ length: count }, (_, index): ContextMessage => {
    const id = `toolu_${index - (index % 4)}`;
    const said = [{ type: "text" as const, text: `Message ${index}: ${"and so on ".repeat(40)}` }];
    const call = { type: "toolCall" as const, id, name: "read", arguments: { path: `notes-${index}.txt` } };
    if (index % 4 === 0 || index === count - 1) return { role: "user", content: said };
    if (index % 4 === 1) return { role: "assistant", content: [...said, call], provider, model };
    if (index % 4 === 2) return { role: "toolResult", toolCallId: id, toolName: "read", content: said };
    return { role: "assistant", content: said, provider, model };
  });
}
