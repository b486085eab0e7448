import { describe, expect, test } from "vitest";
import type { ContextMessage } from "../../core/context.ts";
import { collectFiles, mergeFiles, noFiles, readFilesOf } from "./touched-files.ts";

const call = (name: string, given: unknown): ContextMessage => ({
  role: "assistant",
  content: [{ type: "toolCall", id: "a", name, arguments: given as Record<string, unknown> }],
});

describe("the files that calls touched", () => {
  test.each<[string, unknown, "readFiles" | "modifiedFiles" | null]>([
    ["read", { path: "a.ts" }, "readFiles"],
    ["Read", { file_path: "a.ts" }, "readFiles"],
    ["view_file", { filePath: "a.ts" }, "readFiles"],
    ["write", { path: "a.ts" }, "modifiedFiles"],
    ["str_replace_edit", { path: "a.ts" }, "modifiedFiles"],
    ["MultiEdit", { file_path: "a.ts" }, "modifiedFiles"],
    ["createFile", { filename: "a.ts" }, "modifiedFiles"],
    ["ls", { path: "a.ts" }, null],
    ["grep", { path: "a.ts", pattern: "x" }, null],
    ["read", { path: 7 }, null],
    ["read", { path: " " }, null],
    ["read", { path: `a${"x".repeat(2000)}` }, null],
    ["read", { path: "a\nb" }, null],
    ["read", null, null],
    ["bash", { command: "cat a.ts" }, null],
  ])("%s %j", (name, given, kind) => {
    const found = collectFiles([call(name, given)]);
    const path = Object.values((given ?? {}) as Record<string, string>)[0] ?? "";
    expect(found).toEqual(kind === null ? noFiles : { ...noFiles, [kind]: [path] });
  });

  test("a file that was read and changed counts as changed; both lists are sorted, without duplicates", () => {
    const messages = ["z", "b", "z", "a"].flatMap((path) => [call("read", { path }), call("read", { path })]);
    expect(collectFiles([...messages, call("edit", { path: "b" })])).toEqual({
      readFiles: ["a", "z"],
      modifiedFiles: ["b"],
    });
  });

  test("are carried over, and the newer ones stay if there are too many", () => {
    const older = { readFiles: ["a", "b"], modifiedFiles: ["c"] };
    expect(mergeFiles(older, { readFiles: ["c", "d"], modifiedFiles: ["a"] })).toEqual({
      readFiles: ["b", "d"],
      modifiedFiles: ["a", "c"],
    });
    const names = (letter: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${letter}${index}`);
    const merged = mergeFiles(
      { ...noFiles, readFiles: names("a", 400) },
      { ...noFiles, readFiles: names("z", 400) },
    );
    expect(merged.readFiles).toHaveLength(500);
    expect(merged.readFiles.filter((path) => path.startsWith("z"))).toHaveLength(400);
  });

  test.each([[undefined], [null], ["x"], [{ readFiles: "x" }], [{ readFiles: [1, null] }], [[]]])(
    "ignores foreign details %j",
    (details) => {
      expect(readFilesOf(details)).toEqual(noFiles);
    },
  );
});
