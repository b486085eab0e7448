import type { Config } from "../config/sections/all.ts";
import type { SessionKind } from "../core/keys.ts";
import { countInWords, timeInWords } from "./in-words.ts";
import { lastDayBreak } from "./local-day.ts";

export type ResetRules = Config["session"]["reset"];
export type ResetRule = Omit<ResetRules, "byKind" | "byChannel">;

export interface ResetQuestion {
  readonly rules: ResetRules;
  readonly kind: SessionKind;
  /** `null`: the session is on none. */
  readonly channel: string | null;
  /** When a person last said something, by the session's digest; `null`: nobody has. */
  readonly lastInputAt: number | null;
  readonly now: number;
  /** Of the hour in `daily`; left out: this machine's. */
  readonly timeZone?: string;
}

export interface ResetDecision {
  readonly reset: boolean;
  /** Whose rule it was. */
  readonly rule: "channel" | "kind" | "general";
  /** One sentence. */
  readonly why: string;
}

/** Whether new input begins a new session under the same key. */
export function decideReset(question: ResetQuestion): ResetDecision {
  const { of, rule } = ruleFor(question);
  const { reset, why } = decideBy(rule, question);
  const whose = {
    channel: `channel ${question.channel}`,
    kind: `kind ${question.kind}`,
    general: "all sessions",
  };
  return { reset, rule: of, why: `${why} (rule of ${whose[of]}).` };
}

function ruleFor({ rules, kind, channel }: ResetQuestion): { of: ResetDecision["rule"]; rule: ResetRule } {
  const byChannel = channel === null ? null : own(rules.byChannel, channel);
  if (byChannel !== null) return { of: "channel", rule: byChannel };
  const byKind = own(rules.byKind, kind);
  return byKind === null ? { of: "general", rule: rules } : { of: "kind", rule: byKind };
}

function decideBy(rule: ResetRule, question: ResetQuestion): Pick<ResetDecision, "reset" | "why"> {
  const { lastInputAt, now, timeZone } = question;
  if (rule.mode === "none") return { reset: false, why: "Sessions are not reset" };
  if (lastInputAt === null) return { reset: false, why: "Nobody has said anything yet" };
  const ago = `the last input was ${timeInWords(now - lastInputAt)} ago`;
  if (rule.mode === "idle") {
    const limit = countInWords(rule.minutes, "minute");
    return { reset: now - lastInputAt >= rule.minutes * 60_000, why: `Idle is ${limit}, and ${ago}` };
  }
  const since = lastDayBreak(now, rule.atHour, timeZone);
  const hour = `${String(rule.atHour).padStart(2, "0")}:00`;
  const began = `The day began at ${hour}, ${timeInWords(now - since)} ago`;
  return { reset: since > lastInputAt, why: `${began}, and ${ago}` };
}

/** Not what an object inherits: "constructor" may be the name of a channel. */
function own<T>(table: { readonly [key: string]: T }, key: string): T | null {
  return Object.hasOwn(table, key) ? (table[key] ?? null) : null;
}
