import type { ThinkingSetting } from "./sections/agents.ts";
import type { Config } from "./sections/all.ts";

/** What holds for an agent. */
export interface AgentSettings {
  /** `null`: none is named; `defaultModel` says which one it is. */
  readonly model: string | null;
  readonly system: string | null;
  readonly thinking: ThinkingSetting;
  /** Absolute; `null`: where the caller stands. */
  readonly cwd: string | null;
  /** Names, groups and globs. `allow` empty: all; `deny` wins. */
  readonly tools: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  /** 0: none. */
  readonly runTimeoutSeconds: number;
  readonly maxSteps: number;
}

/** An agent's own value, else that of `defaults`, which are all that holds for an agent that is not configured. */
export function agentSettings(
  { agents, defaults }: Pick<Config, "agents" | "defaults">,
  agentId: string,
): AgentSettings {
  const own = Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
  const listOf = (key: "allow" | "deny") => {
    const given = own?.tools[key] ?? [];
    return given.length > 0 ? given : defaults.tools[key];
  };
  return {
    model: own?.model ?? defaults.model,
    system: own?.system ?? defaults.system,
    thinking: own?.thinking ?? defaults.thinking,
    cwd: own?.cwd ?? defaults.cwd,
    tools: { allow: listOf("allow"), deny: listOf("deny") },
    runTimeoutSeconds: own?.runTimeoutSeconds ?? defaults.runTimeoutSeconds,
    maxSteps: own?.maxSteps ?? defaults.maxSteps,
  };
}
