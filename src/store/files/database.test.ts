import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { TemporaryFolder } from "../../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { Database } from "./database.ts";

/** Simulates a full disk by limiting the file to a few pages. */
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
  message: expect.stringMatching(
    /work\.db could not be written: the disk is full\. Free up space on this file's disk/,
  ),
});

describe("a database on a full disk", () => {
  test("[ATF20] rolls back the whole transaction, reports it, and accepts the next one", () => {
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

  test("[ATF20] a failed part also rolls back everything before it", () => {
    expect(() =>
      db.exclusively(() => {
        add("first");
        db.exclusively(() => add(large));
      }),
    ).toThrow(full);
    expect(texts()).toEqual([]);
  });

  test("[ATF20] any other error is reported unchanged, and rolls back only its own part", () => {
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

  test("[ATF20] reports why it cannot be created", () => {
    const steps = ["CREATE TABLE texts (text TEXT)", `INSERT INTO texts VALUES ('${large}')`];
    expect(() => new Database(join(folder.path, "other.db"), pragmas, steps)).toThrow("disk is full");
  });
});

/**
 * Starts writing to a new file, signals that it has started, and stops shortly after the test thread begins to open the
 * file.
 */
const writer = `
  const { DatabaseSync } = require("node:sqlite");
  const { parentPort, workerData } = require("node:worker_threads");
  const db = new DatabaseSync(workerData.path);
  db.exec("BEGIN IMMEDIATE; CREATE TABLE others (text TEXT)");
  parentPort.postMessage("writing");
  Atomics.wait(workerData.opening, 0, 0);
  Atomics.wait(workerData.opening, 0, 1, 100);
  db.exec("COMMIT");
  db.close();
`;

describe("a database that another connection is writing to", () => {
  test("opens a new file as soon as the other one has finished", async () => {
    const path = join(folder.path, "new.db");
    const opening = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(writer, { eval: true, workerData: { path, opening } });
    await once(worker, "message");
    const ended = once(worker, "exit");
    Atomics.store(opening, 0, 1);
    Atomics.notify(opening, 0);
    const opened = new Database(path, pragmas, ["CREATE TABLE texts (text TEXT)"]);
    expect(opened.sql("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    opened.close();
    expect(await ended).toEqual([0]);
  });
});

describe("a database that another program has locked", () => {
  test("[ATF4] is not opened, after one wait and not after hundreds", () => {
    const path = join(folder.path, "locked.db");
    const other = new DatabaseSync(path);
    other.exec("PRAGMA journal_mode = WAL; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    const exec = vi.spyOn(DatabaseSync.prototype, "exec");
    try {
      expect(() => new Database(path, pragmas, [], { waitMs: 50 })).toThrow(/is keeping locked\.db locked/);
      // SQLite also waits within each attempt.
      expect(exec.mock.calls.length).toBeLessThan(3);
    } finally {
      exec.mockRestore();
      other.close();
    }
  });
});
