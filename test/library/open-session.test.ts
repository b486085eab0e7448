import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { LoneSession } from "../../src/index.ts";
import { openSession } from "../../src/index.ts";

const said = (content: string) => ({ type: "message", message: { role: "user", content } }) as const;
const textsOf = (session: LoneSession) =>
  session.context().messages.map((each) => (each as { readonly content?: unknown }).content);

describe("a session file without a store", () => {
  test("[SFL13] is created, read, appended to and read again", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "trip.jsonl");
    const session = await openSession(path, { create: { cwd: "/home/ann", id: "trip" } });
    const [first] = await session.append(said("one"));
    await session.append([said("two"), { draft: said("three"), id: "mine" }]);
    await session.append([{ draft: said("three"), id: "mine" }]);
    const again = await openSession(path, { create: { cwd: "/elsewhere" } });
    expect(again.tree.header).toMatchObject({ id: "trip", cwd: "/home/ann", version: 3 });
    expect(textsOf(again)).toEqual(["one", "two", "three"]);
    expect(again.tree.path()[0]?.id).toBe(first?.id);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test("[SFL13] a missing file is refused, and nothing is created", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "none.jsonl");
    await expect(openSession(path)).rejects.toMatchObject({ code: "not_found" });
    await expect(openSession(folder.path)).rejects.toMatchObject({ code: "unreadable_file" });
    expect(existsSync(path)).toBe(false);
  });

  test("[LON2] two concurrent appends lose nothing, and neither forks the conversation", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "both.jsonl");
    const one = await openSession(path, { create: { cwd: "/" } });
    const other = await openSession(path);
    const all = Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? one : other).append(said(`m${at}`)));
    await Promise.all(all);
    await one.refresh();
    expect(one.tree.path()).toHaveLength(10);
    expect(one.tree.diagnostics).toEqual([]);
  });

  test("[LON2] a leaf that has moved on is a conflict, and nothing is written", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "leaf.jsonl");
    const one = await openSession(path, { create: { cwd: "/" } });
    const other = await openSession(path);
    const [first] = await one.append(said("one"));
    await other.append(said("two"));
    const before = readFileSync(path, "utf8");
    const late = one.append(said("late"), { expectedLeafId: first?.id ?? null });
    await expect(late).rejects.toMatchObject({ code: "conflict" });
    expect(readFileSync(path, "utf8")).toBe(before);
  });

  test("[FS4] a torn tail is closed before the next entry", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "torn.jsonl");
    const session = await openSession(path, { create: { cwd: "/" } });
    await session.append(said("one"));
    appendFileSync(path, '{"type":"message","id":"tor');
    await session.append(said("two"));
    const again = await openSession(path);
    expect(textsOf(again)).toEqual(["one", "two"]);
    expect(again.tree.diagnostics.length).toBeGreaterThan(0);
  });

  test("[LON4] branches, and forks into a file that must not exist", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "tree.jsonl");
    const session = await openSession(path, { create: { cwd: "/" } });
    const [first] = await session.append([said("one"), said("two")]);
    await session.branch(first?.id ?? null);
    await session.append(said("other two"));
    expect(textsOf(await openSession(path))).toEqual(["one", "other two"]);
    const fork = await session.fork(join(folder.path, "fork.jsonl"), first?.id);
    await fork.append(said("mine"));
    expect(textsOf(fork)).toEqual(["one", "mine"]);
    expect(fork.tree.header).toMatchObject({ parentSession: path });
    await expect(session.fork(fork.path)).rejects.toMatchObject({ code: "conflict" });
  });

  test("[LON5] an older version is read, but not written", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "old.jsonl");
    const lines = [
      { type: "session", id: "old", timestamp: "2025-01-01T00:00:00.000Z", cwd: "/" },
      { type: "message", timestamp: "2025-01-01T00:00:00.000Z", message: { role: "user", content: "one" } },
    ];
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const session = await openSession(path);
    expect(textsOf(session)).toEqual(["one"]);
    const before = readFileSync(path, "utf8");
    await expect(session.append(said("two"))).rejects.toMatchObject({ code: "read_only" });
    expect(readFileSync(path, "utf8")).toBe(before);
    const fork = await session.fork(join(folder.path, "new.jsonl"));
    await fork.append(said("two"));
    expect(textsOf(fork)).toEqual(["one", "two"]);
  });
});
