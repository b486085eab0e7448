import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { piMessage } from "../messages.ts";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, textLength, timed, timedOften } from "../side.ts";
import { stockOfTexts } from "../texts.ts";

export const about: About = {
  name: "SQLite rows",
  packages: [],
  durability: "WAL, synchronous=FULL: synced at each commit",
};

export const acts: Acts = { append, load, page, disk };

const schema = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS messages (session TEXT, position INTEGER, body TEXT, PRIMARY KEY (session, position));`;

function openIn(folder: string): DatabaseSync {
  mkdirSync(folder, { recursive: true });
  const database = new DatabaseSync(join(folder, "rows.db"));
  database.exec(schema);
  return database;
}

async function append({ folder, count = 1, batch = 1, warmUp = 500 }: Job): Promise<Figures> {
  const database = openIn(folder);
  const textOf = stockOfTexts(textLength);
  const insert = database.prepare("INSERT INTO messages VALUES (?, ?, ?)");
  const fill = (session: string, amount: number) => {
    for (let from = 0; from < amount; from += batch) {
      database.exec("BEGIN");
      for (let index = from; index < Math.min(amount, from + batch); index++)
        insert.run(session, index, JSON.stringify(piMessage(index, textOf(index), index)));
      database.exec("COMMIT");
    }
  };
  fill("warm-up", warmUp);
  const ms = await timed(() => fill("bench-0", count));
  database.close();
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count };
}

async function load({ folder }: Job): Promise<Figures> {
  const database = openIn(folder);
  let messages = 0;
  const ms = await timed(() => {
    const rows = database.prepare("SELECT body FROM messages WHERE session = ? ORDER BY position");
    messages = rows.all("bench-0").map((row) => JSON.parse(String(row.body))).length;
  });
  database.close();
  return { ms, messages };
}

async function page({ folder, count = 1 }: Job): Promise<Figures> {
  const database = openIn(folder);
  const rows = database.prepare(
    "SELECT body FROM messages WHERE session = ? AND position < ? ORDER BY position DESC LIMIT 20",
  );
  const read = (before: number) => rows.all("bench-0", before).map((row) => JSON.parse(String(row.body)));
  const lastMs = await timedOften(50, () => read(count));
  const anywhereMs = await timedOften(50, (round) => read((round * 7919) % count));
  database.close();
  return { lastMs, anywhereMs };
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const bytes = bytesIn(folder, (path) => path.startsWith("rows.db"));
  return { bytes, ratio: bytes / (count * textLength) };
}
