import { Readable } from "node:stream";
import fc from "fast-check";
import stringWidth from "string-width";
import { describe, expect, test } from "vitest";
import { formatAge, formatBytes, formatCost, formatCount, parseTime } from "./format.ts";
import { commandLine } from "./invocation.ts";
import { progressBar, withProgress } from "./progress.ts";
import { printTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { confirm } from "./terminal.ts";

function fake(more: Partial<Terminal> = {}) {
  const printed = { out: "", err: "" };
  const terminal: Terminal = {
    out: (text) => {
      printed.out += text;
    },
    err: (text) => {
      printed.err += text;
    },
    color: { out: false, err: false },
    columns: 40,
    cwd: "/",
    command: "skein",
    env: {},
    home: "/nobody",
    now: () => 0,
    ask: null,
    redraws: false,
    isWatched: false,
    input: () => ({ stream: Readable.from([]), typed: false }),
    onInterrupt: () => () => undefined,
    ...more,
  };
  return { terminal, printed };
}

describe("tables", () => {
  const columns = [
    { title: "NAME", text: ([name]: string[]) => name ?? "", least: 6 },
    { title: "EMPTY", text: () => "" },
    { title: "SIZE", text: ([, size]: string[]) => size ?? "", align: "right" as const },
  ];

  test("aligns columns, and omits empty ones", () => {
    const { terminal, printed } = fake();
    printTable(terminal, columns, [
      ["a", "1"],
      ["longer", "1000"],
      ["西阵", "20"],
    ]);
    expect(printed.out).toBe("NAME    SIZE\na          1\nlonger  1000\n西阵      20\n");
  });

  test("no line is wider than the terminal, whatever it contains", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ unit: "grapheme", maxLength: 80 }), fc.string({ maxLength: 12 })), {
          minLength: 1,
          maxLength: 6,
        }),
        fc.integer({ min: 3, max: 120 }),
        (rows, width) => {
          const { terminal, printed } = fake({ columns: width, isWatched: true });
          printTable(terminal, columns, rows);
          const lines = printed.out.split("\n").slice(0, -1);
          expect(lines).toHaveLength(rows.length + 1);
          for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(width);
        },
      ),
    );
  });

  const named = [
    { title: "KEY", text: ([name]: string[]) => name ?? "", whole: true },
    { title: "TEXT", text: ([, text]: string[]) => text ?? "", least: 6 },
    { title: "AGE", text: () => "2d", align: "right" as const, spare: 1 },
  ];
  const key = fc
    .array(fc.constantFrom(..."abz09-.%_"), { minLength: 1, maxLength: 90, size: "max" })
    .map((part) => `agent:x:acp:${part.join("")}`);

  test("a name is complete at every width, and other columns shrink", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(key, fc.string({ unit: "grapheme", maxLength: 80 })), {
          minLength: 1,
          maxLength: 6,
        }),
        fc.integer({ min: 3, max: 120 }),
        (rows, width) => {
          const { terminal, printed } = fake({ columns: width, isWatched: true });
          printTable(terminal, named, rows);
          const lines = printed.out.split("\n").slice(1, -1);
          const longest = Math.max(...rows.map(([name]) => name.length));
          for (const [index, [name]] of rows.entries()) expect(lines[index]?.split(" ")[0]).toBe(name);
          for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(Math.max(width, longest));
        },
      ),
    );
  });

  test("without a terminal, nothing is shortened or omitted", () => {
    const { terminal, printed } = fake({ columns: 20 });
    const name = `agent:x:acp:${"0".repeat(90)}`;
    const text = "gardens and food ".repeat(20).trim();
    printTable(terminal, named, [
      [name, text],
      ["main", "short"],
    ]);
    const [title, first, second] = printed.out.split("\n");
    expect(title).toMatch(/^KEY +TEXT +AGE$/);
    expect(first).toBe(`${name}  ${text}   2d`);
    // The long text shifts only the columns that follow it.
    expect(second).toBe(`${"main".padEnd(name.length)}  ${"short".padEnd(60)}   2d`);
  });

  test("[ATK18] text that would control the terminal is shown, not interpreted", () => {
    const { terminal, printed } = fake();
    printTable(terminal, columns, [["\u001b[2J\nx", "\u0007"]]);
    expect(printed.out).not.toContain("\u001b");
    expect(printed.out.split("\n")).toHaveLength(3);
  });
});

