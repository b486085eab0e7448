import { SkeinError } from "./errors.ts";
import { agentIdForm, readAgentId, sessionIdProblem } from "./names.ts";

/** The purpose of a session, for display and filters in lists. */
export type SessionKind = "main" | "group" | "cron" | "hook" | "node" | "other";

/** A parsed key, with decoded IDs. */
export type KeyForm =
  | { readonly form: "main"; readonly agentId: string }
  | { readonly form: "named"; readonly agentId: string; readonly sessionId: string }
  | {
      readonly form: "direct";
      readonly agentId: string;
      readonly channel?: string;
      readonly account?: string;
      readonly peer: string;
    }
  | {
      readonly form: "group";
      readonly agentId: string;
      readonly channel: string;
      readonly chat: "group" | "channel";
      readonly groupId: string;
    }
  | { readonly form: "cron"; readonly agentId: string; readonly job: string; readonly runId?: string }
  | { readonly form: "hook" | "node"; readonly agentId: string; readonly id: string }
  | {
      readonly form: "subagent";
      readonly agentId: string;
      readonly parentSessionId: string;
      readonly spawnId: string;
    }
  | { readonly form: "acp"; readonly agentId: string; readonly spawnId: string }
  | { readonly form: "reset"; readonly agentId: string; readonly sessionId: string }
  | { readonly form: "other"; readonly agentId: string; readonly segments: readonly string[] };

/** A parsed session key. Any form can have a thread. `global` and `unknown` belong to no agent. */
export type ParsedKey =
  | (KeyForm & { readonly thread?: string })
  | { readonly form: "special"; readonly name: "global" | "unknown" };

const longestKey = 4096;
const expectedForm = `agent:<agentId>:<rest>, for example agent:main:main, with agentId ${agentIdForm}`;

/**
 * Parses a key. Throws `invalid_key` with the problem and the expected form.
 *
 * @example
 * ```ts
 * import { parseKey } from "skein";
 * parseKey("agent:main:session:trip"); // { form: "named", agentId: "main", sessionId: "trip" }
 * ```
 */
export function parseKey(text: string): ParsedKey {
  const result = readKey(text);
  if ("problem" in result) {
    throw new SkeinError("invalid_key", { key: text, problem: result.problem, expected: expectedForm });
  }
  return result;
}

/** Like {@link parseKey}, but returns the problem instead of throwing. */
export function readKey(text: string): ParsedKey | { readonly problem: string } {
  if (text === "global" || text === "unknown") return { form: "special", name: text };
  if (text.length > longestKey) return { problem: `it is longer than ${longestKey} characters` };
  const raw = text.split(":");
  if (raw[0] !== "agent") return { problem: 'it does not start with "agent:"' };
  if (raw.length < 3) return { problem: "the part after the agent is missing" };
  const segments: string[] = [];
  for (const [index, segment] of raw.entries()) {
    const decoded = decodeSegment(segment);
    if (typeof decoded !== "string") return { problem: `segment ${index + 1} ${decoded.problem}` };
    if (index > 1) segments.push(decoded);
  }
  const agentId = readAgentId(raw[1] ?? "");
  if (agentId === null) return { problem: `agent ID "${raw[1]}" does not match ${agentIdForm}` };
  return readRest(agentId, segments);
}

/**
 * Formats a key, the inverse of {@link parseKey}. Throws for parts that would be parsed as another form.
 *
 * @example
 * ```ts
 * import { formatKey } from "skein";
 * formatKey({ form: "direct", agentId: "main", channel: "matrix", peer: "@a:b.org" });
 * // "agent:main:matrix:user:@a%3Ab.org"
 * ```
 */
export function formatKey(key: ParsedKey): string {
  if (key.form === "special") return key.name;
  const segments = restSegments(key);
  if (key.thread !== undefined) segments.push("thread", key.thread);
  const text = ["agent", key.agentId, ...segments.map(encodeSegment)].join(":");
  const back = readKey(text);
  if ("problem" in back) {
    throw new SkeinError("invalid_key", { key: text, problem: back.problem, expected: expectedForm });
  }
  if (!sameKey(key, back)) {
    const problem = `its parts would be parsed as a key of the form "${back.form}"`;
    throw new SkeinError("invalid_key", { key: text, problem, expected: `parts of form "${key.form}"` });
  }
  return text;
}

/** Returns the spawn ID in a sub-agent's key, or `null` for any other key, including a thread's. */
export function spawnIdOf(text: string): string | null {
  const key = parseKey(text);
  return key.form === "subagent" && key.thread === undefined ? key.spawnId : null;
}

/** Whether an ACP agent answers in the session with this key. */
export function isAcpKey(text: string): boolean {
  const key = readKey(text);
  return "form" in key && key.form === "acp";
}

