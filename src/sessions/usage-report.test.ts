import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistantMessage, header, userLine } from "../../test/support/session-text.ts";
import { answered, said } from "../conformance/expect.ts";
import { parseSession } from "../core/parse-session.ts";
import { SessionTree } from "../core/tree.ts";
import type { Scope, SessionQuery, SessionStore } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { spentIn, UsageSums } from "./usage-figures.ts";
import { UsageReports } from "./usage-report.ts";

interface Answer {
  readonly time: string;
  readonly model?: string;
  readonly tokens?: number;
  readonly cost?: number;
  readonly fields?: object;
}

const spender = { userId: null, agentId: "main", key: "agent:main:main" };

function answers(...list: readonly Answer[]): SessionTree {
  const lines: object[] = [header, userLine("u", null)];
  for (const [index, { time, model = "m", tokens = 10, cost = 0.5, fields }] of list.entries()) {
    const usage = { input: tokens - 2, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: tokens };
    const message = { ...assistantMessage("Hi."), model, usage: { ...usage, cost: { total: cost } } };
    const parentId = index === 0 ? "u" : `a${index - 1}`;
    lines.push({ type: "message", id: `a${index}`, parentId, timestamp: time, message, ...fields });
  }
  return SessionTree.from(parseSession(Buffer.from(lines.map((line) => JSON.stringify(line)).join("\n"))));
}

const day = 86_400_000;
const begun = Date.parse(header.timestamp);

describe("usage", () => {
  test("by day in a time zone, by model and by agent, sorted by day and then by size", () => {
    const spent = spentIn(
      answers(
        { time: "2026-03-01T14:59:00.000Z", cost: 0.5 },
        { time: "2026-03-01T15:01:00.000Z", cost: 1 },
        { time: "2026-03-01T15:02:00.000Z", cost: 2, model: "big" },
      ).entries(),
      0,
    );
    const grouped = (by: ConstructorParameters<typeof UsageSums>[0], timeZone: string) => {
      const sums = new UsageSums(by, timeZone);
      for (const each of spent) sums.add(each, spender);
      return { rows: sums.rows(), total: sums.total };
    };
    expect(grouped(["day"], "Asia/Tokyo").rows).toMatchObject([
      { day: "2026-03-01", answers: 1, costUsd: 0.5, input: 8, output: 2 },
      { day: "2026-03-02", answers: 2, costUsd: 3 },
    ]);
    expect(grouped(["day"], "UTC").rows).toMatchObject([{ day: "2026-03-01", answers: 3 }]);
    expect(grouped(["model", "agent"], "UTC").rows).toMatchObject([
      { model: "anthropic/big", agentId: "main", costUsd: 2 },
      { model: "anthropic/m", agentId: "main", costUsd: 1.5 },
    ]);
    expect(grouped([], "UTC")).toMatchObject({
      rows: [],
      total: { answers: 3, totalTokens: 30, costUsd: 3.5 },
    });
    expect(() => new UsageSums(["day"], "Mars/Olympus")).toThrow(/not a valid time zone/);
  });

  test("excludes copies and content inherited by a fork, and lists usage without a price separately", () => {
    const tree = answers(
      { time: "2026-03-01T10:00:00.000Z" },
      { time: "2026-03-01T12:00:00.000Z" },
      { time: "2026-03-01T12:01:00.000Z", fields: { skein: { copyOf: "a1" } } },
    );
    const spent = spentIn(tree.entries(), Date.parse("2026-03-01T11:00:00.000Z"));
    expect(spent).toMatchObject([{ answers: 1, totalTokens: 10, unpricedTokens: 0 }]);
    const unpriced = {
      ...{ type: "message", id: "x", parentId: null, timestamp: "2026-03-01T12:00:00.000Z" },
      message: { ...assistantMessage("Hi."), provider: "", skein: { costKnown: false } },
    };
    expect(spentIn([unpriced as never], 0)).toMatchObject([
      { model: null, costUsd: 0, totalTokens: 2, unpricedTokens: 2 },
    ]);
  });

  test("rows add up to the total for any grouping", () => {
    const answer = fc.record({
      time: fc.integer({ min: begun, max: begun + 5 * day }).map((time) => new Date(time).toISOString()),
      model: fc.constantFrom("a", "b"),
      tokens: fc.integer({ min: 2, max: 1000 }),
      cost: fc.constantFrom(0, 0.25, 1),
    });
    const by = fc.subarray(["day", "model", "agent"] as const, { minLength: 1 });
    const zone = fc.constantFrom("UTC", "Asia/Kathmandu", "America/New_York", "Pacific/Chatham");
    fc.assert(
      fc.property(fc.array(answer, { maxLength: 12 }), by, zone, (list, groups, timeZone) => {
        const sums = new UsageSums(groups, timeZone);
        for (const each of spentIn(answers(...list).entries(), 0)) sums.add(each, spender);
        const rows = sums.rows();
        const sum = (field: "answers" | "totalTokens" | "costUsd") =>
          rows.reduce((total, row) => total + row[field], 0);
        expect([sum("answers"), sum("totalTokens"), sum("costUsd")]).toEqual([
          list.length,
          list.reduce((total, { tokens }) => total + tokens, 0),
          list.reduce((total, { cost }) => total + cost, 0),
        ]);
        expect(sums.total.answers).toBe(list.length);
      }),
    );
  });
});

