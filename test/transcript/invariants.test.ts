import { describe, expect, test } from "vitest";
import type { ContextMessage, TranscriptMessage } from "../../src/index.ts";
import { prepareTranscript, resolveTranscriptPolicy } from "../../src/index.ts";
import { repetitions } from "../support/repetitions.ts";
import { runSeed } from "../support/run-seed.ts";
import { textOf } from "../support/text.ts";
import { speakers } from "./conversation.ts";
import { damageNames, damages } from "./damage.ts";
import { optionsOf, shrunk, transcriptOf, wordsOf } from "./generate.ts";
import { Chance } from "./random.ts";
import { anySigner } from "./signer.ts";

/** The number of transcripts for each policy. The run's seed is the seed of the first one. */
const runs = repetitions.transcripts;
const seeds = Array.from({ length: runs }, (_, index) => runSeed + index);
const policies = speakers.map((speaker) => resolveTranscriptPolicy(speaker));

/** Fails with the smallest transcript that reproduces the problem. */
async function holds(
  seed: number,
  messages: readonly ContextMessage[],
  problem: (messages: readonly ContextMessage[]) => Promise<string | null>,
): Promise<void> {
  const found = await problem(messages);
  if (found === null) return;
  const least = await shrunk(messages, async (fewer) => (await problem(fewer)) !== null);
  expect.fail(`transcript ${seed}: ${(await problem(least)) ?? found}\n${JSON.stringify(least, null, 1)}`);
}

describe.each(policies)("for $provider/$model", (policy) => {
  test("[TR16] a second pass of the pipeline changes nothing", async () => {
    for (const seed of seeds) {
      await holds(seed, transcriptOf(seed, anySigner).messages, async (messages) => {
        const options = optionsOf(seed);
        const once = await prepareTranscript(messages, policy, options);
        const again = await prepareTranscript(once.messages, policy, options);
        if (again.changes.length > 0) return `changed again: ${JSON.stringify(again.changes)}`;
        return again.messages === once.messages ? null : "another array";
      });
    }
  });

  test("[TR17] no user text is lost", async () => {
    for (const seed of seeds) {
      await holds(seed, transcriptOf(seed, anySigner).messages, async (messages) => {
        const { messages: after, changes } = await prepareTranscript(messages, policy, optionsOf(seed));
        if (changes.some(({ kind }) => kind === "history_limited")) return null;
        const texts = after.map((message: TranscriptMessage) =>
          message.role === "user" ? textOf(message.content) : "",
        );
        const lost = wordsOf(messages).find((word) => !texts.some((text) => text.includes(word)));
        return lost === undefined ? null : `${lost} is lost`;
      });
    }
  });
});

test.each(policies)(
  "[TR16] nor if results precede a steered message as text, for $provider/$model",
  async (policy) => {
    const messages: readonly ContextMessage[] = [
      { role: "user", content: "Read it" },
      { role: "assistant", content: [{ type: "toolCall", id: "call00001", name: "read", arguments: {} }] },
      {
        role: "toolResult",
        toolCallId: "call00001",
        toolName: "read",
        content: [{ type: "text", text: "x" }],
      },
      { role: "user", content: "Shorter, please" },
    ];
    const options = { tools: [], historyLimit: 1 };
    const once = await prepareTranscript(messages, policy, options);
    expect(await prepareTranscript(once.messages, policy, options)).toEqual({
      messages: once.messages,
      changes: [],
    });
  },
);

test("[TR2] a step that has nothing to do returns the same array, and no change", async () => {
  const messages: readonly ContextMessage[] = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: [{ type: "toolCall", id: "call00001", name: "read", arguments: {} }] },
    { role: "toolResult", toolCallId: "call00001", toolName: "read", content: [{ type: "text", text: "x" }] },
  ];
  for (const policy of policies) {
    const done = await prepareTranscript(messages, policy);
    expect(done).toEqual({ messages, changes: [] });
    expect(done.messages).toBe(messages);
  }
});

test("[TR2] every kind of damage is reported by step, kind, note and entry", async () => {
  for (const name of damageNames) {
    let told = 0;
    for (let seed = 0; seed < 50; seed++) {
      const messages = [...transcriptOf(seed * 5, anySigner).messages];
      const damage = damages[name];
      damage?.(messages, new Chance(seed));
      const entryIds = messages.map((_, index) => `e${index}`);
      const { changes } = await prepareTranscript(messages, policies[0] as never, { entryIds });
      told += changes.length;
      for (const change of changes) {
        expect(change.step).toMatch(/^[a-z][A-Za-z]+$/);
        expect(change.kind).toMatch(/^[a-z_]+$/);
        expect(change.note).toMatch(/^[A-Z].*\.$/s);
        if (change.entryId !== undefined) expect(entryIds).toContain(change.entryId);
      }
    }
    expect(told, name).toBeGreaterThan(0);
  }
});
