import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { Check } from "typebox/value";
import { afterAll, describe, expect, test } from "vitest";
import { readSessionFile, repairSessionFile } from "../../src/app/folder.ts";
import { runCli } from "../../src/cli/main.ts";
import { RepairSchema } from "../../src/protocol/session-views.ts";
import { anyEntry } from "../support/arbitraries.ts";
import { header, sessionText, userLine } from "../support/session-text.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-repair-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
function file(text: string): string {
  const path = join(folder, `2026-01-01T00-00-00-000Z_s${count++}.jsonl`);
  writeFileSync(path, text);
  return path;
}

describe("repair", () => {
  test("[SFL12] damaged lines are removed, the others are unchanged, and the original is kept", async () => {
    const big =
      '{"type":"custom","customType":"x","id":"n","parentId":"a","timestamp":"t","data":12345678901234567890,"odd":1e400}';
    const text = sessionText(
      userLine("a", null),
      big,
      "{torn",
      "null",
      userLine("d", "c"),
      userLine("e", "d"),
    );
    const path = file(`${text}{"type":"mess`);
    const report = await repairSessionFile(path);
    expect(report).toMatchObject({
      damaged: [
        { line: 4, reason: "not_json" },
        { line: 5, reason: "not_object" },
        { line: 8, reason: "torn" },
      ],
      headerRebuilt: false,
      bridged: ["d"],
      kept: 4,
    });
    expect(Check(RepairSchema, report)).toBe(true);
    expect(report.backup).toMatch(/\.jsonl\.bak-\d+-\d+$/);
    expect(readFileSync(report.backup ?? "", "utf8")).toBe(`${text}{"type":"mess`);
    const lines = readFileSync(path, "utf8").split("\n");
    expect(lines[2]).toBe(big);
    expect(JSON.parse(lines[3] ?? "")).toMatchObject({ id: "d", parentId: "n" });
    expect(lines[4]).toBe(JSON.stringify(userLine("e", "d")));
    expect((await readSessionFile(path)).diagnostics).toEqual([]);
    expect(readdirSync(folder).filter((name) => /\.(lock|tmp|wait)/.test(name))).toEqual([]);
  });

  test("[SFL12] a lost header is rebuilt from the file name and the first entry", async () => {
    const path = file(`${JSON.stringify(userLine("a", null))}\n`);
    expect(await repairSessionFile(path)).toMatchObject({ headerRebuilt: true, damaged: [], kept: 1 });
    const [first] = readFileSync(path, "utf8").split("\n");
    expect(JSON.parse(first ?? "")).toMatchObject({
      type: "session",
      version: 3,
      timestamp: "2026-01-01T00:00:00.000Z",
    });
    expect(JSON.parse(first ?? "").id).toMatch(/^s\d+$/);
  });

  test("[SFL12] version 1 is written as version 3, with the IDs it is read with", async () => {
    const old = (content: string) =>
      JSON.stringify({ type: "message", timestamp: "t", message: { role: "user", content } });
    const compaction = JSON.stringify({
      type: "compaction",
      timestamp: "t",
      summary: "S",
      firstKeptEntryIndex: 3,
    });
    const path = file(
      ['{"type":"session","id":"old"}', old("one"), "{torn", old("three"), compaction, old("four")].join(
        "\n",
      ),
    );
    const before = (await readSessionFile(path)).context();
    await repairSessionFile(path);
    const after = await readSessionFile(path);
    expect(after.context().entryIds).toEqual(before.entryIds);
    expect(after.diagnostics).toEqual([]);
  });

  test.each([
    ["whole", sessionText(userLine("a", null))],
    ["foreign lines first", `{"type":"title"}\n${sessionText(userLine("a", null))}`],
  ])("a file that is %s is not touched", async (_, text) => {
    const path = file(text);
    expect((await repairSessionFile(path)).backup).toBeNull();
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  test.each(["", "hello\n", '{"no":"session"}\n', "\0\0\0"])(
    "%j is not a session, and is refused",
    async (text) => {
      const path = file(text);
      await expect(repairSessionFile(path)).rejects.toThrow(
        expect.objectContaining({ code: "not_a_session" }),
      );
      expect(readFileSync(path, "utf8")).toBe(text);
      expect(
        readdirSync(folder).filter(
          (name) => name.startsWith(path.slice(folder.length + 1)) && name.includes("bak"),
        ),
      ).toEqual([]);
    },
  );

  test("[ATF7] for any damage, the repaired file has the same context as before", async () => {
    const damage = fc.constantFrom("{torn", "null", '{"no":"entry"}', "\u0000\u0000");
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof({ weight: 3, arbitrary: anyEntry }, damage), { maxLength: 10 }),
        fc.boolean(),
        async (parts, withHeader) => {
          const lines = parts.map((part, index) =>
            typeof part === "string"
              ? part
              : JSON.stringify({ ...part, id: `e${index}`, parentId: index === 0 ? null : `e${index - 1}` }),
          );
          const text = [...(withHeader ? [JSON.stringify(header)] : []), ...lines]
            .map((line) => `${line}\n`)
            .join("");
          const path = file(text);
          const before = await readSessionFile(path).catch(() => null);
          if (before === null) return;
          await repairSessionFile(path);
          const after = await readSessionFile(path);
          expect(after.context().messages).toEqual(before.context().messages);
          const codes = after.diagnostics.map(({ code }) => code);
          expect(codes).not.toContain("corrupt_line");
          expect(codes).not.toContain("header_missing");
          expect(codes).not.toContain("bridged_parent");
        },
      ),
      { numRuns: 100 },
    );
  });

  test("works on the command line", async () => {
    const path = file(`${sessionText(userLine("a", null))}{torn`);
    let out = "";
    const terminal = {
      out: (text: string) => {
        out += text;
      },
      err: () => undefined,
      color: { out: false, err: false },
      columns: 100,
      cwd: folder,
      command: "skein",
    };
    expect(await runCli(["sessions", "repair", path], "0", terminal)).toBe(0);
    expect(out).toContain("line 3 was left out: it is cut off at the end of the file");
    out = "";
    expect(await runCli(["sessions", "repair", path], "0", terminal)).toBe(0);
    expect(out).toContain("nothing to repair (1 entry)");
  });
});
