import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import type { Recovery } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { parseSession, SessionTree } from "../../src/index.ts";
import { sessionText, userLine } from "../support/session-text.ts";
import { append, create, ids, listed, refused } from "../support/store-calls.ts";

const golden = fileURLToPath(new URL("../golden/sessions/", import.meta.url));
const scope = { agentId: "main" };
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A root folder with files in an agent's folder that no store has opened before. */
function foreignRoot(files: Record<string, string | Buffer>): { root: string; sessions: string } {
  const root = mkdtempSync(join(tmpdir(), "skein-adopt-"));
  folders.push(root);
  const sessions = join(root, "agents", "main", "sessions");
  mkdirSync(sessions, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(sessions, name), text);
  return { root, sessions };
}

async function opened(root: string) {
  const reports: Recovery[] = [];
  const store = await createStore({ dir: root, report: (found) => reports.push(found) });
  return { store, reports };
}

/** Changes a complete adoption of `t.jsonl` to what is left if its process dies before a certain step. */
function undo(root: string, sessions: string, step: string): void {
  const path = (ending: string) => join(sessions, `t${ending}`);
  rmSync(path(".jsonl"));
  if (step !== "linking the working set") renameSync(path(".jsonl.orig"), path(".jsonl"));
  if (step === "writing the log") rmSync(path(".log.jsonl"));
  const db = new DatabaseSync(join(root, "work.db"), { timeout: 30_000 });
  db.exec("UPDATE sessions SET state = 'forking'");
  db.exec("DELETE FROM dirty");
  db.close();
}

/** Makes the next start of a store the first one. */
function forgetStart(root: string): void {
  const db = new DatabaseSync(join(root, "work.db"), { timeout: 30_000 });
  db.exec("DELETE FROM facts WHERE name = 'begun'");
  db.close();
}

