import { describe, expect, test } from "vitest";
import type { AcpParts } from "./contract.ts";
import { listSessions } from "./listing.ts";

const details: Readonly<Record<string, object>> = {
  a: { key: "a", cwd: "/w", updatedAt: 0, displayName: "A", label: "the a" },
  b: { key: "b", cwd: "/other", updatedAt: 0, label: "the b" },
  c: { key: "c", cwd: "/w/", updatedAt: 0, summary: "how\nit began" },
  d: { key: "d", updatedAt: 0, summary: "x".repeat(200) },
};
const pages: readonly (readonly object[])[] = [
  [{ key: "b" }, { key: "gone" }],
  [{ key: "a" }, { key: "child", spawnedBy: "a" }],
  [{ key: "c" }, { key: "d" }],
];

const call = async (method: string, { cursor = "0", key = "" }: { cursor?: string; key?: string }) => {
  if (method === "sessions.list") {
    const next = Number(cursor) + 1;
    return { sessions: pages[Number(cursor)], ...(next < pages.length ? { nextCursor: String(next) } : {}) };
  }
  const found = details[key];
  if (found === undefined) throw Object.assign(new Error("gone"), { code: "not_found" });
  return found;
};
const parts = { calls: { call }, whose: {}, cwd: "/here" } as unknown as AcpParts;

describe("the list of an editor", () => {
  test("[AAG4] goes on behind each page, and passes by what is gone or was spawned", async () => {
    const first = await listSessions(parts, { cwd: null, cursor: null });
    expect(first).toMatchObject({ sessions: [{ sessionId: "b", title: "the b" }], nextCursor: "1" });
    const second = await listSessions(parts, { cwd: null, cursor: "1" });
    expect(second).toMatchObject({ sessions: [{ sessionId: "a", title: "A" }], nextCursor: "2" });
    const third = await listSessions(parts, { cwd: null, cursor: "2" });
    expect(third.nextCursor).toBeNull();
    expect(third.sessions).toMatchObject([
      { title: "how it began", updatedAt: "1970-01-01T00:00:00.000Z" },
      { sessionId: "d", cwd: "/here" },
    ]);
    expect(third.sessions[1]?.title?.length).toBeLessThanOrEqual(81);
  });

  test("[AAG4] of one folder passes by pages that have nothing of it; a place that is not told is no other", async () => {
    const first = await listSessions(parts, { cwd: "/w", cursor: null });
    expect(first).toMatchObject({ sessions: [{ sessionId: "a" }], nextCursor: "2" });
    const second = await listSessions(parts, { cwd: "/w", cursor: "2" });
    expect(second.sessions.map(({ sessionId, cwd }) => [sessionId, cwd])).toEqual([
      ["c", "/w/"],
      ["d", "/w"],
    ]);
  });
});
