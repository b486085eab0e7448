import { SkeinError } from "../core/errors.ts";
import type { KeyForm, ParsedKey } from "../core/keys.ts";
import { formatKey } from "../core/keys.ts";
import { readAgentId } from "../core/names.ts";

export interface OpenclawKeyContext {
  /** The agent for keys that do not contain one. */
  readonly agentId: string;
  /** The row's channel, for old keys that do not contain one. */
  readonly channel: string | null;
  readonly parentSessionId: string | null;
}

export interface MappedKey {
  readonly agentId: string;
  /** `null` if the key has no counterpart. `problem` then explains why. */
  readonly key: string | null;
  readonly problem: string;
}

/** OpenClaw does not escape IDs in its keys, so each ID is matched greedily. */
export function mapOpenclawKey(source: string, context: OpenclawKeyContext): MappedKey {
  const trimmed = source.trim();
  if (trimmed === "global" || trimmed === "unknown")
    return { agentId: context.agentId, key: trimmed, problem: "" };
  const segments = trimmed.split(":").filter((segment) => segment !== "");
  const hasAgent = segments[0]?.toLowerCase() === "agent";
  const agentId = hasAgent ? readAgentId(segments[1] ?? "") : context.agentId;
  const rest = hasAgent ? segments.slice(2) : segments;
  if (agentId === null) return { agentId: context.agentId, key: null, problem: "its agent ID is not valid" };
  if (rest.length === 0) return { agentId, key: null, problem: "nothing follows its agent ID" };
  try {
    return { agentId, key: formatKey(readThread(agentId, rest, context)), problem: "" };
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    return { agentId, key: null, problem: String(error.details.problem ?? error.code) };
  }
}

function readThread(agentId: string, rest: readonly string[], context: OpenclawKeyContext): ParsedKey {
  const at = rest.findLastIndex((segment) => segment === "thread" || segment === "topic");
  if (at < 1 || at === rest.length - 1) return readForm(agentId, rest, context);
  const thread = rest.slice(at + 1).join(":");
  return { ...readForm(agentId, rest.slice(0, at), context), thread };
}

function readForm(agentId: string, parts: readonly string[], context: OpenclawKeyContext): KeyForm {
  const [first = "", second = ""] = parts;
  const id = parts.slice(1).join(":");
  if (parts.length === 1 && first === "main") return { form: "main", agentId };
  if (parts.length === 1 && first.startsWith("node-")) return { form: "node", agentId, id: first.slice(5) };
  if (parts.length > 1) {
    if (first === "hook" || first === "node") return { form: first, agentId, id };
    if (first === "cron") return readCron(agentId, parts);
    if (first === "acp" && parts.length === 2) return { form: "acp", agentId, spawnId: second };
    if (first === "subagent") {
      const { parentSessionId } = context;
      if (parentSessionId === null) throw keyError("the session that spawned it is not in the file");
      return { form: "subagent", agentId, parentSessionId, spawnId: parts.at(-1) ?? "" };
    }
    if (first === "group" || first === "channel") {
      const { channel } = context;
      if (channel === null) throw keyError("neither the key nor the row names a channel");
      return { form: "group", agentId, channel, chat: first, groupId: id };
    }
  }
  if (parts.length > 2 && (second === "group" || second === "channel"))
    return { form: "group", agentId, channel: first, chat: second, groupId: parts.slice(2).join(":") };
  return readDirect(agentId, parts) ?? { form: "other", agentId, segments: parts };
}

/**
 * Reads `direct` or `dm`, either alone, after a channel, or after a channel and an account. Skein writes `user`
 * instead.
 */
function readDirect(agentId: string, parts: readonly string[]): KeyForm | null {
  const at = parts.slice(0, 3).findIndex((part) => part === "direct" || part === "dm" || part === "user");
  if (at === -1 || at === parts.length - 1) return null;
  const peer = parts.slice(at + 1).join(":");
  const [channel = "", account = ""] = parts;
  if (at === 0) return { form: "direct", agentId, peer };
  return { form: "direct", agentId, channel, ...(at === 1 ? {} : { account }), peer };
}

function readCron(agentId: string, parts: readonly string[]): KeyForm {
  const isRun = parts.length > 3 && parts.at(-2) === "run";
  if (!isRun) return { form: "cron", agentId, job: parts.slice(1).join(":") };
  return { form: "cron", agentId, job: parts.slice(1, -2).join(":"), runId: parts.at(-1) ?? "" };
}

function keyError(problem: string): SkeinError {
  return new SkeinError("invalid_key", { key: "", problem, expected: "a different key" });
}
