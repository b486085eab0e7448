import type { ContextMessage } from "../../src/core/context.ts";
import type { Signer } from "./conversation.ts";
import { Conversation } from "./conversation.ts";
import { damageNames, damages } from "./damage.ts";
import { Chance } from "./random.ts";

export interface Generated {
  readonly messages: readonly ContextMessage[];
  /** The kinds of damage that were done, in order. */
  readonly damage: readonly string[];
}

/** A transcript by its number: every fifth one clean, the others damaged up to six times. */
export function transcriptOf(seed: number, signer: Signer): Generated {
  const chance = new Chance(seed);
  const { messages } = new Conversation(chance, signer).turns(chance.between(1, 6));
  const damage = Array.from({ length: seed % 5 === 0 ? 0 : chance.between(1, 6) }, () =>
    chance.pick(damageNames),
  );
  for (const name of damage) if (messages.length > 0) damages[name]?.(messages, chance);
  return { messages, damage };
}

/** The words by which what users said can be found again. */
export function wordsOf(messages: readonly ContextMessage[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "user" ? (JSON.stringify(message.content).match(/said\d+x\d+/g) ?? []) : [],
  );
}

/** Takes away what a failure does not need, so that a person can read what is left. */
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
