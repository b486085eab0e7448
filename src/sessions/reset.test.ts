import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ResetRule, ResetRules } from "./reset.ts";
import { decideReset, lastDayBreak } from "./reset.ts";

const none: ResetRule = { mode: "none", atHour: 4, minutes: 60 };
const idle = (minutes: number): ResetRule => ({ mode: "idle", atHour: 4, minutes });
const daily = (atHour: number): ResetRule => ({ mode: "daily", atHour, minutes: 60 });
const only = (rule: ResetRule): ResetRules => ({ ...rule, byKind: {}, byChannel: {} });

const minute = 60_000;
const hour = 60 * minute;
const noon = Date.UTC(2026, 5, 15, 12);
const ask = (rules: ResetRules, lastInputAt: number | null, now = noon, timeZone = "UTC") =>
  decideReset({ rules, kind: "other", channel: null, lastInputAt, now, timeZone });

describe("the applicable rule", () => {
  const rules: ResetRules = {
    ...none,
    byKind: { group: idle(10), cron: none },
    byChannel: { slack: idle(5), quiet: none },
  };

  test.each([
    ["main", null, "general", false],
    ["group", null, "kind", true],
    ["group", "irc", "kind", true],
    ["group", "quiet", "channel", false],
    ["main", "slack", "channel", true],
    ["main", "constructor", "general", false],
  ] as const)("[RST1] kind %s on channel %s is decided by the rule: %s", (kind, channel, rule, reset) => {
    const question = { rules, kind, channel, lastInputAt: noon - hour, now: noon };
    expect(decideReset(question)).toMatchObject({ rule, reset });
  });

  test("[RST1] the decision has a reason", () => {
    expect(ask(only(idle(30)), noon - 45 * minute).why).toBe(
      "The idle limit is 30 minutes, and the last input was 45 minutes ago (rule for all sessions).",
    );
    expect(ask(only(daily(4)), noon - 9 * hour).why).toBe(
      "The day began at 04:00, 8 hours ago, and the last input was 9 hours ago (rule for all sessions).",
    );
    expect(ask(only(none), noon).why).toBe("Sessions are never reset (rule for all sessions).");
    const onSlack = decideReset({ rules, kind: "group", channel: "slack", lastInputAt: null, now: noon });
    expect(onSlack.why).toBe("There has been no input yet (rule for channel slack).");
    expect(decideReset({ rules, kind: "cron", channel: null, lastInputAt: 0, now: noon }).why).toContain(
      "kind cron",
    );
  });

  test("[RST2] idle: from exactly the configured minutes on", () => {
    const rules = only(idle(30));
    expect(ask(rules, noon - 30 * minute).reset).toBe(true);
    expect(ask(rules, noon - 30 * minute + 1).reset).toBe(false);
    expect(ask(rules, noon + hour).reset).toBe(false);
  });

  test.each([none, idle(1), daily(4)])("[RST4] without a setting it never resets: %j", (rule) => {
    expect(ask(only(rule), null).reset).toBe(false);
  });
});

describe("daily", () => {
  const at = (text: string) => Date.parse(text);

  test.each([
    ["the same day", "UTC", "2026-06-15T05:00Z", "2026-06-15T23:00Z", false],
    ["the day before", "UTC", "2026-06-15T03:59:59.999Z", "2026-06-15T04:00Z", true],
    ["before the hour of today", "UTC", "2026-06-14T05:00Z", "2026-06-15T03:59:59.999Z", false],
    ["input at exactly that time", "UTC", "2026-06-15T04:00Z", "2026-06-15T09:00Z", false],
    ["another time zone", "America/New_York", "2026-06-15T07:59Z", "2026-06-15T08:00Z", true],
    ["a week ago", "Asia/Kolkata", "2026-06-08T12:00Z", "2026-06-15T12:00Z", true],
  ])("[RST2] %s", (_, zone, last, now, reset) => {
    expect(ask(only(daily(4)), at(last), at(now), zone).reset).toBe(reset);
  });

  // The clock skips the hour, shows it twice, or goes back across midnight.
  test.each([
    ["a day of 23 hours", "Europe/Berlin", 4, "2026-03-29T10:00Z", "2026-03-29T02:00Z"],
    ["the hour is skipped", "Europe/Berlin", 2, "2026-03-29T10:00Z", "2026-03-29T01:00Z"],
    [
      "the hour is skipped, a moment before",
      "Europe/Berlin",
      2,
      "2026-03-29T00:59:59.999Z",
      "2026-03-28T01:00Z",
    ],
    ["the hour occurs twice: the first", "Europe/Berlin", 2, "2026-10-25T10:00Z", "2026-10-25T00:00Z"],
    ["the hour occurs twice: still the first", "Europe/Berlin", 2, "2026-10-25T01:30Z", "2026-10-25T00:00Z"],
    ["a day of 25 hours", "Europe/Berlin", 4, "2026-10-25T10:00Z", "2026-10-25T03:00Z"],
    ["midnight is skipped", "Africa/Cairo", 0, "2026-04-24T10:00Z", "2026-04-23T22:00Z"],
    ["half an hour", "Australia/Lord_Howe", 2, "2026-10-04T10:00Z", "2026-10-03T15:30Z"],
    ["a whole day is skipped", "Pacific/Apia", 4, "2011-12-30T12:00Z", "2011-12-30T10:00Z"],
    ["back over midnight", "America/St_Johns", 0, "2010-11-07T03:00Z", "2010-11-07T02:30Z"],
  ])("[RST2] %s", (_, zone, hourOfDay, now, expected) => {
    expect(new Date(lastDayBreak(at(now), hourOfDay, zone)).toISOString()).toBe(
      new Date(expected).toISOString(),
    );
  });

  test("[RST2] agrees with looking at the clock every minute", () => {
    const zones = [
      "Europe/Berlin",
      "America/New_York",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
      "America/Havana",
    ];
    const moment = fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2028, 0) });
    const nearShift = fc
      .tuple(
        fc.constantFrom(Date.UTC(2026, 2, 29), Date.UTC(2026, 9, 25), Date.UTC(2026, 2, 8)),
        fc.integer({ min: -30, max: 60 }),
      )
      .map(([day, hours]) => day + hours * hour + 90_000);
    fc.assert(
      fc.property(fc.constantFrom(...zones), fc.nat(23), fc.oneof(moment, nearShift), (zone, atHour, now) => {
        expect(lastDayBreak(now, atHour, zone)).toBe(byLooking(now, atHour, zone));
      }),
      { numRuns: 40 },
    );
  });

  test("[RST2] uses this machine's time zone by default", () => {
    const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
    expect(lastDayBreak(noon, 4)).toBe(lastDayBreak(noon, 4, timeZone));
  });

  /** Returns the last minute up to now at which a date's hour began for the first time. */
  function byLooking(now: number, atHour: number, timeZone: string): number {
    const clock = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" });
    const wanted = String(atHour).padStart(2, "0");
    const begun = new Set<string>();
    let found = 0;
    const last = Math.floor(now / minute) * minute;
    for (let each = last - 60 * 60 * minute; each <= last; each += minute) {
      const [date = "", time = ""] = clock.format(each).split(" ");
      if (time < `${wanted}:00` || begun.has(date)) continue;
      begun.add(date);
      found = each;
    }
    return found;
  }
});
