import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Plan, PlannedItem } from "../../src/index.ts";
import {
  buildContext,
  continueRecent,
  createSkein,
  defineAgent,
  listSessionFiles,
  openSession,
  parseSession,
  SessionTree,
} from "../../src/index.ts";
import { run } from "../support/cli.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const time = "2026-01-02T03:04:05.000Z";
const header = { type: "session", version: 3, id: "trip", timestamp: time, cwd: "/home/ann" };

type Line = Record<string, unknown> | string;
const said = (id: unknown, parentId: unknown, text: string): Record<string, unknown> => ({
  type: "message",
  id,
  parentId,
  timestamp: time,
  message: { role: "user", content: text },
});
const fileOf = (...lines: Line[]) =>
  `${lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n")}\n`;
function write(name: string, ...lines: Line[]): string {
  const path = join(folder.path, name);
  writeFileSync(path, fileOf(...lines));
  return path;
}
const texts = (source: string) =>
  buildContext(parseSession(source).lines).messages.map((message) =>
    "content" in message ? message.content : message.role,
  );

describe("files of other programs", () => {
  test("[ENT7] numeric IDs and parent IDs are read as their text", async () => {
    const path = write("trip.jsonl", header, said(1, null, "One"), said(2, 1, "Two"), said("c", 2, "Three"));
    const { tree } = await openSession(path);
    expect(tree.path().map(({ id, parentId }) => [id, parentId])).toEqual([
      ["1", null],
      ["2", "1"],
      ["c", "2"],
    ]);
    const big = fileOf(
      header,
      '{"type":"message","id":90071992547409931,"parentId":null,"timestamp":"x","message":{"role":"user","content":"Big"}}',
    );
    expect(parseSession(big).lines[0]).toMatchObject({ id: "90071992547409931" });
  });

  test.each([
    {
      what: "tokensBefore",
      line: { type: "compaction", summary: "Before", firstKeptEntryId: "a", tokensBefore: "1000" },
    },
    { what: "fromHook", line: { type: "compaction", summary: "Before", firstKeptEntryId: "a", fromHook: 1 } },
    { what: "fromHook of a branch summary", line: { type: "branch_summary", summary: "Left", fromHook: 1 } },
    { what: "display", line: { type: "custom_message", customType: "x", content: "Note", display: "true" } },
  ])("[ENT7] an invalid side field loses only that field: $what", ({ line }) => {
    const session = parseSession(
      fileOf(header, said("a", null, "One"), { id: "b", parentId: "a", timestamp: time, ...line }),
    );
    expect(session.lines[1]).toMatchObject({ id: "b", type: line.type });
    const [before] =
      Object.entries(line)
        .filter(([name]) => ["tokensBefore", "fromHook", "display"].includes(name))
        .at(-1) ?? [];
    expect(session.lines[1]).not.toHaveProperty(before ?? "");
    expect(session.diagnostics.map(({ code }) => code)).toEqual(["normalized_entry"]);
  });

  test("[ENT7] a header with a wrong field keeps the rest", () => {
    const odd = parseSession(fileOf({ ...header, version: "3", cwd: 7 }, said("a", null, "One")));
    expect(odd.header).toMatchObject({ id: "trip", version: 3 });
    expect(odd.header).not.toHaveProperty("cwd");
    expect(odd.lines).toHaveLength(1);
    expect(odd.diagnostics.map(({ code }) => code)).toEqual(["normalized_entry"]);
    expect(parseSession(fileOf({ ...header, version: "new", id: 12 })).header).toMatchObject({ id: "12" });
  });

  test("[SFL4] numbers that JSON cannot round-trip keep their text in every rewrite", async () => {
    const data = '{"big":12345678901234567890,"huge":1e400,"fine":0.1,"long":3.14159265358979323846}';
    const line = `{"type":"custom","customType":"x","data":${data},"id":"b","parentId":"a","timestamp":"${time}"}`;
    const path = write("trip.jsonl", header, said("a", null, "One"), line, said("c", "b", "Two"));
    const session = await openSession(path);
    expect(session.tree.encode()).toContain(`"data":${data}`);
    const copy = await session.fork(join(folder.path, "fork.jsonl"));
    expect(readFileSync(copy.path, "utf8")).toContain(`"data":${data}`);
    const moved = fileOf(
      header,
      said("a", null, "One"),
      "{damaged",
      line.replace('"parentId":"a"', '"parentId":"lost"'),
    );
    expect(SessionTree.from(parseSession(moved)).encode()).toContain(`"data":${data}`);
    const store = ["--dir", join(folder.path, "store")];
    const imported = await run(["sessions", "import", path, ...store], { cwd: folder.path });
    expect(imported.exit, imported.err).toBe(0);
    const { out, err } = await run(["sessions", "export", "trip", "--format", "jsonl", ...store], {
      cwd: folder.path,
    });
    expect(err).toBe("");
    expect(out).toContain(data);
  });

  test("[SFL5] a compaction whose first kept entry was on a damaged line keeps what followed it", () => {
    const compaction = {
      type: "compaction",
      id: "d",
      parentId: "c",
      timestamp: time,
      summary: "S",
      firstKeptEntryId: "b",
      tokensBefore: 9,
    };
    const source = fileOf(
      header,
      said("a", null, "One"),
      '{"type":"message","id":"b",',
      said("c", "b", "Three"),
      compaction,
      said("e", "d", "Five"),
    );
    expect(texts(source)).toEqual(["compactionSummary", "Three", "Five"]);
    const codes = buildContext(parseSession(source).lines).diagnostics.map(({ code }) => code);
    expect(codes).toContain("bridged_kept_entry");
    expect(codes).not.toContain("unknown_kept_entry");
  });

  test("[SFL5] a repair of such a file keeps the same context", async () => {
    const compaction = {
      type: "compaction",
      id: "d",
      parentId: "c",
      timestamp: time,
      summary: "S",
      firstKeptEntryId: "b",
      tokensBefore: 9,
    };
    const path = write(
      "trip.jsonl",
      header,
      said("a", null, "One"),
      '{"type":"message","id":"b",',
      said("c", "b", "Three"),
      compaction,
      said("e", "d", "Five"),
    );
    expect((await run(["sessions", "repair", path])).exit).toBe(0);
    expect(texts(readFileSync(path, "utf8"))).toEqual(["compactionSummary", "Three", "Five"]);
  });

  test("[SFL6] an entry without parentId is attached to the entry before it", () => {
    const { parentId: _, ...orphan } = said("c", null, "Three");
    expect(texts(fileOf(header, said("a", null, "One"), said("b", "a", "Two"), orphan))).toEqual([
      "One",
      "Two",
      "Three",
    ]);
  });

  test("a generated ID for a line never clashes with one in the file", () => {
    const bare = (text: string) => ({
      type: "message",
      timestamp: time,
      message: { role: "user", content: text },
    });
    const source = fileOf(
      header,
      bare("One"),
      bare("Two"),
      said("line-2", null, "Mine"),
      said("line-3", "line-2", "Too"),
    );
    const { lines, diagnostics } = parseSession(source);
    const ids = lines.map((line) => ("id" in line ? line.id : ""));
    expect(new Set(ids).size).toBe(4);
    expect(ids.slice(2)).toEqual(["line-2", "line-3"]);
    expect(diagnostics.map(({ code }) => code)).toEqual(["migrated"]);
    expect(texts(source)).toEqual(["Mine", "Too"]);
  });

  test("entries before a late header are reported", () => {
    const { diagnostics, lines } = parseSession(
      fileOf(said("a", null, "One"), header, said("b", "a", "Two")),
    );
    expect(lines).toHaveLength(2);
    expect(diagnostics).toMatchObject([{ code: "late_header", note: expect.stringContaining("1 entry") }]);
  });

  test("sessions tree draws a parent above its child, even if it is later in the file", async () => {
    const path = write(
      "trip.jsonl",
      header,
      said("b", "a", "Two"),
      said("a", null, "One"),
      said("c", "b", "Three"),
    );
    const { out, exit } = await run(["sessions", "tree", path]);
    expect(exit).toBe(0);
    const order = ["One", "Two", "Three"].map((text) => out.indexOf(text));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(out).toContain("3 entries, 1 branch");
    const { entries } = JSON.parse((await run(["sessions", "tree", path, "--json"])).out);
    expect(entries.map(({ parentId }: { parentId: string | null }) => parentId)).toEqual(["a", null, "b"]);
  });
});

