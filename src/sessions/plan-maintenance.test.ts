import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultConfig } from "../config/load.ts";
import type { TrashedSession } from "../store/contract.ts";
import { explainMaintenance } from "./maintain.ts";
import type { MaintainedSession, MaintenanceInput, MaintenanceRules } from "./plan-maintenance.ts";
import { planMaintenance } from "./plan-maintenance.ts";

const day = 86_400_000;
const now = Date.UTC(2026, 5, 15);
const off: MaintenanceRules = {
  mode: "enforce",
  pruneAfter: null,
  maxSessions: null,
  maxDiskBytes: null,
  highWater: 0.8,
  trashAfter: null,
};

let count = 0;
/** Returns a session that was last used this many days ago. */
function session(daysAgo: number, fields: Partial<MaintainedSession> = {}): MaintainedSession {
  const sessionId = `s${++count}`;
  const key = `agent:main:session:${sessionId}`;
  const { updatedAt = now - daysAgo * day } = fields;
  const times = { updatedAt, activeAt: updatedAt };
  return { uid: sessionId, userId: null, sessionId, key, ...times, archived: false, bytes: 100, ...fields };
}
/** Returns the session as it would appear in the trash. */
function removed(
  { uid, userId, sessionId, key, bytes }: MaintainedSession,
  removedAt: number,
): TrashedSession {
  return { uid, userId, agentId: "main", key, kind: "other", sessionId, label: null, removedAt, bytes };
}
const trash = (daysAgo: number, fields: Partial<MaintainedSession> = {}): TrashedSession =>
  removed(session(daysAgo + 10, fields), now - daysAgo * day);

function input(
  rules: Partial<MaintenanceRules>,
  sessions: readonly MaintainedSession[],
  trashed: readonly TrashedSession[] = [],
  more: Partial<MaintenanceInput> = {},
): MaintenanceInput {
  return { sessions, trashed, rules: { ...off, ...rules }, now, hasOpenRun: () => false, ...more };
}
const plan = (...args: Parameters<typeof input>) =>
  planMaintenance(input(...args)).map(({ sessionId, action, rule }) => `${action} ${sessionId} by ${rule}`);

describe("by time", () => {
  test("[MNT1] after the idle time, a session goes to the trash, from that very moment on", () => {
    const [old, young] = [session(30), session(30, { updatedAt: now - 30 * day + 1 })];
    expect(plan({ pruneAfter: 30 * day }, [young, old])).toEqual([`trash ${old.sessionId} by pruneAfter`]);
    const archived = session(90, { archived: true });
    expect(plan({ pruneAfter: 30 * day }, [archived])).toEqual([`trash ${archived.sessionId} by pruneAfter`]);
  });

  test("[MNT1] after the retention time in the trash, a session is purged", () => {
    const [old, young] = [trash(30), trash(29)];
    expect(plan({ trashAfter: 30 * day }, [], [young, old])).toEqual([
      `purge ${old.sessionId} by trashAfter`,
    ]);
  });

  test("[MNT2] main sessions, the shared session, and sessions with open runs are never touched", () => {
    const busy = session(999);
    const kept = [session(999, { key: "agent:main:main" }), session(999, { key: "global" }), busy];
    const rules = { pruneAfter: day, maxSessions: 1, maxDiskBytes: 1 };
    const hasOpenRun = ({ uid }: MaintainedSession) => uid === busy.uid;
    expect(plan(rules, kept, [], { hasOpenRun })).toEqual([]);
    const others = [
      session(999, { key: "agent:main:main:thread:7" }),
      session(999, { key: "no key at all" }),
    ];
    expect(plan(rules, [...kept, ...others], [], { hasOpenRun })).toHaveLength(2);
  });
});

describe("by number", () => {
  test("the oldest beyond the limit are archived, separately for each user", () => {
    const ann = [session(3), session(1), session(2)].map((each) => ({ ...each, userId: "ann" }));
    const unnamed = [session(9), session(8)];
    expect(plan({ maxSessions: 2 }, [...ann, ...unnamed])).toEqual([
      `archive ${ann[0]?.sessionId} by maxSessions`,
    ]);
  });

  test("archived sessions and those going to the trash do not count; protected ones do", () => {
    const [gone, archived] = [session(40), session(5, { archived: true })];
    const [main, old, young] = [session(20, { key: "agent:main:main" }), session(10), session(1)];
    const all = [gone, archived, main, old, young];
    expect(plan({ maxSessions: 2, pruneAfter: 30 * day }, all)).toEqual([
      `trash ${gone.sessionId} by pruneAfter`,
      `archive ${old.sessionId} by maxSessions`,
    ]);
  });
});