describe("files of other programs", () => {
  test("[FS20] a folder of pi or OpenClaw opens unchanged, and its listing stays next to it", async () => {
    const text = sessionText(userLine("a", null, "Hello"), userLine("b", "a", "Again")).replace(
      '"id":"s"',
      '"id":"one"',
    );
    const listing = JSON.stringify({ "agent:main:discord:group:42": { sessionId: "one", updatedAt: 5 } });
    const { root, sessions } = foreignRoot({ "one.jsonl": text, "sessions.json": listing });
    const { store, reports } = await opened(root);
    const header = parseSession(text).header;
    const found = await store.sessions.get(scope, header?.id ?? "");
    expect(found?.leafId).toBe("b");
    expect(found?.key).toBe("agent:main:session:one");
    expect(reports.map(({ kind }) => kind)).toContain("adopted");
    expect(await ids(store, scope, found?.sessionId ?? "")).toEqual(["a", "b"]);
    await append(store, scope, found?.sessionId ?? "", "c");
    await store.close();
    expect(readFileSync(join(sessions, "one.jsonl.orig"), "utf8")).toBe(text);
    expect(readFileSync(join(sessions, "sessions.json.orig"), "utf8")).toBe(listing);
    const again = await opened(root);
    expect(await ids(again.store, scope, found?.sessionId ?? "")).toEqual(["a", "b", "c"]);
    expect(again.reports).toEqual([]);
    await again.store.close();
  });

  test("[FS20] every golden file of the format is adopted with its entries, or refused and left alone", async () => {
    for (const name of readdirSync(golden).filter((each) => each.endsWith(".jsonl"))) {
      const bytes = readFileSync(join(golden, name));
      const { root, sessions } = foreignRoot({ [name]: bytes });
      const { store, reports } = await opened(root);
      const page = await store.sessions.list(scope, {});
      const tree = SessionTree.from(parseSession(bytes), { lostHeader: { id: name.slice(0, -6) } });
      if (page.sessions.length === 0) {
        expect(reports.map(({ kind }) => kind)).toEqual(["not_taken_in"]);
        expect(readFileSync(join(sessions, name)).equals(bytes)).toBe(true);
      } else {
        const { sessionId = "", leafId } = page.sessions[0] ?? {};
        expect({ name, leafId }).toEqual({ name, leafId: tree.leafId });
        const context = await store.sessions.context(scope, sessionId);
        expect(context?.messages).toEqual(tree.context().messages);
        expect(await ids(store, scope, sessionId)).toEqual(Array.from(tree.entries(), ({ id }) => id));
        expect(readFileSync(join(sessions, `${sessionId}.jsonl.orig`)).equals(bytes)).toBe(true);
      }
      await store.close();
    }
  });

  test("[ERZ1] redacted or purged content is removed from the original too, whatever its name", async () => {
    const tree = SessionTree.create({ cwd: "/", id: "theirs" });
    tree.append({ type: "message", message: { role: "user", content: "topsecret" } }, { id: "x" });
    tree.append({ type: "message", message: { role: "user", content: "the rest" } }, { id: "y" });
    const { root, sessions } = foreignRoot({ "by-another-name.jsonl": tree.encode() });
    const { store } = await opened(root);
    const original = () => readFileSync(join(sessions, "theirs.jsonl.orig"), "utf8");
    await store.sessions.redact(scope, "theirs", ["x"]);
    expect(original()).not.toContain("topsecret");
    await store.sessions.create(scope, { key: "agent:main:main", sessionId: "other", cwd: "/" });
    await store.sessions.fork(scope, "theirs", "y", {
      key: "agent:main:session:f",
      sessionId: "f",
      cwd: "/",
    });
    await store.sessions.remove(scope, "theirs");
    await store.sessions.redact(scope, "f", ["y"]);
    expect(original()).not.toContain("the rest");
    await store.sessions.purge(scope, "theirs");
    expect(readdirSync(sessions).filter((name) => name.startsWith("theirs"))).toEqual([]);
    await store.close();
  });

  test("[FS20] a file with a compaction gets a shortened working set at once", async () => {
    const tree = SessionTree.create({ cwd: "/", id: "long" });
    for (const name of ["a", "b", "c"]) {
      tree.append({ type: "message", message: { role: "user", content: name.repeat(1000) } }, { id: name });
    }
    tree.append({ type: "compaction", summary: "S", firstKeptEntryId: "c", tokensBefore: 9 }, { id: "k" });
    const { root, sessions } = foreignRoot({ "long.jsonl": tree.encode() });
    const { store } = await opened(root);
    expect((await store.sessions.context(scope, "long"))?.entryIds).toEqual(["k", "c"]);
    const size = (name: string) => statSync(join(sessions, name)).size;
    expect(size("long.jsonl")).toBeLessThan(size("long.log.jsonl") / 2);
    await store.close();
  });

  test("[FS20] a file that appears while the store runs is found by its session ID", async () => {
    const { root, sessions } = foreignRoot({});
    const { store } = await opened(root);
    await store.sessions.create(scope, { key: "agent:main:main", sessionId: "ours", cwd: "/" });
    const tree = SessionTree.create({ cwd: "/", id: "theirs" });
    tree.append({ type: "message", message: { role: "user", content: "Hi" } }, { id: "x" });
    writeFileSync(join(sessions, "theirs.jsonl"), tree.encode());
    expect(await store.sessions.get({ userId: "eve", agentId: "main" }, "theirs")).toBeNull();
    expect((await store.sessions.get(scope, "theirs"))?.key).toBe("agent:main:session:theirs");
    expect(await store.sessions.get(scope, "../theirs")).toBeNull();
    await store.close();
  });

  test("[FS20] a crash at any point of an adoption loses nothing", async () => {
    const tree = SessionTree.create({ cwd: "/", id: "t" });
    tree.append({ type: "message", message: { role: "user", content: "Hi" } }, { id: "x" });
    const { root, sessions } = foreignRoot({ "t.jsonl": tree.encode() });
    // The state after a crash between writing the log and moving the original away.
    const first = await opened(root);
    await first.store.close();
    cpSync(join(sessions, "t.jsonl.orig"), join(sessions, "t.jsonl.copy"));
    rmSync(join(sessions, "t.jsonl"));
    cpSync(join(sessions, "t.jsonl.copy"), join(sessions, "t.jsonl"));
    const { store } = await opened(root);
    expect(await ids(store, scope, "t")).toEqual(["x"]);
    await append(store, scope, "t", "y");
    expect(await ids(store, scope, "t")).toEqual(["x", "y"]);
    await store.close();
  });

  test.each([
    ["writing the log", "first"],
    ["moving the file", "first"],
    ["linking the working set", "first"],
    ["writing the log", "later"],
    ["moving the file", "later"],
    ["linking the working set", "later"],
  ])(
    "[ADM1] [FS20] an adoption whose process died before %s is repeated after a %s start",
    async (step, start) => {
      const time = "2026-01-01T00:00:00.000Z";
      const lines = [
        { type: "session", id: "t", timestamp: time, cwd: "/theirs" },
        { type: "message", timestamp: time, message: { role: "user", content: "Hi" } },
      ];
      const text = `${lines.map((line) => JSON.stringify(line)).join("\n")}\ndamaged\n`;
      const { root, sessions } = foreignRoot({ "t.jsonl": text });
      await (await opened(root)).store.close();
      undo(root, sessions, step);
      if (start === "first") forgetStart(root);
      const { store } = await opened(root);
      if (start === "first") expect(await listed(store, scope)).toEqual(["t"]);
      const record = await store.sessions.get(scope, "t");
      expect(record).toMatchObject({ key: "agent:main:session:t", cwd: "", meta: { importedFrom: {} } });
      expect(await ids(store, scope, "t")).toHaveLength(1);
      await append(store, scope, "t", "y");
      expect(await ids(store, scope, "t")).toHaveLength(2);
      await store.close();
      expect(readFileSync(join(sessions, "t.jsonl.orig"), "utf8")).toBe(text);
      const { header } = parseSession(readFileSync(join(sessions, "t.log.jsonl")));
      expect(header).toMatchObject({ version: 3, skein: { uid: record?.uid } });
    },
  );

  test("[FS20] a foreign file does not replace a lost log", async () => {
    const { root, sessions } = foreignRoot({});
    const { store } = await opened(root);
    await create(store, scope, "t");
    await append(store, scope, "t", "a");
    await store.close();
    rmSync(join(sessions, "t.log.jsonl"));
    writeFileSync(join(sessions, "t.jsonl"), sessionText(userLine("x", null, "Hi")));
    const again = await opened(root);
    await refused("unreadable_file", () => ids(again.store, scope, "t"));
    await again.store.close();
    expect(existsSync(join(sessions, "t.log.jsonl"))).toBe(false);
  });

  test("[FS20] a file whose ID is in the trash is left alone by a start, a restore and a purge", async () => {
    const { root, sessions } = foreignRoot({});
    const { store } = await opened(root);
    await create(store, scope, "t");
    await append(store, scope, "t", "a");
    await store.sessions.remove(scope, "t");
    await store.close();
    const file = join(sessions, "t.jsonl");
    const text = sessionText(userLine("x", null, "Hi")).replace('"id":"s"', '"id":"t"');
    writeFileSync(file, text);
    const again = await opened(root);
    expect(again.reports).toMatchObject([{ kind: "not_taken_in", file }]);
    await refused("conflict", () => again.store.sessions.restore(scope, "t"), file);
    renameSync(file, `${file}.away`);
    await again.store.sessions.restore(scope, "t");
    expect(await ids(again.store, scope, "t")).toEqual(["a"]);
    await again.store.sessions.remove(scope, "t");
    renameSync(`${file}.away`, file);
    await again.store.sessions.purge(scope, "t");
    expect(readFileSync(file, "utf8")).toBe(text);
    expect(await again.store.sessions.get(scope, "t")).toMatchObject({ leafId: "x" });
    await again.store.close();
  });

  test("[FS21] sessions.json lists every session of the agent, the last used first", async () => {
    const { root, sessions } = foreignRoot({});
    const { store } = await opened(root);
    for (const name of ["a", "b"]) {
      await store.sessions.create(scope, { key: `agent:main:session:${name}`, sessionId: name, cwd: "/" });
      await append(store, scope, name, `Say ${name}`);
    }
    await store.sessions.patch(scope, "a", { label: "first" });
    await store.close();
    const listing = JSON.parse(readFileSync(join(sessions, "sessions.json"), "utf8"));
    expect(Object.keys(listing).toSorted()).toEqual(["agent:main:session:a", "agent:main:session:b"]);
    expect(listing["agent:main:session:a"]).toMatchObject({
      sessionId: "a",
      summary: "Say a",
      label: "first",
    });
    expect(existsSync(join(sessions, "sessions.json.orig"))).toBe(false);
  });
});
