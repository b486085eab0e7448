import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { createStore } from "../../src/entry-store.ts";
import { append, create } from "../support/store-calls.ts";

const alice = { userId: "alice", agentId: "main" };

/** A closed store with sessions of two users, one of them in the trash. */
async function filled(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "skein-rebuild-"));
  folders.push(folder);
  const store = await createStore({ dir: folder });
  await create(store, alice, "s", { label: "first label" });
  await append(store, alice, "s", "needle");
  await store.sessions.patch(alice, "s", { label: "holiday", model: "x/y" });
  await store.sessions.create({ agentId: "main" }, { key: "agent:main:main", sessionId: "m", cwd: "/w" });
  await create(store, alice, "gone");
  await store.sessions.remove(alice, "gone");
  await store.close();
  return folder;
}

const folders: string[] = [];
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true, force: true });
});

const root = join(mkdtempSync(join(tmpdir(), "skein-disk-")), "store");
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("the files on disk", () => {
  test("[FS15] have the right modes and names, and the user of a hashed folder", async () => {
    const store = await createStore({ dir: root });
    const userId = "a very long user id ".repeat(12);
    const scope = { userId, agentId: "main" };
    await create(store, scope, "s");
    await append(store, scope, "s", "a", "b");
    await store.sessions.append(scope, "s", [
      { draft: { type: "compaction", summary: "S", firstKeptEntryId: "b", tokensBefore: 1 } },
    ]);
    await store.state.set(scope, "s", "tools", { active: [] });
    const blob = await store.blobs.put(scope, new Uint8Array(10));
    await create(store, { agentId: "main" }, "mine");
    await store.sessions.remove({ agentId: "main" }, "mine");
    const all = readdirSync(root, { recursive: true, encoding: "utf8" });
    for (const name of ["", ...all]) {
      const stat = statSync(join(root, name));
      expect([name, (stat.mode & 0o777).toString(8)]).toEqual([name, stat.isDirectory() ? "700" : "600"]);
    }
    const home = `users/~${createHash("sha256").update(userId).digest("hex")}`;
    expect(JSON.parse(readFileSync(join(root, home, "user.json"), "utf8"))).toEqual({ userId });
    const files = all.filter(
      (name) => statSync(join(root, name)).isFile() && !/\.db(-wal|-shm)?$|\.lock|sessions\.json/.test(name),
    );
    expect(files.filter((name) => !name.startsWith("trash/")).toSorted()).toEqual(
      [
        `${home}/agents/main/blobs/${blob}`,
        `${home}/agents/main/context/s/tools.json`,
        `${home}/agents/main/sessions/s.jsonl`,
        `${home}/agents/main/sessions/s.log.jsonl`,
        `${home}/user.json`,
      ].toSorted(),
    );
    expect(files.filter((name) => name.startsWith("trash/")).map((name) => name.split("/").at(-1))).toEqual(
      expect.arrayContaining(["mine.jsonl", "mine.log.jsonl"]),
    );
    await store.close();
    const left = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
      /\.(lock|tmp|wait)/.test(name),
    );
    expect(left).toEqual([]);
  });

  test.each([
    ["both databases are deleted", ["work.db", "index.db"], null],
    [
      "work.db is garbage",
      ["work.db"],
      "this is no database at all, but long enough to be taken for one ".repeat(20),
    ],
    [
      "index.db is garbage",
      ["index.db"],
      "this is no database at all, but long enough to be taken for one ".repeat(20),
    ],
  ])("[FS17] %s: everything is restored from the logs", async (_, names, garbage) => {
    const folder = await filled();
    const before = await createStore({ dir: folder });
    const records = {
      s: await before.sessions.get(alice, "s"),
      m: await before.sessions.get({ agentId: "main" }, "m"),
    };
    await before.close();
    for (const name of names) {
      for (const ending of ["-wal", "-shm"]) rmSync(join(folder, name + ending), { force: true });
      if (garbage === null) rmSync(join(folder, name));
      else writeFileSync(join(folder, name), garbage);
    }
    const reported: string[] = [];
    const store = await createStore({ dir: folder, report: ({ kind }) => reported.push(kind) });
    expect(await store.sessions.get(alice, "s")).toEqual(records.s);
    expect(await store.sessions.get({ agentId: "main" }, "m")).toEqual(records.m);
    expect((await store.sessions.list(alice, {})).sessions).toMatchObject([{ ...records.s }]);
    expect((await store.search.search(alice, { text: "needle" })).hits).toHaveLength(1);
    await expect(create(store, alice, "other", { label: "holiday" })).rejects.toThrow("label");
    expect(await store.sessions.get(alice, "gone")).toBeNull();
    expect((await store.sessions.restore(alice, "gone")).key).toBe("agent:main:session:gone");
    await store.close();
    if (garbage !== null) {
      expect(reported).toContain("set_aside");
      const aside = readdirSync(folder).find((name) => /unreadable-\d+$/.test(name)) ?? "";
      expect(readFileSync(join(folder, aside), "utf8")).toBe(garbage);
    }
    if (names.includes("work.db")) expect(reported).toContain("rebuilt");
  });

  test.each(["work.db", "index.db"])(
    "[FS18] %s of a newer Skein is refused and left unchanged",
    async (name) => {
      const folder = await filled();
      const db = new DatabaseSync(join(folder, name));
      db.exec("PRAGMA user_version = 99");
      db.close();
      await expect(createStore({ dir: folder })).rejects.toThrow(
        expect.objectContaining({ code: "read_only" }),
      );
      const after = new DatabaseSync(join(folder, name));
      expect(after.prepare("PRAGMA user_version").get()).toEqual({ user_version: 99 });
      after.close();
    },
  );
});