describe("by size", () => {
  const [t1, t2] = [trash(5), trash(3)];
  const [archived, old, young] = [session(2, { archived: true }), session(4), session(1)];
  const all = [young, archived, old];
  const by = (limit: number, highWater = 1) => plan({ maxDiskBytes: limit, highWater }, all, [t2, t1]);

  test("[MNT4] takes the oldest of the trash, then archived sessions, then the others", () => {
    expect(by(500)).toEqual([]);
    expect(by(499)).toEqual([`purge ${t1.sessionId} by maxDiskBytes`]);
    expect(by(200)).toEqual([
      `purge ${t1.sessionId} by maxDiskBytes`,
      `purge ${t2.sessionId} by maxDiskBytes`,
      `trash ${archived.sessionId} by maxDiskBytes`,
    ]);
    expect(by(1).slice(2)).toEqual(
      [archived, old, young].map((each) => `trash ${each.sessionId} by maxDiskBytes`),
    );
  });

  test("[MNT4] stops at the high-water mark", () => {
    expect(by(499, 0.8)).toHaveLength(2);
    expect(by(499, 0.4)).toHaveLength(4);
    expect(by(500, 0.1)).toEqual([]);
  });

  test("[MNT4] counts what other rules remove", () => {
    const rules = { maxDiskBytes: 450, highWater: 1, trashAfter: 4 * day };
    expect(plan(rules, all, [t1, t2])).toEqual([`purge ${t1.sessionId} by trashAfter`]);
    expect(plan({ maxDiskBytes: 250, highWater: 1, pruneAfter: 4 * day }, all, [])).toEqual([
      `trash ${old.sessionId} by pruneAfter`,
    ]);
  });
});

const anySession = fc
  .record({
    userId: fc.constantFrom(null, "ann"),
    key: fc.constantFrom("agent:main:main", "global", "agent:main:cron:x", "agent:a:session:s"),
    activeAt: fc.integer({ min: 0, max: 50 }).map((days) => now - days * day),
    archived: fc.boolean(),
    bytes: fc.integer({ min: 0, max: 100 }),
  })
  .map((each) => ({ ...each, updatedAt: each.activeAt }));
const limit = (max: number) => fc.option(fc.integer({ min: 1, max }), { nil: null });
const anyInput = fc
  .record({
    sessions: fc.array(anySession, { maxLength: 12 }),
    trashed: fc.array(fc.tuple(anySession, fc.integer({ min: 0, max: 50 })), { maxLength: 6 }),
    pruneAfter: limit(40),
    maxSessions: limit(8),
    maxDiskBytes: limit(900),
    highWater: fc.constantFrom(0.1, 0.5, 0.8, 1),
    trashAfter: limit(40),
    busy: fc.nat(15),
  })
  .map(({ sessions, trashed, pruneAfter, trashAfter, busy, ...rules }): MaintenanceInput => {
    const named = (each: Omit<MaintainedSession, "uid" | "sessionId">, uid: string) => ({
      ...each,
      uid,
      sessionId: uid,
    });
    return {
      sessions: sessions.map((each, index) => named(each, `s${index}`)),
      trashed: trashed.map(([each, days], index) => removed(named(each, `t${index}`), now - days * day)),
      rules: {
        ...rules,
        mode: "enforce",
        pruneAfter: pruneAfter === null ? null : pruneAfter * day,
        trashAfter: trashAfter === null ? null : trashAfter * day,
      },
      now,
      hasOpenRun: ({ uid }) => uid === `s${busy}`,
    };
  });

/** Returns the input after a plan has been carried out. */
function carriedOut(before: MaintenanceInput): MaintenanceInput {
  const actions = new Map(planMaintenance(before).map(({ uid, action }) => [uid, action]));
  const is = (action: string) => (each: { uid: string }) => actions.get(each.uid) === action;
  const not = (action: string) => (each: { uid: string }) => actions.get(each.uid) !== action;
  const moved = before.sessions.filter(is("trash")).map((each) => removed(each, before.now));
  return {
    ...before,
    sessions: before.sessions
      .filter(not("trash"))
      .map((each) => (is("archive")(each) ? { ...each, archived: true } : each)),
    trashed: [...before.trashed.filter(not("purge")), ...moved],
  };
}

