import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Check } from "typebox/value";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { family, run } from "../../test/support/cli.ts";
import { familyTree, seedFolder, seedNow } from "../../test/support/cli-folder.ts";
import { sessionText, userLine } from "../../test/support/session-text.ts";
import { openFolder } from "../app/folder.ts";
import { parseSession } from "../core/parse-session.ts";
import { SessionTree } from "../core/tree.ts";
import { ExportSchema, ImportSchema } from "../protocol/interchange.ts";
import type { Terminal } from "./output/terminal.ts";

const samples = fileURLToPath(new URL("../../test/golden/interchange/", import.meta.url));
let home = "";
let dir = "";
let count = 0;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-interchange-"));
});
beforeEach(() => {
  dir = join(home, `folder-${count++}`);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const skein = (args: string[], more: Partial<Terminal> = {}) =>
  run([...args, "--dir", dir], { now: () => seedNow, cwd: home, ...more });
const importing = async (...args: string[]) => {
  const { out, err, exit } = await skein(["sessions", "import", ...args, "--json"]);
  const done = JSON.parse(out);
  expect({ fits: Check(ImportSchema, done), err }).toEqual({ fits: true, err: "" });
  return { ...done, exit };
};
const sessionsThere = async () => JSON.parse((await skein(["sessions", "ls", "--json"])).out).count;

describe("sessions import", () => {
  test("recognizes each program's files by their beginning", async () => {
    const files = ["claude-code.jsonl", "codex.jsonl"].map((name) => join(samples, name));
    const done = await importing(...files, join(family, "main.jsonl"));
    expect(done.exit).toBe(0);
    expect(done.imported).toMatchObject([
      { sessionId: "5e551071-0000-4000-8000-00000000c1a0", file: files[0] },
      { sessionId: "019a0c0d-e000-7000-8000-00000000c0de", file: files[1] },
      { key: "agent:main:session:01a10624-6190-736e-87f7-c89eeeef52cf" },
    ]);
    expect(done.imported[0].notKept.length).toBeGreaterThan(0);
    expect(done).not.toHaveProperty("skipped");
    const { messages } = JSON.parse((await skein(["sessions", "show", "5e55", "--json"])).out);
    expect(messages.length).toBeGreaterThan(3);
  });

  test("skips and reports everything on a second import", async () => {
    const first = await importing(family);
    expect(first.imported).toHaveLength(3);
    const second = await importing(family);
    expect(second).toMatchObject({ imported: [], failed: [], exit: 0 });
    expect(second.skipped.map(({ why }: { why: string }) => why)).toEqual(Array(3).fill("already imported"));
    expect((await skein(["sessions", "import", family])).out).toContain(
      "Skipped\n  3 sessions: already imported\n",
    );
    expect(await sessionsThere()).toBe(3);
  });

  test("imports an OpenClaw folder with its session list", async () => {
    const state = join(home, "openclaw");
    const sessions = join(state, "agents/work/sessions");
    mkdirSync(sessions, { recursive: true });
    cpSync(join(family, "main.jsonl"), join(sessions, "s1.jsonl"));
    cpSync(join(family, "food.jsonl"), join(sessions, "unlisted.jsonl"));
    writeFileSync(
      join(sessions, "sessions.json"),
      JSON.stringify({
        "agent:work:telegram:direct:42": { sessionId: "s1", label: "ann", updatedAt: 1 },
        "agent:work:main": { sessionId: "gone", updatedAt: 1 },
        evil: { sessionId: "../../etc/passwd" },
      }),
    );
    for (const path of [state, sessions, join(sessions, "sessions.json")]) {
      dir = join(home, `folder-${count++}`);
      const { imported, failed, exit } = await importing(path, "--keep-metadata");
      expect(imported).toMatchObject([
        { key: "agent:work:telegram:user:42", sessionId: "s1" },
        {
          key: "agent:main:subagent:01a10624-6190-736e-87f7-c89eeeef52cf:01a10626-0388-7407-9e34-f34969b28ae2",
        },
      ]);
      expect(failed).toMatchObject([
        { code: "invalid_entry" },
        { code: "not_found", file: join(sessions, "gone.jsonl") },
      ]);
      expect(exit).toBe(1);
      expect((await skein(["sessions", "show", "ann", "--agent", "work"])).exit).toBe(0);
    }
  });

  test("--from selects one program's sessions of a folder, and the format of a named file", async () => {
    const { imported, failed } = await importing(samples, "--from", "codex");
    expect(failed).toEqual([]);
    const files = imported.map(({ file }: { file: string }) => file.slice(samples.length));
    expect(files.every((file: string) => file.startsWith("codex"))).toBe(true);
    const wrong = await importing(join(samples, "codex.jsonl"), "--from", "claude-code");
    expect(wrong.failed).toMatchObject([{ code: "invalid_arguments" }]);
  });

  test("only a file that is not a session fails, and links and packages are not followed", async () => {
    const mixed = join(home, "mixed");
    mkdirSync(join(mixed, "node_modules/deep"), { recursive: true });
    cpSync(join(family, "food.jsonl"), join(mixed, "node_modules/deep/food.jsonl"));
    symlinkSync(family, join(mixed, "link"));
    writeFileSync(join(mixed, "a-good.jsonl"), sessionText(userLine("a", null)));
    writeFileSync(join(mixed, "b-bad.jsonl"), '{"hello":"world"}\n');
    writeFileSync(join(mixed, "notes.txt"), "mine");
    const { imported, failed, exit } = await importing(mixed);
    expect(imported).toMatchObject([{ file: join(mixed, "a-good.jsonl"), entries: 1 }]);
    expect(failed).toMatchObject([{ file: join(mixed, "b-bad.jsonl"), code: "not_a_session" }]);
    expect(exit).toBe(1);
    const { out } = await skein(["sessions", "import", mixed]);
    expect(out).toMatch(/\nFailed\n {2}.*b-bad\.jsonl: .+/);
  });

  test("imports the logs of a Skein folder with their keys and labels, without the trash", async () => {
    const ours = join(home, "ours");
    await seedFolder(ours);
    const { imported, failed } = await importing(ours, "--keep-metadata");
    expect(failed).toEqual([]);
    const ids = imported.map(({ sessionId }: { sessionId: string }) => sessionId);
    expect(ids.toSorted()).toEqual(["01-food", "01-gardens", "daily", "home", "lab", "trip"]);
    expect(JSON.parse((await skein(["sessions", "show", "holiday", "--json"])).out).sessionKey).toBe(
      "agent:main:session:trip",
    );
  });

  test("[CLI16] a dry run changes nothing, and creates no folder", async () => {
    const done = await importing(family, "--dry-run");
    expect(done.imported).toHaveLength(3);
    expect(existsSync(dir)).toBe(false);
    expect((await skein(["sessions", "import", family, "--dry-run"])).out).toMatch(
      /^would import 3 sessions/,
    );
    await importing(join(family, "food.jsonl"));
    expect((await importing(family, "--dry-run")).skipped).toHaveLength(1);
    expect(await sessionsThere()).toBe(1);
  });

  test("a session imported by one user is not visible to another", async () => {
    await importing(family, "--user", "alice");
    expect((await importing(family)).imported).toHaveLength(3);
  });

  test("shows progress on a terminal", async () => {
    const { err } = await skein(["sessions", "import", family], { redraws: true });
    expect(err).toContain("Importing");
  });

  test("prints the report", async () => {
    const { out } = await skein(["sessions", "import", join(samples, "codex.jsonl")], { cwd: samples });
    await expect(out).toMatchFileSnapshot("../../test/golden/cli/import-report.txt");
  });

  test.each([
    [["missing.jsonl"], "not_found", 1],
    [[], "invalid_arguments", 2],
    [["x", "--from", "emacs"], "invalid_arguments", 2],
  ])("[CLI2] %j is refused as %s", async (args, code, exit) => {
    const refused = await skein(["sessions", "import", ...args, "--json"]);
    expect({ code: JSON.parse(refused.out).code, exit: refused.exit }).toEqual({ code, exit });
    expect(existsSync(dir)).toBe(false);
  });
});

describe("sessions export", () => {
  beforeEach(() => seedFolder(dir));

  test("[INT10] JSONL reads back as the same session, from a reference and from a file", async () => {
    for (const ref of ["trip", join(family, "main.jsonl")]) {
      const { out } = await skein(["sessions", "export", ref]);
      const ids = Array.from(SessionTree.from(parseSession(out)).entries(), ({ id }) => id);
      expect(ids.slice(0, familyTree("main").size)).toEqual(
        Array.from(familyTree("main").entries(), ({ id }) => id),
      );
    }
  });

  test("writes a session that does not fit into one response", async () => {
    const store = await openFolder({ root: dir, durability: "os" });
    const content = "z".repeat(3 * 1024 * 1024);
    const draft = { type: "message" as const, message: { role: "user" as const, content } };
    await store.sessions.append(
      {},
      "home",
      Array.from({ length: 9 }, () => ({ draft })),
    );
    await store.close();
    const file = join(home, "large.jsonl");
    const { exit, out } = await skein(["sessions", "export", "home", "-o", file]);
    expect([exit, out.startsWith("wrote 27")]).toEqual([0, true]);
    expect(statSync(file).size).toBeGreaterThan(9 * content.length);
  });

  test.each([
    ["md", "# Three days in Kyoto"],
    ["html", "<!doctype html>"],
    ["jsonl", '{"type":"session"'],
  ])("[INT10] [CLG1] %s, to a file and as JSON", async (format, beginning) => {
    const file = join(home, `out-${count}.${format}`);
    const told = await skein(["sessions", "export", "trip", "-o", file]);
    expect(told).toMatchObject({ exit: 0, err: "" });
    expect(readFileSync(file, "utf8").toLowerCase()).toContain(beginning.toLowerCase());
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const payload = JSON.parse(
      (await skein(["sessions", "export", "trip", "--format", format, "--json"])).out,
    );
    expect(Check(ExportSchema, payload)).toBe(true);
    expect(payload).toMatchObject({ key: "agent:main:session:trip", sessionId: "trip", format });
    expect(payload.content).toBe(readFileSync(file, "utf8"));
    const again = JSON.parse((await skein(["sessions", "export", "trip", "-o", file, "--json"])).out);
    expect(again.code).toBe("write_failed");
    const forced = JSON.parse(
      (await skein(["sessions", "export", "trip", "-o", file, "--force", "--json"])).out,
    );
    expect(Check(ExportSchema, forced)).toBe(true);
    expect(forced.bytes).toBe(statSync(file).size);
  });

  test("[INT10] inlines the content of blobs", async () => {
    const store = await openFolder({ root: dir });
    const data = Buffer.alloc(70_000, 7);
    const sha256 = await store.blobs.put({ agentId: "main" }, data);
    const blob = { sha256, bytes: data.length, mimeType: "image/png", was: "image" };
    const content = [{ type: "text" as const, text: "[image]", skein: { blob } }];
    await store.sessions.append({}, "trip", [
      { draft: { type: "message", message: { role: "user", content } } },
    ]);
    await store.close();
    const { out } = await skein(["sessions", "export", "trip"]);
    expect(out).toContain(data.toString("base64"));
  });

  test("[ATK18] [INT10] terminal control characters are escaped, and the text reads back the same", async () => {
    const file = join(home, "hostile.jsonl");
    writeFileSync(file, sessionText(userLine("a", null, "\u009b2J\u202eevil")));
    const { out } = await skein(["sessions", "export", file]);
    expect(out).not.toMatch(/[\u0080-\u009f\u202e]/);
    expect(JSON.parse(out.split("\n")[1] ?? "").message.content).toBe("\u009b2J\u202eevil");
  });

  test("[INT10] Markdown has the active branch, or all branches", async () => {
    const active = (await skein(["sessions", "export", "trip", "--format", "md"])).out;
    const all = (await skein(["sessions", "export", "trip", "--format", "md", "--all"])).out;
    expect(active).not.toContain("What would it look like with a car?");
    expect(all).toContain("What would it look like with a car?");
  });

  test.each([
    [["nobody"], "not_found", 1],
    [["trip", "--format", "pdf"], "invalid_arguments", 2],
    [["trip", "-o", "no/such/folder.md"], "write_failed", 1],
    [[], "invalid_arguments", 2],
  ])("[CLI2] %j is refused as %s", async (args, code, exit) => {
    const refused = await skein(["sessions", "export", ...args, "--json"]);
    expect({ code: JSON.parse(refused.out).code, exit: refused.exit }).toEqual({ code, exit });
  });
});
