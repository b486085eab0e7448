import type { ParsedKey } from "../core/keys.ts";
import { formatKey, parseKey } from "../core/keys.ts";

export type SendAction = "allow" | "deny";
export type ChatType = "direct" | "group" | "channel";

/** A field that is absent or `null` matches anything. */
export interface SendMatch {
  readonly channel?: string | null;
  readonly chatType?: ChatType | null;
  /** A prefix of the key, with or without `agent:<agentId>:`. */
  readonly keyPrefix?: string | null;
}

export interface SendRule {
  readonly action: SendAction;
  readonly match: SendMatch;
}

/** Decides whether a session may send messages to a channel. */
export interface SendPolicy {
  readonly default: SendAction;
  /** The first matching rule applies. */
  readonly rules: readonly SendRule[];
}

export interface SendCase {
  readonly sessionKey: string;
  /** Defaults to the channel in the key. */
  readonly channel?: string;
  /** The session's own setting, which overrides all rules. */
  readonly override?: SendAction;
}

export interface SendDecision {
  readonly action: SendAction;
  readonly by: "session" | "rule" | "default";
  /** The index of the rule that applied. */
  readonly rule: number | null;
  /** Describes the setting that applied. */
  readonly reason: string;
}

/** Applies the session's setting if there is one, otherwise the first matching rule, and otherwise the default. */
export function decideSend(policy: SendPolicy, given: SendCase): SendDecision {
  const { override } = given;
  if (override !== undefined) {
    return { action: override, by: "session", rule: null, reason: `the session's sendPolicy: ${override}` };
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

/** Returns `null` for sessions without human participants. A thread has its parent's chat type. */
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
