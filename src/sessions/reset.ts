import type { Config } from "../config/sections/all.ts";
import type { SessionKind } from "../core/keys.ts";
import { parseKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { formatCount, formatDuration } from "../core/text.ts";
import type { Claim } from "../runs/contract.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import { isRealInput } from "../store/digest.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";
import { contextOfSession } from "./runtime-context.ts";

export type ResetRules = Config["session"]["reset"];
export type ResetRule = Omit<ResetRules, "byKind" | "byChannel">;

interface ResetQuestion {
  readonly rules: ResetRules;
  readonly kind: SessionKind;
  /** `null` if the session has no channel. */
  readonly channel: string | null;
  /** When a user last wrote, according to the session's digest. `null` if never. */
  readonly lastInputAt: number | null;
  readonly now: number;
  /** The time zone for the hour in `daily`. Defaults to this machine's time zone. */
  readonly timeZone?: string;
}

interface ResetDecision {
  readonly reset: boolean;
  /** The rule that decided. */
  readonly rule: "channel" | "kind" | "general";
  /** One sentence. */
  readonly why: string;
}

/** Decides whether new input starts a new session under the same key. */
export function decideReset(question: ResetQuestion): ResetDecision {
  const { of, rule } = ruleFor(question);
  const { reset, why } = decideBy(rule, question);
  const whose = {
    channel: `channel ${question.channel}`,
    kind: `kind ${question.kind}`,
    general: "all sessions",
  };
  return { reset, rule: of, why: `${why} (rule for ${whose[of]}).` };
}

function ruleFor({ rules, kind, channel }: ResetQuestion): { of: ResetDecision["rule"]; rule: ResetRule } {
  const byChannel = channel === null ? null : own(rules.byChannel, channel);
  if (byChannel !== null) return { of: "channel", rule: byChannel };
  const byKind = own(rules.byKind, kind);
  return byKind === null ? { of: "general", rule: rules } : { of: "kind", rule: byKind };
}

function decideBy(rule: ResetRule, question: ResetQuestion): Pick<ResetDecision, "reset" | "why"> {
  const { lastInputAt, now, timeZone } = question;
  if (rule.mode === "none") return { reset: false, why: "Sessions are never reset" };
  if (lastInputAt === null) return { reset: false, why: "There has been no input yet" };
  const ago = `the last input was ${formatDuration(now - lastInputAt)} ago`;
  if (rule.mode === "idle") {
    const limit = formatCount(rule.minutes, "minute");
    return {
      reset: now - lastInputAt >= rule.minutes * 60_000,
      why: `The idle limit is ${limit}, and ${ago}`,
    };
  }
  const since = lastDayBreak(now, rule.atHour, timeZone);
  const hour = `${String(rule.atHour).padStart(2, "0")}:00`;
  const began = `The day began at ${hour}, ${formatDuration(now - since)} ago`;
  return { reset: since > lastInputAt, why: `${began}, and ${ago}` };
}

/** Reads only own properties, because a channel could be named "constructor". */
function own<T>(table: { readonly [key: string]: T }, key: string): T | null {
  return Object.hasOwn(table, key) ? (table[key] ?? null) : null;
}

const pageSize = 200;
const fromPeople: readonly string[] = ["user", "channel"];

/**
 * If a rule requires it, moves the key and the run to a new session before this input is written. Returns `null` if
 * there is no reset.
 */
export async function resetIfDue(
  { store, endHooks, config, clock, runs }: Pick<App, "store" | "endHooks" | "config" | "clock" | "runs">,
  session: SessionRecord,
  { run, how, held }: Claim,
): Promise<SessionRecord | null> {
  const scope = scopeOfSession(session);
  const rules = config.session.reset;
  if (rules.mode === "none" && hasNoRules(rules)) return null;
  if (how === "woken" || !fromPeople.includes(run.kind)) return null;
  const { key, sessionId, kind, meta } = session;
  // The key has already been moved.
  if (parseKey(key).form === "reset") return null;
  // The turn has already started in this session.
  if ((await store.sessions.entry(scope, sessionId, run.entryId)) !== null) return null;
  const { reset, why } = decideReset({
    rules,
    kind,
    channel: meta.channel ?? null,
    lastInputAt: await lastInputAt(store, session),
    now: clock.now(),
  });
  if (!reset) return null;
  const ctx = contextOfSession(store, session, run);
  const done = await endHooks.reset(scope, session, { why, ctx, fence: runs.heldFence(held) });
  return "cancel" in done ? null : done.fresh;
}

function hasNoRules({ byKind, byChannel }: ResetRules): boolean {
  return Object.keys(byKind).length === 0 && Object.keys(byChannel).length === 0;
}

/** Returns when a user last wrote on the branch. Reads the log because the index can be behind. */
async function lastInputAt({ sessions }: Store, session: SessionRecord): Promise<number | null> {
  for (let before: string | undefined; ; ) {
    const range = { along: "branch", limit: pageSize, ...present({ before }) } as const;
    const page = await sessions.page(scopeOfSession(session), session.sessionId, range);
    const found = page?.entries.findLast((entry) => entry.type === "message" && isRealInput(entry.message));
    if (found !== undefined) return Date.parse(found.timestamp) || null;
    before = page?.entries[0]?.id;
    if (page === null || !page.hasEarlier) return null;
  }
}

const secondMs = 1000;
const dayMs = 86_400_000;

/**
 * Returns the latest moment up to `now` at which a day began. A day begins at the first moment of a date at which the
 * local clock shows this hour or later. If the clock skips the hour, the day begins at the moment of the skip. If the
 * hour occurs twice, the day begins at the first occurrence.
 */
export function lastDayBreak(now: number, atHour: number, timeZone?: string): number {
  const clock = wallClock(timeZone);
  const today = Math.floor(clock(now) / dayMs) * dayMs;
  const breakOf = (date: number) => firstMomentAt(date + atHour * 3600 * secondMs, clock);
  // Tomorrow is included because it has already begun once if the clock goes back across midnight.
  return [today + dayMs, today, today - dayMs].map(breakOf).find((moment) => moment <= now) as number;
}

/** Returns the local time at a moment, encoded as if it were UTC. */
type WallClock = (moment: number) => number;

function wallClock(timeZone: string | undefined): WallClock {
  const format = new Intl.DateTimeFormat("en-US", {
    ...(timeZone === undefined ? {} : { timeZone }),
    calendar: "gregory",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return (moment) => {
    const parts = new Map(format.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
    const shown = Date.UTC(
      part("year"),
      part("month") - 1,
      part("day"),
      part("hour"),
      part("minute"),
      part("second"),
    );
    return shown + (((moment % secondMs) + secondMs) % secondMs);
  };
}

/** Returns the first moment at which the clock shows this time or later. */
function firstMomentAt(shown: number, clock: WallClock): number {
  const offsetAt = (moment: number) => clock(moment) - moment;
  const [before, after] = [shown - offsetAt(shown - dayMs), shown - offsetAt(shown + dayMs)];
  const exact = [before, after].filter((moment) => clock(moment) === shown);
  if (exact.length > 0) return Math.min(...exact);
  // The clock skips this time, so search for the moment of the skip.
  let [early, late] = [Math.min(before, after), Math.max(before, after)];
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2);
    if (clock(middle) >= shown) late = middle;
    else early = middle;
  }
  return late;
}