/** Returns the kind of a session from its parsed key. A thread has the same kind as its session. */
export function kindOf(key: ParsedKey): SessionKind {
  switch (key.form) {
    case "main":
    case "group":
    case "cron":
    case "hook":
    case "node":
      return key.form;
    default:
      return "other";
  }
}

function readRest(agentId: string, segments: string[]): ParsedKey | { problem: string } {
  const whole = readForm(agentId, segments);
  if (whole !== null) return whole;
  if (segments.length >= 3 && segments.at(-2) === "thread") {
    const thread = segments.at(-1) ?? "";
    const rest = segments.slice(0, -2);
    const base = readForm(agentId, rest) ?? ({ form: "other", agentId, segments: rest } as const);
    return "problem" in base ? base : { ...base, thread };
  }
  return { form: "other", agentId, segments };
}

/** Parses exactly these segments. A reserved first segment takes precedence over a channel with that name. */
function readForm(agentId: string, segments: readonly string[]): KeyForm | { problem: string } | null {
  const [first = "", second = "", third = "", fourth = ""] = segments;
  const count = segments.length;
  switch (first) {
    case "main":
      return count === 1 ? { form: "main", agentId } : null;
    case "session":
      return count === 2 ? withSessionId(second, { form: "named", agentId, sessionId: second }) : null;
    case "user":
      return count === 2 ? { form: "direct", agentId, peer: second } : null;
    case "cron":
      if (count === 2) return { form: "cron", agentId, job: second };
      return count === 4 && third === "run" ? { form: "cron", agentId, job: second, runId: fourth } : null;
    case "hook":
    case "node":
      return count === 2 ? { form: first, agentId, id: second } : null;
    case "subagent": {
      if (count !== 3) return null;
      const form = { form: "subagent", agentId, parentSessionId: second, spawnId: third } as const;
      return withSessionId(second, withSessionId(third, form));
    }
    case "acp":
      return count === 2 ? withSessionId(second, { form: "acp", agentId, spawnId: second }) : null;
    case "reset":
      return count === 2 ? withSessionId(second, { form: "reset", agentId, sessionId: second }) : null;
    default:
      return readChannelForm(agentId, segments);
  }
}

function readChannelForm(agentId: string, segments: readonly string[]): KeyForm | null {
  const [channel = "", second = "", third = "", fourth = ""] = segments;
  if (segments.length === 3 && second === "user") return { form: "direct", agentId, channel, peer: third };
  if (segments.length === 3 && (second === "group" || second === "channel")) {
    return { form: "group", agentId, channel, chat: second, groupId: third };
  }
  if (segments.length === 4 && third === "user") {
    return { form: "direct", agentId, channel, account: second, peer: fourth };
  }
  return null;
}

function withSessionId<T>(id: string, form: T): T | { problem: string } {
  const problem = sessionIdProblem(id);
  return problem === null ? form : { problem: `ID "${id}" is not valid: ${problem}` };
}

function restSegments(key: KeyForm): string[] {
  switch (key.form) {
    case "main":
      return ["main"];
    case "named":
      return ["session", key.sessionId];
    case "direct":
      return [key.channel, key.account, "user", key.peer].filter((segment) => segment !== undefined);
    case "group":
      return [key.channel, key.chat, key.groupId];
    case "cron":
      return ["cron", key.job, ...(key.runId === undefined ? [] : ["run", key.runId])];
    case "hook":
    case "node":
      return [key.form, key.id];
    case "subagent":
      return ["subagent", key.parentSessionId, key.spawnId];
    case "acp":
      return ["acp", key.spawnId];
    case "reset":
      return ["reset", key.sessionId];
    case "other":
      return [...key.segments];
  }
}

function sameKey(a: ParsedKey, b: ParsedKey): boolean {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...fields].every((field) => {
    const [left, right] = [Reflect.get(a, field), Reflect.get(b, field)];
    return Array.isArray(left) && Array.isArray(right)
      ? left.length === right.length && left.every((each, index) => each === right[index])
      : left === right;
  });
}

function encodeSegment(id: string): string {
  return id.replaceAll("%", "%25").replaceAll(":", "%3A");
}

/** Only `%25` and `%3A` are escapes so that each session key has exactly one spelling. */
function decodeSegment(segment: string): string | { problem: string } {
  if (segment === "") return { problem: "is empty" };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
  if (/[\u0000-\u001f\u007f]/.test(segment)) return { problem: "contains a control character" };
  if (!segment.isWellFormed()) return { problem: "is not well-formed Unicode" };
  if (/%(?!25|3A)/.test(segment)) return { problem: 'has a "%" that is neither %25 (%) nor %3A (:)' };
  return segment.replaceAll("%3A", ":").replaceAll("%25", "%");
}
