import type { ParsedKey } from "../core/keys.ts";
import { formatKey, parseKey } from "../core/keys.ts";

export type SendAction = "allow" | "deny";
export type ChatType = "direct" | "group" | "channel";

/** What a rule is about; what it leaves out (or has as `null`) may be anything. */
export interface SendMatch {
  readonly channel?: string | null;
  readonly chatType?: ChatType | null;
  /** The beginning of a key, whole or without `agent:<agentId>:`. */
  readonly keyPrefix?: string | null;
}

export interface SendRule {
  readonly action: SendAction;
  readonly match: SendMatch;
}

/** Whether what a session says may leave for a channel. */
export interface SendPolicy {
  readonly default: SendAction;
  /** The first that matches decides. */
  readonly rules: readonly SendRule[];
}

/** What is to be sent, from which session, and where to. */
export interface SendCase {
  readonly sessionKey: string;
  /** The channel that it goes to; left out: that of the key. */
  readonly channel?: string;
  /** What the session itself says, which goes before all rules. */
  readonly override?: SendAction;
}

export interface SendDecision {
  readonly action: SendAction;
  readonly by: "session" | "rule" | "default";
  /** The place of the rule in the list. */
  readonly rule: number | null;
  /** For people: which setting decided. */
  readonly reason: string;
}

/** Who decides: the session, else the first rule that matches, else the default. */
export function decideSend(policy: SendPolicy, given: SendCase): SendDecision {
  const { override } = given;
  if (override !== undefined) {
    return { action: override, by: "session", rule: null, reason: `sendPolicy of the session: ${override}` };
  }
  const key = parseKey(given.sessionKey);
  const rule = policy.rules.findIndex(({ match }) => matches(match, key, given.channel ?? channelOf(key)));
  const action = policy.rules[rule]?.action;
  if (action === undefined) {
    const reason = `session.sendPolicy.default: ${policy.default}`;
    return { action: policy.default, by: "default", rule: null, reason };
  }
  return { action, by: "rule", rule, reason: `session.sendPolicy.rules.${rule}: ${action}` };
}

/** Which sort of conversation a key names; `null`: none with people. A thread is of the sort that it hangs on. */
export function chatTypeOf(key: ParsedKey): ChatType | null {
  if (key.form === "group") return key.chat;
  return key.form === "direct" || key.form === "main" ? "direct" : null;
}

function channelOf(key: ParsedKey): string | null {
  return key.form === "group" || key.form === "direct" ? (key.channel ?? null) : null;
}

function matches({ channel, chatType, keyPrefix }: SendMatch, key: ParsedKey, to: string | null): boolean {
  return (
    (channel ?? to) === to &&
    (chatType ?? chatTypeOf(key)) === chatTypeOf(key) &&
    beginsWith(formatKey(key), keyPrefix ?? "")
  );
}

function beginsWith(key: string, prefix: string): boolean {
  const rest = key.startsWith("agent:") ? key.slice(key.indexOf(":", "agent:".length) + 1) : key;
  return key.startsWith(prefix) || rest.startsWith(prefix);
}
