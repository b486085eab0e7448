import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sessionText, userLine } from "../../test/support/session-text.ts";
import {
  ContextPayloadSchema,
  HistorySchema,
  RefusalSchema,
  TreeSchema,
} from "../protocol/session-payloads.ts";
import { runCli } from "./main.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine } from "./output/terminal.ts";
import { createProgram } from "./program.ts";

const examples = fileURLToPath(new URL("../../examples/family/", import.meta.url));
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

async function run(args: string[], options: Partial<Terminal> = {}) {
  const printed = { out: "", err: "" };
  const terminal: Terminal = {
    out: (text) => {
      printed.out += text;
    },
    err: (text) => {
      printed.err += text;
    },
    color: false,
    columns: 100,
    cwd: examples,
    ...options,
  };
  const exit = await runCli(args, "1.2.3", terminal);
  return { ...printed, exit };
}

describe("the command line", () => {
  const payloads: [string[], TSchema][] = [
    [["sessions", "show", "main.jsonl", "--json"], HistorySchema],
    [["sessions", "tree", "main.jsonl", "--json"], TreeSchema],
    [["context", "main.jsonl", "--json"], ContextPayloadSchema],
  ];
  test.each(payloads)("[CLI1] %j prints JSON alone, by its schema", async (args, schema) => {
    const { out, err, exit } = await run(args, { color: true });
    expect(Check(schema, JSON.parse(out))).toBe(true);
    expect(err).toBe("");
    expect(exit).toBe(0);
  });

  const misuse: string[][] = [
    ["nonsense"],
    ["sessions"],
    ["sessions", "show"],
    ["sessions", "show", "main"],
    ["sessions", "show", "main.jsonl", "--limit", "0"],
    ["sessions", "show", "main.jsonl", "--surprise"],
    ["context", "main.jsonl", "extra.jsonl"],
  ];
  const failures: string[][] = [
    ["sessions", "show", "missing.jsonl"],
    ["context", "main.jsonl/inside.jsonl"],
    ["sessions", "tree", "./"],
    ["sessions", "show", "main.jsonl", "--before", "nope"],
  ];

  test.each([...misuse.map((args) => [args, 2] as const), ...failures.map((args) => [args, 1] as const)])(
    "[CLI1] [CLI2] %j --json refuses in JSON with exit code %d",
    async (args, code) => {
      const { out, err, exit } = await run([...args, "--json"]);
      expect(Check(RefusalSchema, JSON.parse(out))).toBe(true);
      expect(err).toBe("");
      expect(exit).toBe(code);
    },
  );

  test.each(failures)("[CLI3] %s %s is told in one line that ends in advice", async (...args) => {
    const { out, err, exit } = await run(args.filter((each) => each !== undefined));
    expect(out).toBe("");
    expect(err).toMatch(/^error: .+\. .+\.\n$/);
    expect(exit).toBe(1);
  });

  test("[CLI3] a mistyped option gets one line", async () => {
    const { err } = await run(["context", "main.jsonl", "--jsn"]);
    expect(err).toMatch(/^error: Unknown option '--jsn'.*--help.*\n$/);
  });

  test("[CLI4] colours only where they are wanted", async () => {
    const plain = await run(["sessions", "tree", "main.jsonl"]);
    const coloured = await run(["sessions", "tree", "main.jsonl"], { color: true });
    expect(plain.out).not.toContain("\u001b");
    expect(coloured.out).toContain("\u001b[");
    expect(stripVTControlCharacters(coloured.out)).toBe(plain.out);
  });

  test.each([["sessions", "show"], ["sessions", "tree"], ["context"]])(
    "[CLI5] hostile text is shown, not obeyed: %s %s",
    async (...command) => {
      const { out } = await run([...command.filter((each) => each !== undefined), "hostile.jsonl"], {
        cwd: folder,
      });
      expect(out).toContain("owned");
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
      expect(out).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
    },
  );

  test("[CLI6] a relative path is taken from where the user stands", async () => {
    expect((await run(["context", "./food.jsonl"])).exit).toBe(0);
    expect((await run(["context", "family/food.jsonl"], { cwd: join(examples, "..") })).exit).toBe(0);
    expect((await run(["context", "./food.jsonl"], { cwd: folder })).exit).toBe(1);
  });

  test("[CLI7] every command's help has examples that it understands", async () => {
    const program = createProgram({} as Terminal, "0");
    const leaves = program.commands.flatMap((each) =>
      each.commands.length === 0
        ? [[each.name()]]
        : each.commands.map((child) => [each.name(), child.name()]),
    );
    for (const path of [[], ...leaves]) {
      const { out, exit } = await run([...path, "--help"]);
      expect(exit).toBe(0);
      const shown = [...out.matchAll(/^ {2}\$ skein (.+)$/gm)].map((match) =>
        (match[1] as string).split(" "),
      );
      expect(shown.length).toBeGreaterThan(0);
      for (const args of shown) {
        const inPlace = args.map((arg) => arg.replace(/.*\.jsonl$/, "main.jsonl"));
        expect((await run(inPlace)).exit).toBe(0);
      }
    }
  });

  test("[CLI8] the sample family's tree", async () => {
    const { out } = await run(["sessions", "tree", "main.jsonl"]);
    await expect(out).toMatchFileSnapshot("../../test/golden/cli/family-tree.txt");
    expect(out).toMatch(/├─.*\n(│ .*\n)+└─↩/);
    expect(out).toContain("[first plan]");
    expect(out).toContain("▣");
    expect(out).toContain("◀ leaf");
  });

  test("[CLI8] what show and context print", async () => {
    const show = await run(["sessions", "show", "main.jsonl"]);
    await expect(show.out).toMatchFileSnapshot("../../test/golden/cli/family-show.txt");
    const context = await run(["context", "main.jsonl"]);
    await expect(context.out).toMatchFileSnapshot("../../test/golden/cli/family-context.txt");
  });

  test("[CLI8] wide characters are counted as two columns", () => {
    expect(oneLine("西阵小料理", 7)).toBe("西阵小…");
    expect(oneLine("👨‍👩‍👧 family", 5)).toBe("👨‍👩‍👧 f…");
    expect(oneLine("short", 80)).toBe("short");
  });

  test("[ENT4] damage is told below the result", async () => {
    const torn = join(folder, "torn.jsonl");
    writeFileSync(torn, `${sessionText(userLine("a", null))}{"type":`);
    const { out, exit } = await run(["sessions", "show", torn]);
    expect(exit).toBe(0);
    expect(out).toContain(
      "1 finding\n  line 3: the line was passed over: it breaks off at the end of the file",
    );
  });

  test.each([
    ["not-a-session.jsonl", "not_a_session", "no line of it is a session header"],
    ["empty.jsonl", "not_a_session", "it is empty"],
    ["missing.jsonl", "not_found", "Check the path"],
    ["./", "unreadable_file", "it is a folder"],
  ])("[CLI10] %s is refused as %s and left as it is", async (file, code, text) => {
    const path = join(folder, file);
    const before = file.endsWith("session.jsonl") ? readFileSync(path) : null;
    const { out } = await run(["context", path, "--json"]);
    expect(JSON.parse(out)).toMatchObject({ status: "error", code });
    expect(out).toContain(text);
    if (before !== null) expect(readFileSync(path)).toEqual(before);
  });

  test("[CLI2] --version and --help are fine", async () => {
    expect(await run(["--version"])).toEqual({ out: "1.2.3\n", err: "", exit: 0 });
    expect((await run([])).exit).toBe(2);
  });
});