describe("any plan", () => {
  test("has one decision per session, the same for any order of the input", () => {
    fc.assert(
      fc.property(anyInput, fc.infiniteStream(fc.nat()), (given, numbers) => {
        const decisions = planMaintenance(given);
        expect(new Set(decisions.map(({ uid }) => uid)).size).toBe(decisions.length);
        const shuffled = <T>(list: readonly T[]) =>
          list
            .map((each) => ({ each, at: numbers.next().value }))
            .toSorted((a, b) => a.at - b.at)
            .map(({ each }) => each);
        const other = { ...given, sessions: shuffled(given.sessions), trashed: shuffled(given.trashed) };
        expect(planMaintenance(other)).toEqual(decisions);
      }),
    );
  });

  test("purges only sessions in the trash, and moves only others there", () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        for (const { uid, action, userId, key } of planMaintenance(given)) {
          const home = action === "purge" ? given.trashed : given.sessions;
          expect(home.find((each) => each.uid === uid)).toMatchObject({ userId, key });
        }
      }),
    );
  });

  test("once carried out, leaves nothing to do except emptying the trash; then the limits hold", () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const once = carriedOut(given);
        expect(planMaintenance(once).every(({ action }) => action === "purge")).toBe(true);
        const twice = carriedOut(once);
        expect(planMaintenance(twice)).toEqual([]);
        const { maxDiskBytes } = given.rules;
        const bytes = [...twice.sessions, ...twice.trashed].reduce((sum, each) => sum + each.bytes, 0);
        const isMovable = twice.sessions.some(
          (each) => !/main:main|global/.test(each.key) && !given.hasOpenRun(each),
        );
        if (maxDiskBytes !== null && isMovable) expect(bytes).toBeLessThanOrEqual(maxDiskBytes);
      }),
    );
  });

  test("without a rule there is no decision; the default rules are valid", () => {
    expect(plan({}, [session(9999)], [trash(9999)])).toEqual([]);
    const { maintenance } = defaultConfig("/r").session;
    expect(plan(maintenance, [session(31), session(29)], [trash(31), trash(29)])).toHaveLength(2);
  });
});

describe("reasons", () => {
  const why = (...args: Parameters<typeof input>) => planMaintenance(input(...args)).map((each) => each.why);

  test("[MXP1] each decision has its numbers", () => {
    const rules = { pruneAfter: 30 * day, trashAfter: 10 * day };
    expect(why(rules, [session(45)], [trash(12)])).toEqual([
      "In the trash for 12 days; it is kept for 10 days.",
      "No activity for 45 days; sessions are kept for 30 days.",
    ]);
    expect(why({ maxSessions: 1 }, [session(2), session(1)])).toEqual([
      "This user has 2 sessions; the maximum is 1, so the oldest are archived.",
    ]);
    const large = { bytes: 3_200_000 };
    const sizes = why({ maxDiskBytes: 5_000_000 }, [session(2, large), session(1, large)], [trash(1, large)]);
    expect(sizes).toEqual([
      "9.6 MB of 5 MB is used; purging the oldest session in the trash frees 3.2 MB.",
      "9.6 MB of 5 MB is used; the oldest session moves to the trash, and its 3.2 MB will be freed only when it is purged from there.",
    ]);
  });

  test("[MXP1] any session can be explained", () => {
    const [mine, main] = [session(18), session(99, { key: "agent:main:main" })];
    const gone = trash(3);
    const given = input(
      { mode: "warn", pruneAfter: 30 * day, maxSessions: 5000, maxDiskBytes: 1e10, trashAfter: 30 * day },
      [mine, main, session(1)],
      [gone],
    );
    expect(explainMaintenance(mine, given).split("\n")).toEqual([
      "now: nothing",
      "pruneAfter: would be moved to the trash in 12 days (no activity for 18 days; the limit is 30 days)",
      "maxSessions: not reached: this user has 3 sessions; the maximum is 5,000; 1 session newer than this one",
      "maxDiskBytes: not reached: 400 bytes of 10 GB is used, 100 bytes by this session",
      "trashAfter: it is not in the trash",
    ]);
    expect(explainMaintenance(main, given)).toContain(
      "pruneAfter: does not apply: it is an agent's main session",
    );
    expect(explainMaintenance(gone, given)).toContain(
      "trashAfter: would be purged in 27 days (in the trash for 3 days; the limit is 30 days)",
    );
    const due = explainMaintenance(mine, { ...given, now: now + 12 * day });
    expect(due).toContain(
      "now: trash (mode is warn: it is only reported, not carried out), because of pruneAfter: No activity for 30 days",
    );
    expect(explainMaintenance(mine, input({}, [mine])).match(/no limit is set/g)).toHaveLength(3);
  });

  test("[MXP1] an announced action happens at the stated time, not before", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 60 * day }),
        fc.integer({ min: day, max: 60 * day }),
        (idle, pruneAfter) => {
          const mine = session(0, { updatedAt: now - idle });
          const at = (moment: number) =>
            planMaintenance(input({ pruneAfter }, [mine], [], { now: moment })).length;
          const isDue = explainMaintenance(mine, input({ pruneAfter }, [mine])).includes(
            "pruneAfter: applies",
          );
          expect(at(now)).toBe(isDue ? 1 : 0);
          expect([at(mine.updatedAt + pruneAfter - 1), at(mine.updatedAt + pruneAfter)]).toEqual([0, 1]);
        },
      ),
    );
  });
});