describe("repair", () => {
  test("[SFL10] a store's own log is refused by its path too, and stays unchanged", async () => {
    const dir = join(folder.path, "store");
    const skein = await createSkein({
      dir,
      config: null,
      agents: [defineAgent({ id: "main", model: "rehearsal/basic" })],
    });
    await skein.session({ sessionId: "trip" }).send("hello").result;
    await skein.close();
    const sessions = join(dir, "agents", "main", "sessions");
    for (const name of ["trip.log.jsonl", "trip.jsonl"]) {
      const path = join(sessions, name);
      const before = readFileSync(path, "utf8");
      writeFileSync(path, `${before}{torn`);
      const { exit, err } = await run(["sessions", "repair", path]);
      expect(exit).toBe(1);
      expect(err).toContain("skein sessions repair");
      expect(readFileSync(path, "utf8")).toBe(`${before}{torn`);
      writeFileSync(path, before);
    }
  });

  test("[SFL11] a FIFO and a device are refused, not read", async () => {
    const fifo = join(folder.path, "pipe.jsonl");
    execFileSync("mkfifo", [fifo]);
    for (const args of [
      ["sessions", "repair"],
      ["sessions", "show"],
      ["sessions", "tree"],
      ["sessions", "import"],
    ]) {
      for (const file of [fifo, "/dev/zero"]) {
        const { exit, err } = await run([...args, file, "--dir", join(folder.path, "store")], {
          cwd: folder.path,
        });
        expect({ args, file, exit }).toMatchObject({ exit: 1 });
        expect(err).toContain("not a regular file");
      }
    }
    await expect(openSession(fifo)).rejects.toMatchObject({ code: "unreadable_file" });
    await expect(openSession("/dev/zero")).rejects.toMatchObject({ code: "unreadable_file" });
  });

  test("[SFL12] a repair keeps every entry, also those that share an ID or have none", async () => {
    const id = fc.constantFrom("a", "b", "c", "line-2", "line-3", header.id, 1, undefined, null);
    const entry = fc
      .record({ id, parentId: id, text: fc.constantFrom("One", "Two", "Three") })
      .map((each) => JSON.stringify(said(each.id, each.parentId, each.text)));
    const damage = fc.constantFrom("{damaged", '{"type":"message","id":"b",', "\0\0", "7", "{}");
    const begin = fc.constantFrom(
      [],
      [JSON.stringify(header)],
      [JSON.stringify({ ...header, version: 1 })],
      ["{", JSON.stringify(header)],
    );
    const source = fc.tuple(
      begin,
      fc.array(fc.oneof({ weight: 3, arbitrary: entry }, damage), { minLength: 1 }),
    );
    const entriesIn = (text: string) =>
      parseSession(text).lines.flatMap((line) => ("message" in line ? [line.message] : []));
    let repairs = 0;
    await fc.assert(
      fc.asyncProperty(source, async ([first, lines]) => {
        const path = write("any.jsonl", ...first, ...lines);
        const before = readFileSync(path, "utf8");
        const { exit } = await run(["sessions", "repair", path, "--json"]);
        const after = readFileSync(path, "utf8");
        expect(entriesIn(after)).toEqual(entriesIn(before));
        if (exit !== 0) return void expect([after, entriesIn(before)]).toEqual([before, []]);
        repairs += 1;
      }),
      { numRuns: 100 },
    );
    expect(repairs).toBeGreaterThan(50);
  });

  test("[ATF7] [ATF8] a repair keeps the context if parents are missing too, and a second one changes nothing", async () => {
    const compaction = {
      type: "compaction",
      id: "d",
      parentId: "c",
      timestamp: time,
      summary: "S",
      firstKeptEntryId: "b",
      tokensBefore: 9,
    };
    const { parentId: _, ...orphan } = said("a", null, "One");
    const damaged = '{"type":"message","id":"b",';
    const kept = [orphan, damaged, said("c", "b", "Three"), compaction, said("e", "d", "Five")];
    const cases = {
      kept: { lines: kept, context: ["compactionSummary", "Three", "Five"] },
      twice: { lines: [orphan, orphan, damaged, said("c", "b", "Three")], context: ["One", "Three"] },
      // The header has the same ID as an entry that was attached to a damaged line. Another entry has this ID too.
      header: {
        lines: [
          said("x", null, "Zero"),
          damaged,
          said(header.id, "b", "One"),
          said(header.id, "x", "Other"),
          said("c", header.id, "Two"),
        ],
        context: ["Zero", "One", "Two"],
      },
    };
    for (const [name, { lines, context }] of Object.entries(cases)) {
      const path = write(`${name}.jsonl`, header, ...lines);
      expect([name, texts(readFileSync(path, "utf8"))]).toEqual([name, context]);
      expect((await run(["sessions", "repair", path])).exit).toBe(0);
      const repaired = readFileSync(path, "utf8");
      expect([name, texts(repaired)]).toEqual([name, context]);
      expect(repaired.includes("Other")).toBe(name === "header");
      expect((await run(["sessions", "repair", path])).exit).toBe(0);
      expect(readFileSync(path, "utf8")).toBe(repaired);
    }
  });
});

