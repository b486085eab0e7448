import type { ContextMessage, TranscriptOptions } from "../../src/index.ts";
import type { Signer } from "./conversation.ts";
import { Conversation, png, toolNames } from "./conversation.ts";
import { damageNames, damages } from "./damage.ts";
import { Chance } from "./random.ts";

export interface Generated {
  readonly messages: readonly ContextMessage[];
  /** The kinds of damage, in order. */
  readonly damage: readonly string[];
}

/** Generates the nth transcript. Every fifth one is clean, and the others are damaged up to six times. */
export function transcriptOf(seed: number, signer: Signer): Generated {
  const chance = new Chance(seed);
  const { messages } = new Conversation(chance, signer).turns(chance.between(1, 6));
  const damage = Array.from({ length: seed % 5 === 0 ? 0 : chance.between(1, 6) }, () =>
    chance.pick(damageNames),
  );
  for (const name of damage) if (messages.length > 0) damages[name]?.(messages, chance);
  return { messages, damage };
}

/** A run's options other than the messages, in all combinations. */
export function optionsOf(seed: number): TranscriptOptions {
  const blob = (sha256: string) => (sha256 === "there" ? Buffer.from(png, "base64") : null);
  const pruning = { mode: "cache-ttl", ttlMs: 1000, lastCallAt: 0, now: 10_000 } as const;
  return {
    ...(seed % 2 === 0 ? { tools: toolNames } : {}),
    ...(seed % 11 === 0 ? { tools: [] } : {}),
    ...(seed % 3 === 0 ? { contextWindow: seed % 9 === 0 ? 1000 : seed % 2 === 0 ? 8000 : 30_000 } : {}),
    ...(seed % 5 < 2 ? { images: { blob } } : {}),
    ...(seed % 7 === 0 ? { historyLimit: 1 + (seed % 3) } : {}),
    ...(seed % 4 === 1 ? { pruning } : {}),
  };
}

/** The unique words in the user messages. */
export function wordsOf(messages: readonly ContextMessage[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "user" ? (JSON.stringify(message.content).match(/said\d+x\d+/g) ?? []) : [],
  );
}

/** Removes what is not needed to reproduce a failure so that a person can read the rest. */
export async function shrunk(
  messages: readonly ContextMessage[],
  fails: (messages: readonly ContextMessage[]) => Promise<boolean>,
): Promise<readonly ContextMessage[]> {
  let least = messages;
  for (let at = least.length - 1; at >= 0; at--) {
    const fewer = least.toSpliced(at, 1);
    if (await fails(fewer)) least = fewer;
  }
  return least;
}
