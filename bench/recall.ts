import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { RecallMessage } from "../test/support/recall-set.ts";
import {
  firstHits,
  measureRecall,
  plainWords,
  readRecallMessages,
  readRecallQuestions,
} from "../test/support/recall-set.ts";
import { piMessage } from "./messages.ts";
import { keyOf, openStore } from "./ours.ts";
import type { Figures, Job } from "./side.ts";

/** The share of the answers in `test/golden/recall` that a search finds among its first hits. */
export async function recall(job: Job): Promise<Figures> {
  const store = await openStore(job);
  try {
    for (const [sessionId, some = []] of Map.groupBy(
      readRecallMessages(job.file),
      (each) => each.conversation,
    )) {
      await store.sessions.create({}, { key: keyOf(sessionId), sessionId, cwd: "/home/ann" });
      await store.sessions.append({}, sessionId, some.map(entryOf));
    }
    const find = async (text: string) => {
      const { hits } = await store.search.search({}, { text, limit: firstHits });
      return hits.map(({ entryId }) => entryId);
    };
    return { recall: await measureRecall(readRecallQuestions(job.file), find) };
  } finally {
    await store.close();
  }
}

function entryOf({ id, role, text }: RecallMessage) {
  const message = { ...piMessage(role === "user" ? 0 : 1, text, 1_790_000_000_000), role };
  return { id, draft: { type: "message" as const, message: message as ReturnType<typeof piMessage> } };
}

/** The share that SQLite's full-text index finds with any word of the question. */
async function plainRecall({ folder, file }: Job): Promise<Figures> {
  mkdirSync(folder, { recursive: true });
  const database = new DatabaseSync(join(folder, "plain.db"));
  database.exec("CREATE VIRTUAL TABLE texts USING fts5 (id UNINDEXED, words)");
  const insert = database.prepare("INSERT INTO texts (id, words) VALUES (?, ?)");
  for (const { id, text } of readRecallMessages(file)) insert.run(id, plainWords(text).join(" "));
  const select = database.prepare(
    `SELECT id FROM texts WHERE words MATCH ? ORDER BY rank LIMIT ${firstHits}`,
  );
  const find = async (question: string) => {
    const query = plainWords(question).map((word) => `"${word}"`);
    return select.all(query.join(" OR ")).map(({ id }) => String(id));
  };
  const found = await measureRecall(readRecallQuestions(file), find);
  database.close();
  return { recall: found };
}

export const acts = { recall: plainRecall };