describe("openSession", () => {
  test("[SFL13] create adds a header to an empty file", async () => {
    const path = join(folder.path, "new.jsonl");
    writeFileSync(path, "");
    const session = await openSession(path, { create: { cwd: "/home/ann" } });
    await session.append({ type: "message", message: { role: "user", content: "Hello" } });
    expect((await openSession(path)).context().messages).toHaveLength(1);
    expect(parseSession(readFileSync(path)).header).toMatchObject({ cwd: "/home/ann" });
  });

  test("[SFL14] branches with a summary", async () => {
    const session = await openSession(join(folder.path, "new.jsonl"), { create: { cwd: "/" } });
    const [first] = await session.append({ type: "message", message: { role: "user", content: "One" } });
    await session.append({ type: "message", message: { role: "user", content: "Two" } });
    const entry = await session.branchWithSummary(first?.id ?? null, "Tried two");
    expect(entry).toMatchObject({ type: "branch_summary", summary: "Tried two", parentId: first?.id });
    const again = await openSession(session.path);
    expect(again.context().messages.map(({ role }) => role)).toEqual(["user", "branchSummary"]);
  });

  test("[SFL15] writes usage, context_edit, system and deferred messages", async () => {
    const session = await openSession(join(folder.path, "new.jsonl"), { create: { cwd: "/" } });
    const usage = {
      input: 1,
      output: 2,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 3,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    };
    const [first] = await session.append([
      { type: "message", message: { role: "user", content: "One" } },
      { type: "message", message: { role: "system", content: "Be brief." } },
      {
        type: "message",
        message: {
          role: "assistant",
          content: [{ type: "text", text: "Later" }],
          api: "a",
          provider: "p",
          model: "m",
          usage,
          stopReason: "deferred",
        },
      },
      { type: "usage", provider: "p", model: "m", usage },
    ]);
    await session.append({
      type: "context_edit",
      targetId: first?.id ?? "",
      replacement: { content: "Edited" },
    });
    const { tree } = await openSession(session.path);
    expect(tree.diagnostics).toEqual([]);
    expect(tree.context()).toMatchObject({ system: "Be brief." });
    expect(tree.context().messages[0]).toMatchObject({ content: "Edited" });
    expect([...tree.entries()].map(({ type }) => type)).toEqual([
      "message",
      "message",
      "message",
      "usage",
      "context_edit",
    ]);
  });

  test("[SFL16] copies a whole tree with every branch", async () => {
    const session = await openSession(join(folder.path, "new.jsonl"), { create: { cwd: "/" } });
    const [first] = await session.append({ type: "message", message: { role: "user", content: "One" } });
    await session.append({ type: "message", message: { role: "user", content: "Two" } });
    await session.branch(first?.id ?? null);
    await session.append({ type: "message", message: { role: "user", content: "Other" } });
    const copy = await session.copyTo(join(folder.path, "copy.jsonl"));
    expect([...copy.tree.entries()].map(({ id }) => id)).toEqual(
      [...session.tree.entries()].map(({ id }) => id),
    );
    expect(copy.tree.header.id).not.toBe(session.tree.header.id);
    expect(copy.tree.header.parentSession).toBe(session.path);
    expect(copy.tree.leafId).toBe(session.tree.leafId);
    await expect(session.copyTo(copy.path)).rejects.toMatchObject({ code: "conflict" });
  });

  test("lists session files by their headers and continues the most recent", async () => {
    const sessions = join(folder.path, "sessions");
    mkdirSync(sessions);
    for (const id of ["first", "second"]) {
      const session = await openSession(join(sessions, `${id}.jsonl`), { create: { cwd: `/${id}`, id } });
      await session.append({ type: "session_info", name: `The ${id}` });
    }
    writeFileSync(join(sessions, "notes.jsonl"), "not a session\n");
    writeFileSync(join(sessions, "empty.jsonl"), "");
    writeFileSync(join(sessions, "second.jsonl.bak"), "");
    const listed = await listSessionFiles(sessions);
    expect(listed.map(({ header: { id, cwd } }) => [id, cwd]).toSorted()).toEqual([
      ["first", "/first"],
      ["second", "/second"],
    ]);
    for (const newest of ["first", "second"]) {
      const other = newest === "first" ? "second" : "first";
      utimesSync(join(sessions, `${newest}.jsonl`), 2_000_000_000, 2_000_000_000);
      utimesSync(join(sessions, `${other}.jsonl`), 1_000_000_000, 1_000_000_000);
      const session = await continueRecent(sessions, { cwd: "/new" });
      expect(session.path).toBe(join(sessions, `${newest}.jsonl`));
      expect((await listSessionFiles(sessions)).map(({ header: { id } }) => id)).toEqual([newest, other]);
    }
    const fresh = await continueRecent(join(folder.path, "none"), { cwd: "/new" });
    expect(fresh.tree.header.cwd).toBe("/new");
    expect(existsSync(fresh.path)).toBe(true);
  });

  test("plan and commit are available for callers that write themselves", () => {
    const tree = SessionTree.create({ cwd: "/" });
    const items: PlannedItem[] = [{ draft: { type: "message", message: { role: "user", content: "One" } } }];
    const plan: Plan = tree.plan(items);
    expect(tree.size).toBe(0);
    expect(plan.lines).toHaveLength(1);
    tree.commit(plan);
    expect(tree.size).toBe(1);
  });
});
