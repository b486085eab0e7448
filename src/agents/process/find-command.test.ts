import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findCommand } from "./find-command.ts";

let folder = "";
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "find-command-")));
  for (const name of ["one", "two", "one/tool"]) mkdirSync(join(folder, name));
  for (const name of ["two/tool", "two/other", "here"])
    writeFileSync(join(folder, name), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(folder, "one/other"), "no program", { mode: 0o644 });
  symlinkSync("../two/tool", join(folder, "one/link"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each<[command: string, path: string[], found: string | null]>([
  ["tool", ["one", "two"], "two/tool"],
  ["other", ["one", "two"], "two/other"],
  ["link", ["one"], "one/link"],
  ["tool", ["one"], null],
  ["tool", [], null],
  ["here", ["one"], null],
  ["./here", [], "here"],
  ["two/tool", [], "two/tool"],
  ["./one/other", ["two"], null],
  ["", ["two"], null],
  [".", ["one"], null],
  ["tool\0", ["two"], null],
])("%j on %j is %j", async (command, path, found) => {
  const PATH = path.map((name) => join(folder, name)).join(":");
  expect(await findCommand(command, { PATH }, folder)).toBe(found === null ? null : join(folder, found));
});

test("an absolute path is used unchanged, and relative entries of PATH are skipped", async () => {
  expect(await findCommand(join(folder, "here"), {}, "/")).toBe(join(folder, "here"));
  expect(await findCommand("here", { PATH: `:.:${folder}x:` }, folder)).toBe(null);
  expect(await findCommand("here", {}, folder)).toBe(null);
});
