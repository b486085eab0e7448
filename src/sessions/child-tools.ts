import { matchesGlob } from "../core/glob.ts";
import { readKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { isRecord } from "../core/shape.ts";
import type { Json, SessionMeta } from "../store/contract.ts";
import type { SubagentPolicy } from "./agents.ts";

/** What a spawned session may use: by rules, not by what its parent happens to have. */

export type ChildRole = "orchestrator" | "leaf";

/** A rule about tools, and whose it is. */
export interface ChildToolLayer {
  readonly of: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly ask?: readonly string[];
}

const ofSessions = [
  "sessions_list",
  "sessions_history",
  "sessions_send",
  "sessions_spawn",
  "sessions_yield",
  "session_status",
  "subagents",
  "session_search",
  "session_list",
  "agents_list",
];
const denied = [
  "sessions_list",
  "sessions_history",
  "sessions_send",
  "sessions_spawn",
  "gateway",
  "agents_list",
  "whatsapp_login",
  "session_status",
  "cron",
  "memory_search",
  "memory_get",
];
const deniedToLeaf = ["sessions_yield", "subagents", "session_search", "session_list"];
const keptByOrchestrator = ["sessions_spawn", "sessions_yield", "subagents"];

/** What sub-agents of a role do not get, as `subagents.tools` changes it: `allow` gives back, `deny` adds and wins. */
export function childDenyList(role: ChildRole, tools: SubagentPolicy["tools"]): readonly string[] {
  const all = role === "leaf" ? [...denied, ...deniedToLeaf] : denied.filter(isNotKept);
  return [...all.filter((name) => !tools.allow.some((entry) => gives(entry, name))), ...tools.deny];
}

/**
 * The rules about the tools of a session by what was written of it when it was spawned; none for one that was not.
 * `policy`: that of the agent that spawned it; `null`: it is not known any more, and the defaults hold.
 */
export function childToolLayers(
  meta: SessionMeta,
  policy: Pick<SubagentPolicy, "tools"> | null,
): readonly ChildToolLayer[] {
  if (meta.spawnedBy === undefined) return [];
  const role = meta.role === "orchestrator" ? "orchestrator" : "leaf";
  const deny = childDenyList(role, policy?.tools ?? { allow: [], deny: [] });
  return [...layersIn(meta.toolLayers), { of: "sub-agents", deny }];
}

/** The agent that spawned a session, whose word about sub-agents holds for it; one without an agent in its key is `own`. */
export function spawnerOf({ spawnedBy }: SessionMeta, own: string): string {
  const parent = readKey(spawnedBy ?? "");
  return "agentId" in parent ? parent.agentId : own;
}

/** Rules as they stand in a session's metadata. What cannot be read as one allows nothing. */
function layersIn(value: Json | undefined): readonly ChildToolLayer[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [unreadable];
  return value.map((layer: Json): ChildToolLayer => {
    if (!isRecord(layer) || typeof layer.of !== "string") return unreadable;
    const { of, allow, deny, ask } = layer;
    if (!isTextsOrNone(allow) || !isTextsOrNone(deny) || !isTextsOrNone(ask)) return unreadable;
    return { of, ...present({ allow, deny, ask }) };
  });
}

const unreadable: ChildToolLayer = { of: "what the parent may use", allow: [] };

function isTextsOrNone(value: unknown): value is readonly string[] | undefined {
  return value === undefined || (Array.isArray(value) && value.every((each) => typeof each === "string"));
}

function isNotKept(name: string): boolean {
  return !keptByOrchestrator.includes(name);
}

function gives(entry: string, name: string): boolean {
  if (!entry.startsWith("group:")) return matchesGlob(entry, name);
  return ofSessions.includes(name) && matchesGlob(entry, "group:sessions");
}
