import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { openBooks } from "../../test/support/token-books.ts";
import { claimRunning, findRunning, runningPath } from "./running-file.ts";

const top = mkdtempSync(join(tmpdir(), "skein-running-"));
afterAll(() => rmSync(top, { recursive: true, force: true }));
const url = "http://127.0.0.1:18790";
const start = 1_700_000_000_000;
let root: string;
let now: number;
beforeEach(() => {
  root = mkdtempSync(join(top, "root-"));
  now = start;
});
const clock = { now: () => now };
const db = openBooks();
const claim = () => claimRunning(root, { url, clock, exclusively: (act) => db.exclusively(act) });
const rewrite = (change: object) => {
  const written = JSON.parse(readFileSync(runningPath(root), "utf8")) as object;
  writeFileSync(runningPath(root), JSON.stringify({ ...written, ...change }));
};

describe("gateway.json", () => {
  test("[GST2] names the running gateway, private to its owner, until it stops", () => {
    expect(findRunning(root, clock)).toBe(null);
    const first = claim();
    const running = { pid: process.pid, url, startedAt: start, isElsewhere: false };
    expect(findRunning(root, clock)).toEqual(running);
    expect(statSync(runningPath(root)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(runningPath(root), "utf8"))).toMatchObject({
      pid: process.pid,
      url,
      startedAt: start,
    });
    expect(claim()).toEqual({ isMine: false, running });
    if (first.isMine) first.mine.release();
    expect(findRunning(root, clock)).toBe(null);
    expect(readdirSync(root)).toEqual([]);
    expect(claim().isMine).toBe(true);
  });

  test.each([
    ["a reused pid", { started: "1" }],
    ["an earlier boot", { bootId: "another" }],
    ["an unused pid", { pid: 2 ** 30 }],
  ])("[GST2] %s is not mistaken for it, and the next start wins", (_, change) => {
    const old = claim();
    rewrite(change);
    expect(findRunning(root, clock)).toBe(null);
    const next = claim();
    expect(next.isMine).toBe(true);
    expect(claim().isMine).toBe(false);
    // The old process does not change or remove a file that it no longer owns.
    if (!old.isMine) throw new Error("the first start lost");
    expect(old.mine.beat()).toBe(false);
    old.mine.release();
    expect(findRunning(root, clock)).not.toBe(null);
  });

  test("[GST2] of another machine counts as long as its file is touched", () => {
    const mine = claim();
    rewrite({ host: "another machine" });
    if (!mine.isMine) throw new Error("the first start lost");
    expect(mine.mine.beat()).toBe(true);
    expect(findRunning(root, clock)).toMatchObject({ isElsewhere: true });
    expect(claim().isMine).toBe(false);
    now += 90_001;
    expect(findRunning(root, clock)).toBe(null);
    utimesSync(runningPath(root), now / 1000, now / 1000);
    expect(findRunning(root, clock)).not.toBe(null);
  });

  test.each(["", "{", "null", "[]", '{"pid":1}', "x".repeat(100_000)])(
    "[GST2] %.20j is not a gateway",
    (text) => {
      writeFileSync(runningPath(root), text, { mode: 0o600 });
      expect(findRunning(root, clock)).toBe(null);
      expect(claim().isMine).toBe(true);
    },
  );

  test.each([
    { url: "file:///etc/passwd" },
    { url: 7 },
    { pid: -1 },
    { pid: "1" },
    { nonce: null },
    { startedAt: "x" },
  ])("[GST2] is invalid with %j", (change) => {
    claim();
    rewrite(change);
    expect(findRunning(root, clock)).toBe(null);
  });

  test("[GST2] a file that another user could have written is ignored", () => {
    claim();
    chmodSync(runningPath(root), 0o622);
    expect(findRunning(root, clock)).toBe(null);
  });
});
