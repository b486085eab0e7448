import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { fileSystemError } from "./errors.ts";

const system = (code: string, path?: string) =>
  Object.assign(new Error(`${code}: no`), { code, ...(path === undefined ? {} : { path }) });

describe("operating system errors", () => {
  test.each([
    [
      "EACCES",
      "write_failed",
      /^\/x\/work\.db could not be written: permission denied \(EACCES\)\. .*--dir\.$/,
    ],
    ["EROFS", "write_failed", /it is read-only .*--dir\.$/],
    ["ENOSPC", "write_failed", /the disk is full .*Free some space/],
    ["EMFILE", "unreadable_file", /too many files are open/],
  ])("[ATF12] %s is reported with a remedy", (code, as, text) => {
    expect(fileSystemError(system(code, "/x/work.db"))).toMatchObject({
      code: as,
      message: expect.stringMatching(text),
    });
  });

  test("[ATF12] reports a file in place of a folder as the system does", () => {
    const folder = temporaryFolder();
    const file = join(folder.path, "file");
    writeFileSync(file, "");
    const failing = (path: string) => {
      try {
        mkdirSync(path);
        return null;
      } catch (error) {
        return fileSystemError(error)?.message;
      }
    };
    expect(failing(file)).toContain(
      `${file} could not be written: a file with that name already exists (EEXIST)`,
    );
    expect(failing(join(file, "x"))).toContain("a part of its path is not a folder");
    folder.remove();
  });

  test("[ATF12] leaves errors that are not about a file unchanged", () => {
    for (const error of [new Error("no"), system("EACCES"), system("ESTRANGE", "/x"), "no", null])
      expect(fileSystemError(error)).toBe(null);
  });
});
