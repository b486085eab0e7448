import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import { familyTree, seedFolder, seedNow } from "../../test/support/cli-folder.ts";
import {
  CompactedSchema,
  DeletedSchema,
  ForkedSchema,
  RedactedSchema,
  ResetSchema,
  SessionStateSchema,
} from "../protocol/session-changes.ts";
import { RefusalSchema, RepairSchema } from "../protocol/session-views.ts";
import { UserRemovedSchema } from "../protocol/users.ts";
import type { Terminal } from "./output/terminal.ts";

let home = "";
let seeded = "";
let dir = "";
let count = 0;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-change-"));
  seeded = join(home, "seeded");
  await seedFolder(seeded);
});
beforeEach(() => {
  dir = join(home, `copy-${count++}`);
  cpSync(seeded, dir, { recursive: true });
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const skein = (args: string[], more: Partial<Terminal> = {}) =>
  run([...args, "--dir", dir], { now: () => seedNow, cwd: home, ...more });
const json = async (...args: string[]) => JSON.parse((await skein([...args, "--json"])).out);
const keyOf = async (ref: string) => (await json("sessions", "show", ref)).sessionKey;
const wish = familyTree("main").path()[2]?.id ?? "";
const late = familyTree("main")
  .path()
  .findLast(({ type }) => type === "message")?.id as string;

describe("changing commands", () => {
  const summary = ["--summary", "In short.", "--keep-from", late];
  const changes: [string[], TSchema][] = [
    [["sessions", "new"], SessionStateSchema],
    [["sessions", "new", "porto", "--label", "sea", "--cwd", "there"], SessionStateSchema],
    [["sessions", "rename", "trip", "spring"], SessionStateSchema],
    [["sessions", "rename", "trip", "--name", "Kyoto"], SessionStateSchema],
    [["sessions", "rename", "trip", "--clear"], SessionStateSchema],
    [["sessions", "archive", "trip"], SessionStateSchema],
    [["sessions", "restore", "old-trip"], SessionStateSchema],
    [["sessions", "fork", "trip", "--at", wish], ForkedSchema],
    [["sessions", "reset", "trip"], ResetSchema],
    [["sessions", "rm", "trip"], DeletedSchema],
    [["sessions", "rm", "old-trip", "--purge", "--yes"], DeletedSchema],
    [["sessions", "compact", "trip", ...summary], CompactedSchema],
    [["sessions", "redact", "trip", wish, "--yes"], RedactedSchema],
    [["sessions", "repair", "trip"], RepairSchema],
    [["users", "rm", "alice", "--yes"], UserRemovedSchema],
  ];
  test.each(changes)("[CLI1] [CLG1] %j prints JSON that matches its schema", async (args, schema) => {
    const { out, err, exit } = await skein([...args, "--json"]);
    expect({ err, exit }).toEqual({ err: "", exit: 0 });
    expect(Check(schema, JSON.parse(out))).toBe(true);
  });

  test.each(changes)("%j reports what it did", async (args) => {
    const { out, err, exit } = await skein(args);
    expect({ err, exit }).toEqual({ err: "", exit: 0 });
    expect(out).toMatch(/^\S.+\n/);
  });

  const refusals: [string[], string, number][] = [
    [["sessions", "new", "trip"], "conflict", 1],
    [["sessions", "new", "x", "--label", "holiday"], "conflict", 1],
    [["sessions", "new", "a b"], "invalid_session_id", 1],
    [["sessions", "new", "agent:research:main", "--agent", "main"], "invalid_key", 1],
    [["sessions", "new", "x", "--user", ""], "invalid_user_id", 1],
    [["sessions", "rename", "trip"], "invalid_arguments", 2],
    [["sessions", "rename", "trip", "a", "--clear"], "invalid_arguments", 2],
    [["sessions", "rename", "trip", "reports"], "conflict", 1],
    [["sessions", "rename", "nobody", "x"], "not_found", 1],
    [["sessions", "fork", "trip", "--at", "nope-nope"], "not_found", 1],
    [["sessions", "fork", "trip", "--id", "daily"], "conflict", 1],
    [["sessions", "reset", "nobody"], "not_found", 1],
    [["sessions", "archive"], "invalid_arguments", 2],
    [["sessions", "rm", "main"], "forbidden", 1],
    [["sessions", "rm", "agent:research:main"], "forbidden", 1],
    [["sessions", "rm", "trip", "--purge", "--yes"], "not_found", 1],
    [["sessions", "rm", "old-trip", "--purge"], "invalid_arguments", 2],
    [["sessions", "restore", "trip"], "not_found", 1],
    [["sessions", "compact", "trip", "--summary", "x"], "invalid_arguments", 2],
    [["sessions", "compact", "trip", "--summary", "x", "--keep-from", "nope-nope"], "not_found", 1],
    [["sessions", "compact", "trip", "--summary", "@missing.md", "--keep-from", late], "unreadable_file", 1],
    [["sessions", "redact", "trip"], "invalid_arguments", 2],
    [["sessions", "redact", "trip", "nope-nope", "--yes"], "not_found", 1],
    [["sessions", "redact", "trip", wish], "invalid_arguments", 2],
    [["sessions", "repair", "nobody"], "not_found", 1],
    [["users", "rm", "alice"], "invalid_arguments", 2],
    [["users", "rm", ""], "invalid_user_id", 1],
    [["users", "rm", "alice", "--yes", "--user", "bob"], "invalid_arguments", 2],
  ];
  test.each(refusals)("[CLI1] [CLI2] %j is refused as %s with exit code %d", async (args, code, exit) => {
    const refused = await skein([...args, "--json"]);
    const payload = JSON.parse(refused.out);
    expect(Check(RefusalSchema, payload)).toBe(true);
    expect({ code: payload.code, exit: refused.exit, err: refused.err }).toEqual({ code, exit, err: "" });
    const told = await skein(args);
    expect(told.err).toMatch(/^error: .+\n$/);
    expect(told.out).toBe("");
  });
});

describe("sessions new", () => {
  test("[SNM1] accepts a name, a key, a short key, or nothing", async () => {
    expect(await json("sessions", "new", "porto")).toMatchObject({
      key: "agent:main:session:porto",
      sessionId: "porto",
      cwd: home,
    });
    const nameless = await json("sessions", "new", "--agent", "research");
    expect(nameless.key).toBe(`agent:research:session:${nameless.sessionId}`);
    expect(await json("sessions", "new", "slack:group:G1", "--id", "g1", "--cwd", "there")).toMatchObject({
      key: "agent:main:slack:group:G1",
      kind: "group",
      sessionId: "g1",
      cwd: join(home, "there"),
    });
    const { out } = await skein(["sessions", "new", "shown"]);
    expect(out).toBe(
      `created session:shown\n  id    shown\n  file  ${join(dir, "agents/main/sessions/shown.jsonl")}\n`,
    );
    expect(existsSync(join(dir, "agents/main/sessions/shown.jsonl"))).toBe(true);
  });
});

describe("sessions fork and reset", () => {
  test("[SNM1] a fork has the path to the entry, its own key, and the agent of its source", async () => {
    const { sessionId, forkedFrom } = await json("sessions", "fork", "trip", "--at", wish.slice(-8));
    expect(forkedFrom).toEqual({ key: "agent:main:session:trip", sessionId: "trip", entryId: wish });
    expect((await json("sessions", "show", sessionId)).messages).toHaveLength(1);
    const whole = await json("sessions", "fork", "trip", "--id", "again");
    expect(whole.key).toBe("agent:main:session:again");
    const { messages } = await json("sessions", "show", "trip");
    expect((await json("sessions", "show", "again")).messages).toEqual(messages);
    expect((await json("sessions", "fork", "agent:research:main")).key).toMatch(/^agent:research:session:/);
  });

  test("[SNM1] a reset starts a new session under the key, and keeps the old one", async () => {
    const { key, sessionId, previous } = await json("sessions", "reset", "main");
    expect({ key, previous }).toEqual({
      key: "agent:main:main",
      previous: { key: "agent:main:reset:home", sessionId: "home", uid: expect.any(String) },
    });
    expect(await json("sessions", "show", "main")).toMatchObject({ sessionId, messages: [] });
    expect((await json("sessions", "show", "agent:main:reset:home")).messages).toHaveLength(2);
    expect((await json("sessions", "tree", "home")).sessionKey).toBe("agent:main:reset:home");
  });
});

describe("sessions rename and archive", () => {
  test("[SNM1] a label finds the session, a name is displayed, and both can be removed", async () => {
    expect((await json("sessions", "rename", "trip", "spring")).label).toBe("spring");
    expect(await keyOf("spring")).toBe("agent:main:session:trip");
    expect((await json("sessions", "rename", "spring", "--clear")).label).toBeUndefined();
    expect((await json("sessions", "rename", "trip", "--name", " Kyoto ")).displayName).toBe("Kyoto");
    expect((await skein(["sessions", "show", "trip"])).out).toMatch(/^Kyoto \(session:trip\)\n/);
    expect((await json("sessions", "rename", "trip", "--name", "")).displayName).toBeUndefined();
  });

  test("an archived session is not listed, and the command to undo it is printed", async () => {
    const { out } = await skein(["sessions", "archive", "holiday"]);
    expect(out).toBe(
      `session:trip has been archived\n  undo  skein sessions archive holiday --undo --dir ${dir}\n`,
    );
    const listed = async (...args: string[]) =>
      (await json("sessions", "ls", "--label", "holiday", ...args)).count;
    expect([await listed(), await listed("--archived")]).toEqual([0, 1]);
    expect((await json("sessions", "archive", "holiday", "--undo")).archived).toBeUndefined();
    expect(await listed()).toBe(1);
  });
});

describe("sessions rm and restore", () => {
  test("moves to the trash and back with the printed command", async () => {
    const { out } = await skein(["sessions", "rm", "holiday"]);
    expect(out).toBe(`moved session:trip to the trash\n  undo  skein sessions restore trip --dir ${dir}\n`);
    expect((await json("sessions", "show", "trip")).code).toBe("not_found");
    expect((await json("sessions", "restore", "holiday")).key).toBe("agent:main:session:trip");
    expect((await json("sessions", "show", "holiday")).sessionId).toBe("trip");
  });

  test("[SNM1] if several sessions had one key, the trash requires the session ID", async () => {
    await json("sessions", "new", "old-trip", "--id", "other-trip");
    await json("sessions", "rm", "other-trip");
    const refused = await json("sessions", "restore", "session:old-trip");
    expect(refused).toMatchObject({ code: "ambiguous" });
    expect(refused.error).toContain("other-trip, old-trip");
    expect((await json("sessions", "restore", "other-trip")).sessionId).toBe("other-trip");
  });
});

describe("sessions compact", () => {
  test("the context is the summary and the kept entries", async () => {
    writeFileSync(join(home, "summary.md"), "# Goal\nThree calm days.\n");
    const done = await json("sessions", "compact", "trip", "--summary", "@summary.md", "--keep-from", late);
    expect(done.firstKeptEntryId).toBe(late);
    const { request } = await json("context", "trip");
    const roles = request.messages.map((message: { role: string }) => message.role);
    expect(roles).toEqual(["user", "assistant", "user"]);
    expect(request.messages[0].content).toContain("Three calm days.");
    expect(request.messages[2].content).toBe("Continue.");
    expect((await json("sessions", "tree", "trip")).entries.length).toBe(familyTree("main").size + 1);
  });
});

describe("sessions repair", () => {
  test("[SFL11] reports damage in a stored log and rewrites nothing", async () => {
    const log = join(dir, "agents/main/sessions/daily.log.jsonl");
    const before = readFileSync(log, "utf8");
    const lines = before.split("\n");
    writeFileSync(log, [...lines.slice(0, 2), "{torn", ...lines.slice(2)].join("\n"));
    const { out } = await skein(["sessions", "repair", "daily"]);
    expect(out).toMatch(/line 3: the line was skipped/);
    expect(out).toContain("never rewritten");
    expect(readFileSync(log, "utf8")).toContain("{torn");
    expect(await json("sessions", "repair", "daily")).toMatchObject({ backup: null, damaged: [{ line: 3 }] });
    expect((await skein(["sessions", "repair", "trip"])).out).toMatch(/^trip: no damage \(\d+ entries\)\n$/);
  });
});
