import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { Database } from "./database.ts";

/** Full at so many pages, as a disk is. */
const pragmas = "PRAGMA journal_mode = WAL; PRAGMA max_page_count = 20";
const large = "x".repeat(400_000);
let folder: TemporaryFolder;
let db: Database;

beforeEach(() => {
  folder = temporaryFolder();
  db = new Database(join(folder.path, "work.db"), pragmas, ["CREATE TABLE texts (text TEXT)"]);
});
afterEach(() => {
  db.close();
  folder.remove();
});

const add = (text: string) => db.run("INSERT INTO texts VALUES (?)", text);
const texts = () =>
  db
    .sql("SELECT text FROM texts")
    .all()
    .map(({ text }) => text);
const full = expect.objectContaining({
  code: "write_failed",
  message: expect.stringMatching(/work\.db could not be written: the disk is full\. Make room/),
});

describe("a database on a disk that is full", () => {
  test("[ATA11] gives up all of a transaction, says so, and takes the next one", () => {
    expect(() =>
      db.exclusively(() => {
        add("first");
        add(large);
      }),
    ).toThrow(full);
    expect(texts()).toEqual([]);
    db.exclusively(() => add("second"));
    expect(texts()).toEqual(["second"]);
  });

  test("[ATA11] with a part of one goes all that came before it", () => {
    expect(() =>
      db.exclusively(() => {
        add("first");
        db.exclusively(() => add(large));
      }),
    ).toThrow(full);
    expect(texts()).toEqual([]);
  });

  test("[ATA11] what is wrong otherwise is told as it is, and takes back its part alone", () => {
    const wrong = new Error("wrong");
    const part = () =>
      db.exclusively(() => {
        add("part");
        throw wrong;
      });
    db.exclusively(() => {
      add("whole");
      expect(part).toThrow(wrong);
    });
    expect(texts()).toEqual(["whole"]);
  });

  test("[ATA11] one that cannot be made for it says why", () => {
    const steps = ["CREATE TABLE texts (text TEXT)", `INSERT INTO texts VALUES ('${large}')`];
    expect(() => new Database(join(folder.path, "other.db"), pragmas, steps)).toThrow("disk is full");
  });
});
