import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createStore } from "../../src/entry-store.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import { createSkein, defineAgent } from "../../src/index.ts";

/** Folders with every kind of data that a store keeps, and comparisons of folders. */

type FolderStore = Awaited<ReturnType<typeof createStore>>;

const longName = `ann ${"永".repeat(200)}`;
export const users: readonly (string | null)[] = [null, "ann", "李 🦊", longName];

const message = (content: string) =>
  ({ draft: { type: "message", message: { role: "user", content } } }) as const;

/** A session with branches, a label, a name, a compaction, state and metadata that was changed. */
async function addTravelPlan(store: FolderStore, userId: string | null): Promise<void> {
  const scope = { ...(userId === null ? {} : { userId }), agentId: "main" };
  const { sessions } = store;
  const key = "agent:main:session:trip";
  const meta = { label: "trip", displayName: "旅行 🚄", custom: { "\u0000": ["\ud83e", 1e21] } };
  const { sessionId } = await sessions.create(scope, { key, cwd: "/tmp", meta });
  const first = await sessions.append(scope, sessionId, [
    message("京都で三日間 🍵"),
    message("A\u0000B\n{}"),
  ]);
  const [root] = first.entries;
  await sessions.append(scope, sessionId, [message("On the first branch")]);
  await sessions.branch(scope, sessionId, root?.id ?? null);
  const second = await sessions.append(scope, sessionId, [message("On the second branch 👍🏽")]);
  await sessions.append(scope, sessionId, [
    { draft: { type: "label", targetId: root?.id ?? "", label: "start" } },
    { draft: { type: "session_info", name: "Kyoto" } },
    {
      draft: {
        type: "compaction",
        summary: "## Goal\nKyoto",
        tokensBefore: 9,
        firstKeptEntryId: second.leafId,
      },
    },
    message("After the compaction"),
  ]);
  await sessions.patch(scope, sessionId, { displayName: "Kyoto", verboseLevel: "on", label: "kyoto" });
  await store.state.set(scope, sessionId, "plan", { days: [1, 2, 3], note: "天気" });
  await store.state.set(scope, sessionId, "plan", { days: [] });
  await store.blobs.put(scope, Buffer.from(`blob of ${userId}`));
  await sessions.fork(scope, sessionId, root?.id ?? null, { key: "agent:main:session:fork", cwd: "/tmp" });
  await sessions.reset(scope, sessionId);
}

async function addOthers(store: FolderStore): Promise<void> {
  const scope = { userId: "ann", agentId: "coder" };
  const make = (name: string) =>
    store.sessions.create(scope, { key: `agent:coder:session:${name}`, cwd: "/tmp", meta: { label: name } });
  const archived = await make("archived");
  await store.sessions.patch(scope, archived.sessionId, { archived: true });
  const trashed = await make("trashed");
  await store.sessions.append(scope, trashed.sessionId, [message("Thrown away")]);
  await store.state.set(scope, trashed.sessionId, "plan", 1);
  await store.sessions.remove(scope, trashed.sessionId);
  await make("empty");
  const large = await make("large");
  const long = "長い文章 ".repeat(500);
  for (let index = 0; index < 5; index += 1)
    await store.sessions.append(
      scope,
      large.sessionId,
      Array.from({ length: 80 }, (_, at) => message(`${index}.${at} ${long}`)),
    );
  await store.blobs.put(scope, Buffer.alloc(3_000_000, 7));
  const gone = { userId: "bob", agentId: "main" };
  await store.sessions.create(gone, { key: "agent:main:main", cwd: "/tmp" });
  await store.purgeUser("bob");
}

/** A turn whose answer cannot be delivered yet. */
async function addUndelivered(root: string): Promise<void> {
  const failed = Promise.withResolvers<void>();
  const desk = {
    id: "desk",
    deliver: async () => {
      failed.resolve();
      throw new Error("The desk is closed");
    },
  };
  const skein = await createSkein({
    dir: root,
    config: null,
    app: "desk",
    models: { "own/model": scriptedModel([{ text: "The answer" }]) },
    agents: [defineAgent({ id: "main", model: "own/model" })],
    channels: [desk],
  });
  const deliverTo = { channel: "desk", to: "ann" };
  await skein.session({ userId: "ann", sessionId: "desk" }).send("Hello", { deliverTo }).result;
  await failed.promise;
  await skein.close();
}

/** Adds rows with the state of a chat channel, as the channel writes them. */
export function addChatState(root: string, ...names: readonly string[]): void {
  const db = new DatabaseSync(join(root, "work.db"));
  const insert = db.prepare("INSERT INTO facts (name, value) VALUES (?, ?)");
  for (const name of names) insert.run(`channel.team.${name}`, '9999999999999 "a value"');
  db.close();
}

/** Fills a new folder with one session. */
export async function fillSparsely(root: string): Promise<void> {
  const store = await createStore({ dir: root });
  const { sessionId } = await store.sessions.create({}, { key: "agent:main:main", cwd: "/tmp" });
  await store.sessions.append({}, sessionId, [message("Hello")]);
  await store.close();
}

/** Fills a new folder. No process uses it afterward. */
export async function fillFolder(root: string, moreSessions = 0): Promise<void> {
  const store = await createStore({ dir: root });
  for (const userId of users) await addTravelPlan(store, userId);
  await addOthers(store);
  for (let index = 0; index < moreSessions; index += 1) {
    const init = { key: `agent:main:session:more-${index}`, cwd: "/tmp" };
    const { sessionId } = await store.sessions.create({}, init);
    await store.sessions.append({}, sessionId, [message(`Message ${index}`)]);
  }
  await store.close();
  await addUndelivered(root);
  addChatState(root, "subscribed:slack:C1:1", "value:dedupe:スレッド", "list:queue:slack:C1:1");
}

/** Returns the files that cannot be rebuilt from others, by path. */
export function filesIn(root: string): Map<string, string> {
  const all = readdirSync(root, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const paths = all.map((each) => relative(root, join(each.parentPath, each.name)));
  const kept = paths.filter((path) => /\.log\.jsonl$|\/context\/.*\.json$|\/blobs\/|user\.json$/.test(path));
  return new Map(kept.toSorted().map((path) => [path, readFileSync(join(root, path)).toString("base64")]));
}

/** Facts about a folder itself, and tables that are rebuilt. */
const ownFacts = ["begun", "index", "erase", "losses", "schema.gateway"];
const ownTables = ["dirty"];

/** The process that wrote the files of a fork does not matter once they exist. */
function withoutMaker(row: Record<string, unknown>): Record<string, unknown> {
  if (typeof row.first !== "string") return row;
  const { maker: _maker, claimedAt: _claimedAt, ...first } = JSON.parse(row.first);
  return { ...row, first };
}

/** Returns the rows of `work.db`, by table. Some tables are created when they are first needed. */
export function rowsIn(root: string): Record<string, unknown[]> {
  const db = new DatabaseSync(join(root, "work.db"), { readOnly: true });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const names = tables.map(({ name }) => String(name)).filter((name) => !ownTables.includes(name));
    const rowsOf = (name: string) =>
      db
        .prepare(`SELECT * FROM ${name}`)
        .all()
        .filter((row) => name !== "facts" || !ownFacts.includes(String(row.name)))
        .map((row) => JSON.stringify(withoutMaker(row)))
        .toSorted();
    const tablesWithRows = names.toSorted().map((name) => [name, rowsOf(name)] as const);
    return Object.fromEntries(tablesWithRows.filter(([, rows]) => rows.length > 0));
  } finally {
    db.close();
  }
}
