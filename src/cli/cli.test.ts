import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anyEntry, damagedEntry } from "../../test/support/arbitraries.ts";
import { family, run, withoutFigures } from "../../test/support/cli.ts";
import { sessionText, userLine } from "../../test/support/session-text.ts";
import { HistorySchema } from "../protocol/chat.ts";
import { ContextPayloadSchema, RefusalSchema, TreeSchema } from "../protocol/session-views.ts";
import { drawTree } from "./output/print-session.ts";
import { oneLine } from "./output/terminal.ts";

let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-cli-"));
  writeFileSync(join(folder, "not-a-session.jsonl"), '{"hello":"world"}\n');
  writeFileSync(join(folder, "empty.jsonl"), "");
  writeFileSync(
    join(folder, "hostile.jsonl"),
    sessionText(userLine("a", null, "\u001b[2J\u001b]0;owned\u0007 \u202eevil\r\n")),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every command that reads a session file. */
const readers = [["sessions", "show"], ["sessions", "tree"], ["sessions", "tree", "--all"], ["context"]];

describe("the command line", () => {
  test("prints any file without failing, as text and as JSON", async () => {
    const file = join(folder, "any.jsonl");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(anyEntry, damagedEntry), { maxLength: 6 }), async (entries) => {
        writeFileSync(
          file,
          sessionText(
            ...entries.map((entry, index) => ({ ...entry, id: Reflect.get(entry, "id") ?? `e${index}` })),
          ),
        );
        for (const command of readers) {
          expect(await run([...command, file])).toMatchObject({ exit: 0, err: "" });
          const { out } = await run([...command, file, "--json"]);
          const schema =
            command[0] === "context"
              ? ContextPayloadSchema
              : command[1] === "show"
                ? HistorySchema
                : TreeSchema;
          expect(Check(schema, JSON.parse(out))).toBe(true);
        }
      }),
    );
  });

  const payloads: [string[], TSchema][] = [
    [["sessions", "show", "main.jsonl", "--json"], HistorySchema],
    [["sessions", "tree", "main.jsonl", "--json"], TreeSchema],
    [["context", "main.jsonl", "--json"], ContextPayloadSchema],
  ];
  test.each(payloads)("[CLI1] %j prints only JSON that matches its schema", async (args, schema) => {
    const { out, err, exit } = await run(args, { color: { out: true, err: false } });
    expect(Check(schema, JSON.parse(out))).toBe(true);
    expect(err).toBe("");
    expect(exit).toBe(0);
  });

  const usageError: string[][] = [
    ["nonsense"],
    ["sessions"],
    ["sessions", "show"],
    ["sessions", "show", "main.jsonl", "--limit", "0"],
    ["sessions", "show", "main.jsonl", "--surprise"],
    ["context", "main.jsonl", "extra.jsonl"],
  ];
  const failures: string[][] = [
    ["sessions", "show", "missing.jsonl"],
    ["sessions", "show", "main"],
    ["context", "main.jsonl/inside.jsonl"],
    ["sessions", "tree", "./"],
    ["sessions", "show", "main.jsonl", "--before", "nope"],
  ];

  test.each([...usageError.map((args) => [args, 2] as const), ...failures.map((args) => [args, 1] as const)])(
    "[CLI1] [CLI2] %j --json refuses in JSON with exit code %d",
    async (args, code) => {
      const { out, err, exit } = await run([...args, "--json"]);
      expect(Check(RefusalSchema, JSON.parse(out))).toBe(true);
      expect(err).toBe("");
      expect(exit).toBe(code);
    },
  );

  test.each(failures)("[CLI3] %s %s is reported in one line that ends in advice", async (...args) => {
    const { out, err, exit } = await run(args.filter((each) => each !== undefined));
    expect(out).toBe("");
    expect(err).toMatch(/^error: .+\. .+\.\n$/);
    expect(exit).toBe(1);
  });

  test("[CLI3] a mistyped option gets one line", async () => {
    const { err } = await run(["context", "main.jsonl", "--jsn"]);
    expect(err).toMatch(/^error: Unknown option '--jsn'.*--help.*\n$/);
  });

  test("[CLI4] uses color only if it is wanted", async () => {
    const plain = await run(["sessions", "tree", "main.jsonl"]);
    const coloured = await run(["sessions", "tree", "main.jsonl"], { color: { out: true, err: false } });
    expect(plain.out).not.toContain("\u001b");
    expect(coloured.out).toContain("\u001b[");
    expect(stripVTControlCharacters(coloured.out)).toBe(plain.out);
  });

  test.each(readers)("[ATK18] hostile text is shown, not interpreted: %s %s", async (...command) => {
    const { out } = await run([...command.filter((each) => each !== undefined), "hostile.jsonl"], {
      cwd: folder,
    });
    expect(out).toContain("owned");
    const json = await run([...command.filter((each) => each !== undefined), "hostile.jsonl", "--json"], {
      cwd: folder,
    });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
    expect(json.out).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(JSON.stringify(JSON.parse(json.out))).toContain("\u202e");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
    expect(out).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
  });

  test("[CLI6] a relative path is resolved from the user's working directory", async () => {
    expect((await run(["context", "./food.jsonl"])).exit).toBe(0);
    expect((await run(["context", "family/food.jsonl"], { cwd: join(family, "..") })).exit).toBe(0);
    expect((await run(["context", "./food.jsonl"], { cwd: folder })).exit).toBe(1);
  });

  test("the sample family's tree", async () => {
    const { out } = await run(["sessions", "tree", "main.jsonl"]);
    await expect(out).toMatchFileSnapshot("../../test/golden/cli/family-tree.txt");
    expect(out).toMatch(/├─.*\n(│ .*\n)+↩/);
    expect(readFileSync(new URL("../../README.md", import.meta.url), "utf8")).toContain(out);
    expect(out).toContain("[first plan]");
    expect(out).toContain("▣");
    expect(out).toContain("◀ leaf");
  });

  test("draws forty attempts in a row as forty branches, not forty levels", () => {
    const tries = Array.from({ length: 40 }, (_, i) => [
      { id: `try${i}`, parentId: i === 0 ? "root" : `on${i - 1}` },
      { id: `on${i}`, parentId: i === 0 ? "root" : `on${i - 1}` },
    ]).flat();
    const lines = [...drawTree([{ id: "root", parentId: null }, ...tries])].map(
      ({ rails, entry }) => `${rails}${entry.id}`,
    );
    expect(lines.slice(0, 5)).toEqual(["root", "├─try0", "on0", "├─try1", "on1"]);
  });

  test("draws nested branches and several roots, with limited indentation", () => {
    const rows = ["a.", "b.a", "c.b", "d.b", "e.a", "f."].map((each) => ({
      id: each[0] as string,
      parentId: each[2] ?? null,
    }));
    expect([...drawTree(rows)].map(({ rails, entry }) => rails + entry.id)).toEqual([
      "├─a",
      "│ ├─b",
      "│ │ ├─c",
      "│ │ d",
      "│ e",
      "└─f",
    ]);
    const deep = Array.from({ length: 200 }, (_, i) => [
      { id: `in${i}`, parentId: i === 0 ? null : `in${i - 1}` },
      { id: `out${i}`, parentId: i === 0 ? null : `in${i - 1}` },
    ]).flat();
    const longest = Math.max(...[...drawTree(deep)].map(({ rails }) => rails.length));
    expect(longest).toBeLessThan(60);
  });

  test("property names of every object are ordinary names", async () => {
    const file = join(folder, "names.jsonl");
    const odd = ["constructor", "__proto__", "toString"].map((role, i) => ({
      ...userLine(`e${i}`, null),
      message: { role, content: [null, { type: { toString: 1 } }] },
    }));
    writeFileSync(file, sessionText(...odd, { ...userLine("t", null), type: "constructor" }));
    for (const command of readers) {
      expect(await run([...command, file], { color: { out: true, err: true } })).toMatchObject({
        exit: 0,
        err: "",
      });
    }
    const many = {
      ...userLine("m", null),
      message: {
        role: "user",
        content: Array.from({ length: 300_000 }, () => ({ type: "text", text: "x" })),
      },
    };
    writeFileSync(file, sessionText(many));
    for (const command of readers) expect((await run([...command, file])).exit).toBe(0);
  });

  test("--all draws bookkeeping entries too", async () => {
    const count = async (...args: string[]) =>
      (await run(["sessions", "tree", "main.jsonl", ...args])).out.split("\n").length;
    expect((await count("--all")) - (await count())).toBe(3);
  });

  test("show and context print the same file", async () => {
    const show = await run(["sessions", "show", "main.jsonl"]);
    await expect(show.out).toMatchFileSnapshot("../../test/golden/cli/family-show.txt");
    const context = await run(["context", "main.jsonl"]);
    await expect(withoutFigures(context.out)).toMatchFileSnapshot("../../test/golden/cli/family-context.txt");
  });

  test("an entry is named by its ID or by a unique ending of it", async () => {
    const page = async (before: string) =>
      (await run(["sessions", "show", "gardens.jsonl", "--json", "--before", before])).out;
    const { messages } = JSON.parse((await run(["sessions", "show", "gardens.jsonl", "--json"])).out);
    expect(JSON.parse(await page(`…${messages[2].id.slice(-8)}`)).messages).toEqual(messages.slice(0, 2));
    expect(JSON.parse(await page("zzzzzzzz")).code).toBe("not_found");
    expect(JSON.parse(await page("c")).code).toBe("not_found");
  });

  test("wide characters are counted as two columns", () => {
    expect(oneLine("西阵小料理", 7)).toBe("西阵小…");
    expect(oneLine("👨‍👩‍👧 family", 5)).toBe("👨‍👩‍👧 f…");
    expect(oneLine("short", 80)).toBe("short");
    expect(oneLine("a plain text", 7)).toBe("a plai…");
  });

  test("[ENT4] damage is reported below the result", async () => {
    const torn = join(folder, "torn.jsonl");
    writeFileSync(torn, `${sessionText(userLine("a", null))}{"type":`);
    const { out, exit } = await run(["sessions", "show", torn]);
    expect(exit).toBe(0);
    expect(out).toContain("1 finding\n  line 3: the line was skipped: it is cut off at the end of the file");
  });

  test.each([
    ["not-a-session.jsonl", "not_a_session", "none of its lines is a session header"],
    ["empty.jsonl", "not_a_session", "it is empty"],
    ["missing.jsonl", "not_found", "Check the path"],
    ["./", "unreadable_file", "it is a folder"],
  ])("[SFL11] refuses %s as %s and leaves it unchanged", async (file, code, text) => {
    const path = join(folder, file);
    const before = file.endsWith("session.jsonl") ? readFileSync(path) : null;
    const { out } = await run(["context", path, "--json"]);
    expect(JSON.parse(out)).toMatchObject({ status: "error", code });
    expect(out).toContain(text);
    if (before !== null) expect(readFileSync(path)).toEqual(before);
  });

  test("[CLI2] --version and --help succeed", async () => {
    expect(await run(["--version"])).toEqual({ out: "1.2.3\n", err: "", exit: 0 });
    expect((await run([])).exit).toBe(2);
  });
});