describe("amounts", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KB"],
    [1024 * 1023.99, "1.0 MB"],
    [150 * 1024 * 1024, "150 MB"],
  ])("%d bytes are %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));

  test("formats counts, costs and ages", () => {
    expect([999, 1000, 12_345, 3_400_000].map(formatCount)).toEqual(["999", "1.0k", "12.3k", "3.4M"]);
    expect([null, 0, 0.001, 1.234].map(formatCost)).toEqual(["?", "", "<$0.01", "$1.23"]);
    const minute = 60_000;
    expect([-5, 0, minute, 90 * minute, 50 * 60 * minute].map(formatAge)).toEqual([
      "now",
      "now",
      "1m",
      "1h",
      "2d",
    ]);
  });

  test("[SNM1] a time is a date or a duration before now", () => {
    expect(parseTime("2026-03-01T00:00:00Z", 0)).toBe(Date.UTC(2026, 2, 1));
    expect(parseTime("90m", 100 * 60_000)).toBe(10 * 60_000);
    for (const text of ["yesterday", "5", "7y", "2026-99-99", ""]) {
      expect(() => parseTime(text, 0)).toThrow(expect.objectContaining({ code: "invalid_arguments" }));
    }
  });
});

describe("asking for confirmation", () => {
  test("[CLI21] is refused without a user, with a remedy", async () => {
    await expect(confirm({ terminal: fake().terminal, options: {} }, "Sure?")).rejects.toThrow("--yes");
    await expect(
      confirm({ terminal: fake().terminal, options: { yes: true } }, "Sure?"),
    ).resolves.toBeUndefined();
  });

  test("[CLI21] only a yes continues", async () => {
    const asked: string[] = [];
    const answering = (answer: string) =>
      fake({
        ask: async (question) => {
          asked.push(question);
          return answer;
        },
      }).terminal;
    for (const yes of ["y", "YES", " y "]) await confirm({ terminal: answering(yes), options: {} }, "Sure?");
    for (const no of ["", "n", "yesterday"]) {
      await expect(confirm({ terminal: answering(no), options: {} }, "Sure?\u001b[2J")).rejects.toMatchObject(
        {
          code: "invalid_arguments",
        },
      );
    }
    expect(asked[0]).toBe("Sure? [y/N] ");
    expect(asked.at(-1)).not.toContain("\u001b");
  });
});

describe("progress", () => {
  test("is drawn on stderr in place, and is removed at the end", async () => {
    const { terminal, printed } = fake({ redraws: true });
    await withProgress(terminal, "Copying", async (update) => {
      update(0, 4);
      update(2, 4);
      update(2, 4);
    });
    expect(printed.out).toBe("");
    expect(printed.err.split("\r\u001b[K")).toEqual([
      "",
      "Copying ░░░░░░░░░░░░░░░░░░░░░░░░ 0 of 4",
      "Copying ████████████░░░░░░░░░░░░ 2 of 4",
      "",
    ]);
  });

  test("is not drawn if a line cannot be overwritten", () => {
    const { terminal, printed } = fake();
    progressBar(terminal, "Copying").update(1, 2);
    expect(printed).toEqual({ out: "", err: "" });
  });
});

describe("suggested commands", () => {
  test("include the folder, user and agent of the call, quoted for a shell", () => {
    const { terminal } = fake();
    const options = { dir: "/my files", user: "o'neil", agent: "main", json: true };
    expect(commandLine({ terminal, options }, "sessions", "show", "trip")).toBe(
      "skein sessions show trip --dir '/my files' --user 'o'\\''neil' --agent main",
    );
    expect(commandLine({ terminal, options: {} }, "sessions", "ls")).toBe("skein sessions ls");
  });
});
