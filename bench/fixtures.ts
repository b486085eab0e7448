import { linkSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AppendItem, SessionInit, Store } from "../src/store/contract.ts";
import { items, piMessage } from "./messages.ts";
import { bringUp, keyOf, openStore } from "./ours.ts";
import { writeTranscript } from "./peers/claude.ts";
import type { Figures, Job } from "./side.ts";
import { longSessionText } from "./side.ts";
import { mixed, seeded, stockOfTexts } from "./texts.ts";

/** Fixtures that rows read. They are created with the store's own API, without syncs, and are fully indexed. */

export const acts: Readonly<Record<string, (job: Job) => Promise<Figures>>> = {
  grown,
  compacted,
  listed,
  related,
  linkedForPi,
  writtenForClaude,
  searchable,
  withHugeResult,
};

const cwd = "/home/ann/project";
const batch = 1000;
const keptByCompaction = 200;
const saidSince = 50;

async function withStore(job: Job, act: (store: Store) => Promise<void>): Promise<Figures> {
  const started = performance.now();
  const store = await openStore({ ...job, durability: "os" });
  await act(store);
  await bringUp(store);
  await store.close();
  return { ms: performance.now() - started };
}

/** A long session. The IDs of some of its entries are stored in a file next to the store. */
async function grow(job: Job, isCompacted: boolean): Promise<Figures> {
  const { folder, sessionId = "", count = 0 } = job;
  const textOf = stockOfTexts(longSessionText);
  const ids: string[] = [];
  return withStore(job, async (store) => {
    const { sessions } = store;
    await sessions.create({}, { key: keyOf(sessionId), sessionId, cwd });
    const add = async (from: number, to: number) => {
      for (let at = from; at < to; at += batch) {
        const { entries } = await sessions.append({}, sessionId, items(at, Math.min(batch, to - at), textOf));
        ids.push(...entries.map(({ id }) => id));
        if (at % (50 * batch) === 0) await sessions.list({}, { limit: 1 });
      }
    };
    await add(0, isCompacted ? count - saidSince - 1 : count);
    if (isCompacted) {
      const firstKeptEntryId = ids.at(-keptByCompaction) ?? null;
      const summary = textOf(0);
      const draft = { type: "compaction", summary, firstKeptEntryId, tokensBefore: count * 250 } as const;
      await sessions.append({}, sessionId, [{ draft }]);
      await add(count - saidSince, count);
    }
    const some = ids.filter((_, index) => index > 20 && index % Math.ceil(ids.length / 200) === 0);
    writeFileSync(join(folder, "..", `ids-${sessionId}.json`), JSON.stringify(some));
  });
}

/** A long session with one huge tool result among its last entries. */
async function withHugeResult(job: Job): Promise<Figures> {
  const { sessionId = "", count = 0, payload = 0 } = job;
  const textOf = stockOfTexts(longSessionText);
  return withStore(job, async ({ sessions }) => {
    await sessions.create({}, { key: keyOf(sessionId), sessionId, cwd });
    for (let at = 0; at < count; at += batch)
      await sessions.append({}, sessionId, items(at, Math.min(batch, count - at), textOf));
    const text = Array.from({ length: payload / 100 }, () => "x".repeat(99)).join("\n");
    const call = { type: "toolCall", id: "huge", name: "read", arguments: {} };
    const about = { toolCallId: call.id, toolName: call.name, isError: false };
    const messages = [
      { ...piMessage(1, "", 0), content: [call], stopReason: "toolUse" },
      { role: "toolResult", ...about, content: [{ type: "text", text }] },
    ];
    await sessions.append({}, sessionId, [
      ...messages.map((message) => ({ draft: { type: "message", message } }) as AppendItem),
      ...items(0, 20, textOf),
    ]);
  });
}

function grown(job: Job): Promise<Figures> {
  return grow(job, false);
}

function compacted(job: Job): Promise<Figures> {
  return grow(job, true);
}

