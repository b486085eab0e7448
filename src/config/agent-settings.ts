import type { ThinkingSetting } from "./sections/agents.ts";
import type { Config } from "./sections/all.ts";
import type { VisibilityWord } from "./sections/tools.ts";

/** What holds for an agent. */
export interface AgentSettings {
  /** `null` if none is configured; `defaultModel` then chooses one. */
  readonly model: string | null;
  readonly system: string | null;
  readonly thinking: ThinkingSetting;
  /** Absolute; `null` for the caller's current directory. */
  readonly cwd: string | null;
  /** Names, groups and globs. `allow` empty: all; `deny` wins; `ask`: tools whose calls need an approval in any case. */
  readonly tools: {
    readonly allow: readonly string[];
    readonly deny: readonly string[];
    readonly ask: readonly string[];
  };
  /** 0: none. */
  readonly runTimeoutSeconds: number;
  readonly maxSteps: number;
  readonly sandboxed: boolean;
  readonly visibility: AgentVisibility;
  /** Absolute. */
  readonly roots: readonly string[];
  readonly subagents: Config["defaults"]["subagents"];
}

/** `null`: use `tools.sessions.visibility`. */
export type AgentVisibility = {
  readonly [Action in "list" | "history" | "send" | "status"]: VisibilityWord | null;
};

type Said = Config["agents"][string];
type General = Config["defaults"];

/** An agent's own value, else that of `defaults`, which are all that holds for an agent that is not configured. */
export function agentSettings(
  { agents, defaults }: Pick<Config, "agents" | "defaults">,
  agentId: string,
): AgentSettings {
  const own = Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
  return {
    model: own?.model ?? defaults.model,
    system: own?.system ?? defaults.system,
    thinking: own?.thinking ?? defaults.thinking,
    cwd: own?.cwd ?? defaults.cwd,
    tools: { ...rulesOf(own?.tools, defaults.tools), ask: listOf(own?.tools.ask, defaults.tools.ask) },
    runTimeoutSeconds: own?.runTimeoutSeconds ?? defaults.runTimeoutSeconds,
    maxSteps: own?.maxSteps ?? defaults.maxSteps,
    sandboxed: own?.sandboxed ?? defaults.sandboxed,
    visibility: visibilityOf(own?.visibility, defaults.visibility),
    roots: listOf(own?.roots, defaults.roots),
    subagents: subagentsOf(own?.subagents, defaults.subagents),
  };
}

/** An empty list counts as not set. */
function listOf(own: readonly string[] | undefined, general: readonly string[]): readonly string[] {
  return own !== undefined && own.length > 0 ? own : general;
}

type ToolRules = General["subagents"]["tools"];

function rulesOf(own: ToolRules | undefined, general: ToolRules): ToolRules {
  return { allow: listOf(own?.allow, general.allow), deny: listOf(own?.deny, general.deny) };
}

function visibilityOf(own: AgentVisibility | undefined, general: AgentVisibility): AgentVisibility {
  return {
    list: own?.list ?? general.list,
    history: own?.history ?? general.history,
    send: own?.send ?? general.send,
    status: own?.status ?? general.status,
  };
}

function subagentsOf(
  own: Said["subagents"] | undefined,
  general: General["subagents"],
): General["subagents"] {
  const [files, generalFiles] = [own?.attachments, general.attachments];
  return {
    allowAgents: listOf(own?.allowAgents, general.allowAgents),
    maxSpawnDepth: own?.maxSpawnDepth ?? general.maxSpawnDepth,
    maxChildren: own?.maxChildren ?? general.maxChildren,
    archiveAfterMinutes: own?.archiveAfterMinutes ?? general.archiveAfterMinutes,
    tools: rulesOf(own?.tools, general.tools),
    attachments: {
      maxFileBytes: files?.maxFileBytes ?? generalFiles.maxFileBytes,
      maxTotalBytes: files?.maxTotalBytes ?? generalFiles.maxTotalBytes,
      keep: files?.keep ?? generalFiles.keep,
    },
  };
}