describe("usage reports", () => {
  const now = begun + 10 * day;
  const adopt = async (count: number) => {
    const { sessions } = createMemoryStore();
    for (let index = 0; index < count; index++) {
      const tree = answers({ time: new Date(begun + index * day).toISOString() });
      await sessions.adopt(
        {},
        { key: `agent:main:session:s${index}`, sessionId: `s${index}`, cwd: "/" },
        tree,
      );
    }
    return sessions;
  };

  const listIn =
    (sessions: SessionStore, scope: Scope = {}) =>
    (query: SessionQuery) =>
      sessions.list(scope, query);

  test("cover sessions active in the range, or one session; archived ones count", async () => {
    const sessions = await adopt(4);
    await sessions.patch({}, "s3", { archived: true });
    const reports = new UsageReports(sessions);
    const by = ["day"] as const;
    const all = await reports.report(listIn(sessions), { by, since: 0, timeZone: "UTC" }, now);
    expect(all.rows.map((row) => row.day)).toEqual(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]);
    const some = await reports.report(
      listIn(sessions),
      { by, since: begun + day, until: begun + 2 * day },
      now,
    );
    expect(some.total.answers).toBe(1);
    expect([some.since, some.until]).toEqual([begun + day, begun + 2 * day]);
    expect((await reports.report(listIn(sessions), { by }, begun + 40 * day)).total.answers).toBe(0);
    const [session] = (await sessions.list({}, { label: undefined, text: "s1" } as never)).sessions;
    if (session === undefined) throw new Error("not listed");
    expect((await reports.report(listIn(sessions), { by, since: 0, session }, now)).total.answers).toBe(1);
    await expect(
      reports.report(listIn(sessions), { by, since: 9 * day, until: day }, now),
    ).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    expect(
      (await reports.report(listIn(sessions, { userId: "ann" }), { by, since: 0 }, now)).total.answers,
    ).toBe(0);
  });

  test("read a limited amount, the newest first, and the next report continues", async () => {
    const sessions = await adopt(5);
    let pages = 0;
    const counting = new Proxy(sessions, {
      get: (target, name) => {
        if (name === "page") pages += 1;
        const value = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const reports = new UsageReports(counting, { sessions: 2 });
    const report = async () => {
      const { total, indexing } = await reports.report(listIn(sessions), { by: [], since: 0 }, now);
      return { answers: total.answers, behind: indexing?.behind ?? 0, pages };
    };
    expect(await report()).toEqual({ answers: 2, behind: 3, pages: 2 });
    expect(await report()).toEqual({ answers: 4, behind: 1, pages: 4 });
    expect(await report()).toEqual({ answers: 5, behind: 0, pages: 5 });
    expect(await report()).toEqual({ answers: 5, behind: 0, pages: 5 });
    await sessions.append({}, "s0", [{ draft: said("more") }, { draft: answered("Yes.") }]);
    expect(await report()).toMatchObject({ behind: 0, pages: 6 });
  });

  test("a session above the limit is read if it is the first, and memory is bounded", async () => {
    const sessions = await adopt(3);
    const small = new UsageReports(sessions, { bytes: 1, remembered: 1 });
    for (let turn = 0; turn < 2; turn++) {
      const { total, indexing } = await small.report(listIn(sessions), { by: [], since: 0 }, now);
      expect([total.answers, indexing?.behind]).toEqual([1, 2]);
    }
  });
});