/** The nth of many sessions. There are three agents and several kinds, and some sessions have a label and a name. */
function initOf(number: number): SessionInit {
  const agent = ["main", "helper", "scout"][number % 3];
  const rest = [`session:s${number}`, `slack:group:G${number}`, `cron:weekly-${number}`, `user:u${number}`];
  const key = `agent:${agent}:${rest[number % 4]}`;
  const meta = number % 5 === 0 ? { label: `weekly ${number}`, displayName: `Report ${number}` } : {};
  return { key, sessionId: `s${number}`, cwd, meta };
}

const shortText = stockOfTexts(200, 64);

function textsOf(number: number): [string, string] {
  return [shortText(number), shortText(number + 1)];
}

/**
 * Many short sessions. Creating one syncs files and its folder, so many are created concurrently. The index is updated
 * regularly, because every list scans the sessions that are not indexed yet.
 */
async function listed(job: Job): Promise<Figures> {
  const { count = 0 } = job;
  const atOnce = 64;
  const atATime = 2000;
  const started = performance.now();
  for (let first = 0; first < count; first += atATime) {
    await withStore(job, async ({ sessions }) => {
      let next = first;
      const work = async () => {
        for (let number = next++; number < Math.min(count, first + atATime); number = next++) {
          const init = initOf(number);
          await sessions.create({}, init);
          const texts = textsOf(number);
          await sessions.append(
            {},
            init.sessionId ?? "",
            items(0, 2, (index) => texts[index] ?? ""),
          );
        }
      };
      await Promise.all(Array.from({ length: atOnce }, work));
    });
  }
  return { ms: performance.now() - started };
}

const perSession = 6;

/**
 * Sessions of three agents with a few messages each. The first one is main. Every tenth session descends from it, with
 * five per parent. They are stored in the folder that a complete program uses below its own.
 */
async function related(job: Job): Promise<Figures> {
  const { folder, count = 0 } = job;
  const keyAt = (number: number) =>
    number === 0 ? "agent:main:main" : `agent:${["main", "helper", "scout"][number % 3]}:session:r${number}`;
  return withStore({ ...job, folder: join(folder, "store") }, async ({ sessions }) => {
    for (let number = 0; number < count; number++) {
      const sessionId = `r${number}`;
      const isChild = number > 0 && number % 10 === 0;
      const meta = isChild ? { spawnedBy: keyAt(Math.floor((number / 10 - 1) / 5) * 10) } : {};
      await sessions.create({}, { key: keyAt(number), sessionId, cwd, meta });
      await sessions.append({}, sessionId, items(number, perSession, shortText));
      if (number % 500 === 0) await sessions.list({}, { limit: 1 });
    }
  });
}

/** The same transcripts for pi, as hard links in pi's own folder. Pi can read Skein's files. */
async function linkedForPi({ folder, file = "" }: Job): Promise<Figures> {
  const target = join(folder, "sessions", "--home-ann-project--");
  mkdirSync(target, { recursive: true });
  const names = readdirSync(file, { recursive: true, encoding: "utf8" });
  const sessions = names.filter((name) => name.endsWith(".jsonl") && !name.endsWith(".log.jsonl"));
  for (const name of sessions) linkSync(join(file, name), join(target, name.replaceAll("/", "_")));
  return { sessions: sessions.length };
}

async function writtenForClaude({ folder, count = 0 }: Job): Promise<Figures> {
  for (let number = 0; number < count; number++)
    writeTranscript(folder, number, textsOf(number), 1_790_000_000_000 + number * 1000);
  return { sessions: count };
}

/** Many sessions with a thousand messages each, in English and Chinese. */
async function searchable(job: Job): Promise<Figures> {
  const { count = 0 } = job;
  const random = seeded(11);
  const textOf = () => mixed(random, 20 + Math.floor(random() * 60));
  return withStore(job, async (store) => {
    for (let from = 0; from < count; from += batch) {
      const sessionId = `search-${from / batch}`;
      await store.sessions.create({}, { key: keyOf(sessionId), sessionId, cwd });
      await store.sessions.append({}, sessionId, items(0, Math.min(batch, count - from), textOf));
      if (from % (20 * batch) === 0) await store.sessions.list({}, { limit: 1 });
    }
  });
}
