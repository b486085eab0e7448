import { isRecord } from "../core/is-record.ts";
import type { Config } from "./sections/all.ts";
import type { Source } from "./tree.ts";

/**
 * An agent's settings, with `defaults` applied. `model` is `null` if none is configured, in which case `defaultModel`
 * picks one. Paths are absolute. If `cwd` is `null`, the caller's current directory is used. An empty `tools.allow`
 * allows all tools. `tools.deny` takes precedence. If the visibility is `null`, the value of
 * `tools.sessions.visibility` applies.
 */
export type AgentSettings = Config["defaults"];

export type AgentVisibility = AgentSettings["visibility"];

/** Caches settings, because a configuration never changes and each turn needs its agent's settings several times. */
const known = new WeakMap<Config["defaults"], WeakMap<object, AgentSettings>>();

/**
 * Returns an agent's settings. Each setting falls back to `defaults`. Only `defaults` applies to an agent that is not
 * configured.
 */
export function agentSettings(
  { agents, defaults }: Pick<Config, "agents" | "defaults">,
  agentId: string,
): AgentSettings {
  const own = Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
  const place = own ?? defaults;
  const ofDefaults = known.get(defaults) ?? new WeakMap<object, AgentSettings>();
  const settings = ofDefaults.get(place) ?? inherit(own, defaults);
  known.set(defaults, ofDefaults.set(place, settings));
  return settings;
}

/** Treats `null` and empty lists as unset. */
function inherit<T>(own: unknown, general: T): T {
  if (Array.isArray(general)) return Array.isArray(own) && own.length > 0 ? (own as T) : general;
  if (!isRecord(general)) return (own ?? general) as T;
  const fields = isRecord(own) ? own : {};
  return Object.fromEntries(
    Object.entries(general).map(([key, value]) => [key, inherit(fields[key], value)]),
  ) as T;
}

/**
 * Returns the agents that are configured. A program that defines agents in its code does not get the default agent,
 * which exists only if no agent is configured.
 */
export function configuredAgents(
  { config, sources }: { readonly config: Config; readonly sources: ReadonlyMap<string, Source> },
  hasCode: boolean,
): readonly string[] {
  const isWritten = [...sources].some(([path, { from }]) => path.startsWith("agents.") && from !== "default");
  return hasCode && !isWritten ? [] : Object.keys(config.agents);
}
