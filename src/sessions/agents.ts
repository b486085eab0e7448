import type { AccessSettings, VisibilityByAction } from "../access/visibility/access-policy.ts";
import type { AgentDefinition, AgentSpec, SubagentSpec } from "../agents/tools/define-agent.ts";
import { instantiateState } from "../agents/tools/define-agent.ts";
import type { AgentVisibility } from "../config/agent-settings.ts";
import { agentSettings } from "../config/agent-settings.ts";
import { defaultModel } from "../config/default-model.ts";
import type { Config } from "../config/sections/all.ts";
import type { Environment } from "../config/variables.ts";
import type { StateModule } from "./with-state.ts";
import { ActiveTools } from "./with-state.ts";

/** An agent with its settings resolved. */
export interface AgentProfile {
  readonly id: string;
  /** `acp` means an external agent with its own model and tools. */
  readonly runtime: "loop" | "acp";
  /** In `provider/model` format. */
  readonly model: string;
  readonly system: string | null;
  readonly thinking: string | null;
  readonly maxSteps: number;
  /** The maximum number of tokens per answer. `null` means the model's own limit. */
  readonly maxOutputTokens: number | null;
  /** Creates the state modules for a run. */
  state(): readonly StateModule[];
  /** Groups whose tools are offered only while the group is active in the session. */
  readonly onDemand: readonly string[];
}

/** The tools that an agent can use. */
interface AgentToolRule {
  /** If absent, all tools are allowed. */
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
  /** Tools whose calls need approval, regardless of their definitions. */
  readonly ask?: readonly string[];
}

/** The agents that an agent's sessions can spawn and the limits on their children. */
export interface SubagentPolicy {
  /** Agent IDs, or `*` for any agent. An agent can always spawn itself. */
  readonly allowAgents: readonly string[];
  /** From 1 to 5. */
  readonly maxSpawnDepth: number;
  /** From 1 to 20. */
  readonly maxChildren: number;
  /** 0 means never. */
  readonly archiveAfterMinutes: number;
  /** `allow` removes tools from the default deny list. `deny` adds tools to it. */
  readonly tools: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly attachments: {
    readonly maxFileBytes: number;
    readonly maxTotalBytes: number;
    /** Whether to keep the files when their session is archived or removed. */
    readonly keep: boolean;
  };
}

export interface Agent extends AgentProfile {
  readonly definition: AgentDefinition | null;
  readonly cwd: string | null;
  readonly tools: AgentToolRule;
  /** Whether the agent's sessions are confined to their own tree. */
  readonly sandboxed: boolean;
  /** `tools.sessions.visibility` applies to any action that is `null`. */
  readonly visibility: AgentVisibility;
  readonly roots: readonly string[];
  readonly subagents: SubagentPolicy;
}

interface AgentSources {
  readonly config: Config;
  readonly env: Environment;
  readonly definitions: readonly AgentDefinition[];
  /** Agents from the configuration file. */
  readonly configured: readonly string[];
}

/** All agents, keyed by ID. A definition in code takes precedence over the configuration. */
export class Agents {
  readonly #sources: AgentSources;

  constructor(sources: AgentSources) {
    this.#sources = sources;
  }

  get ids(): readonly string[] {
    const { definitions, configured } = this.#sources;
    return [...new Set([...definitions.map(({ id }) => id), ...configured])];
  }

  /** The default agent: `main` if there is one. */
  get first(): string {
    const { ids } = this;
    return ids.includes("main") ? "main" : (ids[0] ?? "main");
  }

  isDefinedInCode(agentId: string): boolean {
    return this.#definition(agentId) !== null;
  }

  find(agentId: string): Agent | null {
    return this.ids.includes(agentId) ? this.describe(agentId) : null;
  }

  /** Returns an agent with its settings. An agent that is not defined gets the settings in `defaults`. */
  describe(agentId: string): Agent {
    const { config, env } = this.#sources;
    const definition = this.#definition(agentId);
    const settings = agentSettings(config, agentId);
    const { allow } = settings.tools;
    const ask = definition?.ask ?? settings.tools.ask;
    const allowed = definition?.allow ?? (allow.length === 0 ? undefined : allow);
    return {
      id: agentId,
      runtime: "loop",
      definition,
      model: definition?.model ?? settings.model ?? defaultModel(env, config),
      system: definition?.system ?? settings.system,
      thinking: definition?.thinking ?? settings.thinking,
      cwd: definition?.cwd ?? settings.cwd,
      tools: {
        ...(allowed === undefined ? {} : { allow: allowed }),
        deny: definition?.deny ?? settings.tools.deny,
        ...(ask.length === 0 ? {} : { ask }),
      },
      maxSteps: definition?.maxSteps ?? settings.maxSteps,
      maxOutputTokens: definition?.maxOutputTokens ?? null,
      sandboxed: definition?.sandboxed ?? settings.sandboxed,
      visibility: visibilityOf(definition?.visibility, settings.visibility),
      roots: definition?.roots ?? settings.roots,
      subagents: subagentsOf(definition?.subagents, settings.subagents),
      state: () => [new ActiveTools(), ...instantiateState(definition?.state)],
      onDemand: definition?.onDemand ?? [],
    };
  }

  /** The settings for access between sessions. `defaults` also applies to agents that are not configured. */
  get access(): AccessSettings {
    const { config } = this.#sources;
    const { sessions, agentToAgent } = config.tools;
    const general = { ...sessions.visibility, ...setActions(config.defaults.visibility) };
    const agents = this.ids.map((id) => [id, { visibility: this.find(id)?.visibility ?? null }]);
    return {
      tools: { sessions: { visibility: general }, agentToAgent },
      agents: Object.fromEntries(agents),
    };
  }

  /** Returns an agent's default run timeout, even if the agent is not defined. 0 means no limit. */
  runTimeoutSeconds(agentId: string): number {
    const { runTimeoutSeconds } = agentSettings(this.#sources.config, agentId);
    return this.#definition(agentId)?.runTimeoutSeconds ?? runTimeoutSeconds;
  }

  #definition(agentId: string): AgentDefinition | null {
    return this.#sources.definitions.find(({ id }) => id === agentId) ?? null;
  }
}

function setActions(visibility: AgentVisibility): Partial<VisibilityByAction> {
  return Object.fromEntries(Object.entries(visibility).filter(([, level]) => level !== null));
}

function visibilityOf(own: AgentSpec["visibility"], settings: AgentVisibility): AgentVisibility {
  if (typeof own !== "string") return { ...settings, ...own };
  return { list: own, history: own, send: own, status: own };
}

function subagentsOf(own: SubagentSpec | undefined, settings: SubagentPolicy): SubagentPolicy {
  return {
    ...settings,
    ...own,
    tools: { ...settings.tools, ...own?.tools },
    attachments: { ...settings.attachments, ...own?.attachments },
  };
}
