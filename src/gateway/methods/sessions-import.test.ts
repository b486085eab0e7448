import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { family } from "../../../test/support/cli.ts";
import type { FolderCalls } from "../../../test/support/folder-calls.ts";
import { closeFolderCalls, openFolderCalls } from "../../../test/support/folder-calls.ts";
import { sessionText, userLine } from "../../../test/support/session-text.ts";

const samples = fileURLToPath(new URL("../../../test/golden/interchange/", import.meta.url));
const sample = (name: string) => ({ name, content: readFileSync(join(samples, name), "utf8") });
const member = (name: string, as = name) => ({
  name: as,
  content: readFileSync(join(family, name), "utf8"),
});
const bad = { name: "bad.jsonl", content: "no session at all\n" };

let folder: FolderCalls;
beforeEach(async () => {
  folder = await openFolderCalls();
});
afterEach(closeFolderCalls);

describe("sessions.import", () => {
  test("accepts every format by the contents of the files, for the call's user, and skips known sessions", async () => {
    const before = await folder.everything(null, "alice");
    const bob = folder.as({ tokenId: "b", user: "bob" });
    const files = [
      sample("claude-code.jsonl"),
      sample("codex.jsonl"),
      sample("codex-first.json"),
      member("food.jsonl"),
    ];
    const { imported, failed, skipped } = await bob.call("sessions.import", { files, agentId: "work" });
    expect({ failed, skipped }).toEqual({ failed: [], skipped: undefined });
    expect(imported.map(({ file }) => file)).toEqual(files.map(({ name }) => name));
    const claude = imported[0];
    expect(claude?.key).toBe(`agent:work:session:${claude?.sessionId}`);
    expect(claude?.notKept.length).toBeGreaterThan(0);
    for (const { sessionId } of imported)
      expect(await folder.store.sessions.get({ userId: "bob" }, sessionId)).not.toBe(null);
    expect(await folder.everything(null, "alice")).toEqual(before);
    const again = await bob.call("sessions.import", { files });
    expect(again.skipped?.map(({ why }) => why)).toEqual(Array(4).fill("already imported"));
  });

  test("one bad file does not stop the rest", async () => {
    const files = [
      bad,
      member("gardens.jsonl"),
      { name: "deep/sessions.json", content: "[]" },
      member("main.jsonl"),
    ];
    const { imported, failed } = await folder.as().call("sessions.import", { files, userId: "bob" });
    expect(imported.map(({ file }) => file)).toEqual(["gardens.jsonl", "main.jsonl"]);
    expect(failed).toMatchObject([
      { file: "deep/sessions.json", code: "unreadable_file" },
      { file: "bad.jsonl", code: "not_a_session" },
    ]);
  });

  test("a file is read in the given format", async () => {
    const files = [sample("codex.jsonl")];
    const wrong = await folder.as().call("sessions.import", { files, from: "claude-code" });
    expect(wrong).toMatchObject({ imported: [], failed: [{ code: "invalid_arguments" }] });
    const right = await folder.as().call("sessions.import", { files, from: "codex" });
    expect(right.imported).toHaveLength(1);
  });

  test.each(["agents/work/sessions/", "C:\\claw\\agents\\work\\sessions\\"])(
    "an OpenClaw list names the files next to it in %s, and rows without a file are ignored",
    async (place) => {
      const list = {
        "agent:work:telegram:direct:42": { sessionId: "s1", label: "ann", updatedAt: 1 },
        "agent:work:main": { sessionId: "later", updatedAt: 1 },
        evil: { sessionId: "../../etc/passwd" },
      };
      const files = [
        { name: `${place}unlisted.jsonl`, content: sessionText(userLine("a1", null)) },
        member("main.jsonl", `${place}s1.jsonl`),
        { name: `${place}sessions.json`, content: JSON.stringify(list) },
        { name: "elsewhere/s1.jsonl", content: sessionText(userLine("b1", null)).replace('"s"', '"other"') },
      ];
      const how = { files, userId: "bob", keepMetadata: true };
      const { imported, failed } = await folder.as().call("sessions.import", how);
      expect(imported).toMatchObject([
        { file: `${place}s1.jsonl`, key: "agent:work:telegram:user:42", sessionId: "s1" },
        { file: `${place}unlisted.jsonl`, key: "agent:work:session:s" },
        { file: "elsewhere/s1.jsonl", key: "agent:main:session:other" },
      ]);
      expect(failed).toMatchObject([{ file: `${place}sessions.json`, code: "invalid_entry" }]);
    },
  );

  test("a dry run reports what it would do, and does nothing", async () => {
    const before = await folder.everything(null, "alice", "bob");
    const files = [member("food.jsonl"), bad];
    const said = await folder.as().call("sessions.import", { files, userId: "bob", dryRun: true });
    expect(said).toMatchObject({ imported: [{ file: "food.jsonl" }], failed: [{ file: "bad.jsonl" }] });
    expect(await folder.everything(null, "alice", "bob")).toEqual(before);
    const done = await folder.as().call("sessions.import", { files, userId: "bob" });
    expect(done).toEqual(said);
  });
});
