import { SkeinError } from "../core/errors.ts";
import type { KeyForm, ParsedKey } from "../core/keys.ts";
import { formatKey } from "../core/keys.ts";
import { readAgentId } from "../core/names.ts";

/** What a key is read with. */
export interface KeySurroundings {
  /** The agent that keys without one belong to. */
  readonly agentId: string;
  /** The channel that the row names, for old keys that name none. */
  readonly channel: string | null;
  /** The session id of the one that spawned this. */
  readonly parentSessionId: string | null;
}

export interface MappedKey {
  readonly agentId: string;
  /** `null` when it has no counterpart; `problem` then says why. */
  readonly key: string | null;
  readonly problem: string;
}

/** OpenClaw's keys do not escape what they are made of, so an id is all that stands where an id can stand. */
export function mapOpenclawKey(source: string, around: KeySurroundings): MappedKey {
  const trimmed = source.trim();
  if (trimmed === "global" || trimmed === "unknown")
    return { agentId: around.agentId, key: trimmed, problem: "" };
  const segments = trimmed.split(":").filter((segment) => segment !== "");
  const prefixed = segments[0]?.toLowerCase() === "agent";
  const agentId = prefixed ? readAgentId(segments[1] ?? "") : around.agentId;
  const rest = prefixed ? segments.slice(2) : segments;
  if (agentId === null) return { agentId: around.agentId, key: null, problem: "its agent id is not valid" };
  if (rest.length === 0) return { agentId, key: null, problem: "nothing stands behind its agent" };
  try {
    return { agentId, key: formatKey(readParts(agentId, rest, around)), problem: "" };
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    return { agentId, key: null, problem: String(error.details.problem ?? error.code) };
  }
}

function readParts(agentId: string, rest: readonly string[], around: KeySurroundings): ParsedKey {
  const mark = rest.findLastIndex((segment) => segment === "thread" || segment === "topic");
  if (mark < 1 || mark === rest.length - 1) return readForm(agentId, rest, around);
  const thread = joined(rest.slice(mark + 1));
  return { ...readForm(agentId, rest.slice(0, mark), around), thread };
}

function readForm(agentId: string, parts: readonly string[], around: KeySurroundings): KeyForm {
  const [first = "", second = ""] = parts;
  const behind = joined(parts.slice(1));
  if (parts.length === 1 && first === "main") return { form: "main", agentId };
  if (parts.length === 1 && first.startsWith("node-")) return { form: "node", agentId, id: first.slice(5) };
  if (parts.length > 1) {
    if (first === "hook" || first === "node") return { form: first, agentId, id: behind };
    if (first === "cron") return cron(agentId, parts);
    if (first === "subagent") return subagent(agentId, parts, around.parentSessionId);
    if (first === "acp" && parts.length === 2) return { form: "acp", agentId, spawnId: second };
    if (first === "group" || first === "channel")
      return { form: "group", agentId, channel: needed(around.channel), chat: first, groupId: behind };
  }
  if (parts.length > 2 && (second === "group" || second === "channel"))
    return { form: "group", agentId, channel: first, chat: second, groupId: joined(parts.slice(2)) };
  return direct(agentId, parts) ?? { form: "other", agentId, segments: parts };
}

/** `direct`, once `dm`, is our `user`: alone, behind a channel, or behind a channel and an account. */
function direct(agentId: string, parts: readonly string[]): KeyForm | null {
  const at = parts.slice(0, 3).findIndex((part) => part === "direct" || part === "dm" || part === "user");
  if (at === -1 || at === parts.length - 1) return null;
  const peer = joined(parts.slice(at + 1));
  const [channel = "", account = ""] = parts;
  if (at === 0) return { form: "direct", agentId, peer };
  return at === 1
    ? { form: "direct", agentId, channel, peer }
    : { form: "direct", agentId, channel, account, peer };
}

function cron(agentId: string, parts: readonly string[]): KeyForm {
  const isRun = parts.length > 3 && parts.at(-2) === "run";
  if (!isRun) return { form: "cron", agentId, job: joined(parts.slice(1)) };
  return { form: "cron", agentId, job: joined(parts.slice(1, -2)), runId: parts.at(-1) ?? "" };
}

/** OpenClaw names no parent in the key; ours does. */
function subagent(agentId: string, parts: readonly string[], parentSessionId: string | null): KeyForm {
  if (parentSessionId !== null)
    return { form: "subagent", agentId, parentSessionId, spawnId: parts.at(-1) ?? "" };
  throw refused(parts, "the session that spawned it is not in the file");
}

function needed(channel: string | null): string {
  if (channel !== null) return channel;
  throw refused([], "neither the key nor the row names a channel");
}

function refused(parts: readonly string[], problem: string): SkeinError {
  return new SkeinError("invalid_key", { key: parts.join(":"), problem, expected: "another key" });
}

function joined(parts: readonly string[]): string {
  return parts.join(":");
}
