import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { append, create } from "../../conformance/expect.ts";
import { realDisk } from "./disk.ts";
import { IndexDb } from "./index-db.ts";
import { Indexer } from "./indexer.ts";
import { indexDbName, workDbName } from "./layout.ts";
import { openFilesStore } from "./store.ts";
import { WorkDb } from "./work-db.ts";

const root = mkdtempSync(join(tmpdir(), "skein-indexer-"));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const scope = { agentId: "main" };
const quick = 64 * 1024;

function grow(name: string, content: string): void {
  const message = { role: "user", content };
  const line = { type: "message", id: `late-${name}`, parentId: null, timestamp: new Date(0), message };
  appendFileSync(join(root, "agents/main/sessions", `${name}.jsonl`), `${JSON.stringify(line)}\n`);
}

test("[STE1] a session that has grown a lot is indexed later, and blocks no other", async () => {
  const store = await openFilesStore({ root, index: "in place" });
  const uids: string[] = [];
  for (const name of ["long", "short"]) {
    await create(store, scope, name);
    await append(store, scope, name, "first");
    uids.push((await store.sessions.get(scope, name))?.uid ?? "");
  }
  await store.upkeep.bringUpIndex();
  await store.close();
  grow("long", "word ".repeat(quick / 4));
  grow("short", "word");
  const [work, index] = [new WorkDb(join(root, workDbName)), new IndexDb(join(root, indexDbName))];
  try {
    for (const uid of uids) work.markDirty(uid);
    const indexer = new Indexer({ work, index, disk: realDisk, root, chunkBytes: 1024 });
    const taken: unknown[] = [];
    const forEver = Number.POSITIVE_INFINITY;
    const take = (row: { readonly sessionId: string } | null) => void taken.push(row?.sessionId);
    expect(indexer.catchUp(forEver, take, { mostBytes: quick })).toEqual({
      behind: 1,
      unreadable: 0,
      problems: [],
    });
    expect(taken).toEqual(["short"]);
    expect(indexer.catchUp(forEver, take)).toEqual({ behind: 0, unreadable: 0, problems: [] });
    expect(taken).toEqual(["short", "long"]);
  } finally {
    work.close();
    index.close();
  }
});
