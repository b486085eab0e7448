import { describe, expect, test } from "vitest";
import type { ServerContext } from "./context.ts";
import { retryRateLimited } from "./context.ts";
import { modeOf } from "./permission-requests.ts";
import { listSessions, patchOf } from "./session-info.ts";

const pages: readonly (readonly object[])[] = [
  [{ key: "b", cwd: "/other", updatedAt: 0, label: "the b" }],
  [
    { key: "a", cwd: "/w", updatedAt: 0, displayName: "A", label: "the a" },
    { key: "child", cwd: "/w", spawnedBy: "a", updatedAt: 0 },
  ],
  [
    { key: "c", cwd: "/w/", updatedAt: 0, summary: "how\nit began" },
    { key: "d", updatedAt: 0, summary: "x".repeat(200) },
  ],
];

interface Asked {
  readonly cursor?: string;
  readonly limit?: number;
  readonly includeDetails?: boolean;
}

const never = new AbortController().signal;

/** Returns the pages above, one per call. `refuse` can throw instead. */
function listing(refuse: (call: number) => void = () => undefined) {
  const asked: (readonly [string, Asked])[] = [];
  const call = async (method: string, params: Asked) => {
    asked.push([method, params]);
    refuse(asked.length);
    const at = Number(params.cursor ?? 0);
    const nextCursor = at + 1 < pages.length ? String(at + 1) : undefined;
    return { sessions: pages[at], ...(nextCursor === undefined ? {} : { nextCursor }) };
  };
  const parts = { calls: { call }, scope: {}, cwd: "/here" } as unknown as ServerContext;
  return { asked, parts: retryRateLimited(parts) }; // as passed on by an agent
}

describe("the session list of an editor", () => {
  test("[AAG4] continues after each page, and skips spawned sessions", async () => {
    const { parts } = listing();
    const first = await listSessions(parts, { cwd: null, cursor: null }, never);
    expect(first).toMatchObject({ sessions: [{ sessionId: "b", title: "the b" }], nextCursor: "1" });
    const second = await listSessions(parts, { cwd: null, cursor: "1" }, never);
    expect(second).toMatchObject({ sessions: [{ sessionId: "a", title: "A" }], nextCursor: "2" });
    const third = await listSessions(parts, { cwd: null, cursor: "2" }, never);
    expect(third.nextCursor).toBeNull();
    expect(third.sessions).toMatchObject([
      { title: "how it began", updatedAt: "1970-01-01T00:00:00.000Z" },
      { sessionId: "d", cwd: "/here" },
    ]);
    expect(third.sessions[1]?.title?.length).toBeLessThanOrEqual(81);
  });

  test("[AAG4] of one folder skips pages without matches; an unknown folder matches no other", async () => {
    const { parts } = listing();
    const first = await listSessions(parts, { cwd: "/w", cursor: null }, never);
    expect(first).toMatchObject({ sessions: [{ sessionId: "a" }], nextCursor: "2" });
    const second = await listSessions(parts, { cwd: "/w", cursor: "2" }, never);
    expect(second.sessions.map(({ sessionId, cwd }) => [sessionId, cwd])).toEqual([
      ["c", "/w/"],
      ["d", "/w"],
    ]);
  });

  test("makes one call per page, and uses larger pages when a page has no matches", async () => {
    const { asked, parts } = listing();
    await listSessions(parts, { cwd: "/w", cursor: null }, never);
    expect(asked).toMatchObject([
      ["sessions.list", { limit: 50, includeDetails: true }],
      ["sessions.list", { limit: 1000, includeDetails: true, cursor: "1" }],
    ]);
  });

  test("is retried when the gateway is busy; any other refusal fails", async () => {
    const limited = Object.assign(new Error("too many"), { code: "rate_limited", retryAfterMs: 1 });
    const busy = listing((call) => {
      if (call < 3) throw limited;
    });
    const { sessions } = await listSessions(busy.parts, { cwd: null, cursor: null }, never);
    expect([sessions.length, busy.asked.length]).toEqual([1, 3]);
    const refused = listing(() => {
      throw Object.assign(new Error("no"), { code: "forbidden" });
    });
    await expect(listSessions(refused.parts, { cwd: null, cursor: null }, never)).rejects.toThrow("no");
    expect(refused.asked).toHaveLength(1);
  });

  test("ends with its request, between pages and while waiting", async () => {
    const between = new AbortController();
    const going = listing(() => between.abort(new Error("gone")));
    await expect(listSessions(going.parts, { cwd: "/w", cursor: null }, between.signal)).rejects.toThrow(
      "gone",
    );
    expect(going.asked).toHaveLength(1);
    const waiting = new AbortController();
    const limited = Object.assign(new Error("too many"), { code: "rate_limited", retryAfterMs: 600_000 });
    const held = listing(() => {
      setImmediate(() => waiting.abort());
      throw limited;
    });
    await expect(listSessions(held.parts, { cwd: null, cursor: null }, waiting.signal)).rejects.toMatchObject(
      {
        name: "AbortError",
      },
    );
  });
});

describe("modes and options", () => {
  test("[AJN4] there are three modes", () => {
    expect(modeOf("deny")).toBe("deny");
    expect(() => modeOf("yolo")).toThrow(/no mode "yolo"/);
  });

  test.each([
    ["model", "a/b", { model: "a/b" }],
    ["model", "default", { model: null }],
    ["thought_level", "high", { thinkingLevel: "high" }],
    ["thought_level", "default", { thinkingLevel: null }],
  ])("[AAG11] %s %s", (id, value, patch) => {
    expect(patchOf(id, value)).toEqual(patch);
  });

  test.each([
    ["thought_level", "huge", /no thinking level "huge"/],
    ["colour", "red", /no option "colour"/],
    ["model", true, /does not accept a value of type boolean/],
  ])("[AAG11] %s %s is refused", (id, value, problem) => {
    expect(() => patchOf(id, value)).toThrow(problem);
  });
});
