import { afterEach, expect, test } from "vitest";
import type { Family } from "../support/family.ts";
import { withParts } from "../support/family.ts";
import { said } from "../support/reading-tools.ts";
import {
  firstHits,
  measureRecall,
  plainWords,
  readRecallMessages,
  readRecallQuestions,
} from "../support/recall-set.ts";
import { closeAll, newFolder } from "../support/skein.ts";

/** Measures on `test/golden/recall` whether search finds the messages that answer a question. */

const messages = readRecallMessages();
const questions = readRecallQuestions();

afterEach(closeAll);

async function tell(family: Family): Promise<void> {
  for (const [name, told] of Map.groupBy(messages, ({ conversation }) => conversation)) {
    const { sessionId } = await family.make(`agent:main:session:${name}`);
    const items = told.map(({ id, role, text }) => ({ id, draft: said(text, role) }));
    await family.skein.store.sessions.append({}, sessionId, items);
  }
}

/** Plain BM25 over any word, without stems, stop words and neighbors. Chinese is split into pairs of characters. */
function plainSearch(): (question: string) => Promise<readonly string[]> {
  const texts = messages.map(({ id, text }) => ({ id, words: plainWords(text) }));
  const holding = new Map<string, number>();
  for (const { words } of texts)
    for (const word of new Set(words)) holding.set(word, (holding.get(word) ?? 0) + 1);
  const mean = texts.reduce((sum, { words }) => sum + words.length, 0) / texts.length;
  const scoreOf = (words: readonly string[], query: ReadonlySet<string>) => {
    const counts = Map.groupBy(
      words.filter((word) => query.has(word)),
      (word) => word,
    );
    const norm = 1.2 * (0.25 + (0.75 * words.length) / mean);
    return [...counts].reduce((score, [word, { length }]) => {
      const held = holding.get(word) ?? 0;
      const rarity = Math.log(1 + (texts.length - held + 0.5) / (held + 0.5));
      return score + (rarity * length * 2.2) / (length + norm);
    }, 0);
  };
  return async (question) => {
    const query = new Set(plainWords(question));
    const scored = texts.map(({ id, words }) => ({ id, score: scoreOf(words, query) }));
    const best = scored.toSorted((one, other) => other.score - one.score).slice(0, firstHits);
    return best.map(({ id }) => id);
  };
}

test("[SR1] session_search finds most answers to questions in whole sentences, far more than plain BM25", async () => {
  const family = await withParts({}, { dir: newFolder() });
  await family.make("agent:main:main");
  await tell(family);
  const ours = await measureRecall(questions, async (query) => {
    const { hits } = await family.call("session_search", { query, limit: firstHits });
    return (hits as { readonly entryId: string }[]).map(({ entryId }) => entryId);
  });
  const plain = await measureRecall(questions, plainSearch());
  expect(plain).toBeCloseTo(0.456, 2);
  expect(ours).toBeGreaterThanOrEqual(0.8);
});
