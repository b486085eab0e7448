import { describe, expect, test } from "vitest";
import type { LookUp, ProcessInfo } from "./stop-requests.ts";
import { findNpmParents, isOrphaned } from "./stop-requests.ts";

const npm = { npm_lifecycle_event: "start" };

/** Processes by PID, with their parents and commands. */
function table(rows: Record<number, readonly [parent: number, command: string, started?: string]>): LookUp {
  return (pid) => {
    const row = rows[pid];
    if (row === undefined) return null;
    const seen: ProcessInfo = { pid, parent: row[0], command: row[1], started: row[2] ?? `t${pid}` };
    return seen;
  };
}

const pids = (line: readonly ProcessInfo[] | null) => line?.map(({ pid }) => pid) ?? null;

describe("the process that started the gateway", () => {
  test.each([
    ["npm start\0\0", true],
    ["npm run skein\0", true],
    ["node\0/usr/lib/node_modules/npm/bin/npm-cli.js\0start\0", true],
    ["/usr/bin/node\0/usr/bin/npm\0start\0", true],
    ["pnpm start\0", true],
    ["bash\0", false],
    ["node\0/home/npm-lover/x.js\0", false],
    ["node\0/srv/npmish/server.js\0", false],
  ])("[GST6] %j is npm: %s", (command, isNpm) => {
    expect(pids(findNpmParents(npm, 7, table({ 7: [1, command] })))).toEqual(isNpm ? [7] : null);
  });

  test("[GST6] is found up to npm, past the shells in between", () => {
    const all = table({ 9: [8, "sh\0-c\0node x"], 8: [5, "npm start\0"], 5: [1, "bash\0"] });
    expect(pids(findNpmParents(npm, 9, all))).toEqual([9, 8]);
    expect(findNpmParents({}, 9, all)).toBe(null);
    expect(findNpmParents({ npm_lifecycle_event: "" }, 9, all)).toBe(null);
  });

  test("[GST6] without npm among the ancestors, the end of another process does not matter", () => {
    expect(findNpmParents(npm, 1, table({ 1: [0, "systemd\0"] }))).toBe(null);
    expect(findNpmParents(npm, 5, table({ 5: [1, "bash\0"], 1: [0, "init\0"] }))).toBe(null);
  });

  test("[GST6] if no process can be looked up, only the parent counts", () => {
    const line = findNpmParents(npm, 40, () => null);
    expect(pids(line)).toEqual([40]);
    expect(isOrphaned(line ?? [], 40, () => null)).toBe(false);
    expect(isOrphaned(line ?? [], 1, () => null)).toBe(true);
  });

  const before = { 9: [8, "sh\0"], 8: [5, "npm start\0"], 5: [1, "bash\0"] } as const;
  test.each([
    ["unchanged", 9, before, false],
    ["npm changed its process title", 9, { ...before, 8: [5, "npm\0"] }, false],
    ["its parent changed", 1, before, true],
    ["the shell between is gone", 9, { 8: before[8] }, true],
    ["npm is gone", 9, { 9: before[9] }, true],
    ["npm's pid was reused", 9, { ...before, 8: [5, "npm start\0", "later"] }, true],
    ["the shell that called npm is gone", 9, { ...before, 8: [1, "npm start\0"] }, true],
  ] as const)("[GST6] %s", (_, parent, now, isAlone) => {
    const line = findNpmParents(npm, 9, table(before));
    expect(isOrphaned(line ?? [], parent, table(now))).toBe(isAlone);
  });
});
