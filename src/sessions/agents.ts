import type { AccessSettings, VisibilityByAction } from "../access/visibility/access-policy.ts";
import type { AgentDefinition, AgentSpec, SubagentSpec } from "../agents/tools/define-agent.ts";
import { instantiateState } from "../agents/tools/define-agent.ts";
import type { AgentVisibility } from "../config/agent-settings.ts";
import { agentSettings } from "../config/agent-settings.ts";
import { defaultModel } from "../config/default-model.ts";
import type { Config } from "../config/sections/all.ts";
import type { Environment } from "../config/variables.ts";
import { ActiveTools } from "./active-tools.ts";
import type { AgentDirectory, AgentPolicy, SubagentPolicy } from "./between.ts";
import type { AgentProfile } from "./running.ts";

export interface Agent extends AgentProfile {
  readonly definition: AgentDefinition | null;
  readonly cwd: string | null;
  /** Left out: all. */
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
  /** Whose calls need an approval, whatever the tool says. */
  readonly ask: readonly string[];
  /** Its sessions are kept from everything outside their own tree. */
  readonly sandboxed: boolean;
  /** `null`: as `tools.sessions.visibility` says. */
  readonly visibility: AgentVisibility;
  readonly roots: readonly string[];
  readonly subagents: SubagentPolicy;
}

export interface AgentSources {
  readonly config: Config;
  readonly env: Environment;
  readonly definitions: readonly AgentDefinition[];
  /** Agents that the configuration file names, whatever the code defines. */
  readonly configured: readonly string[];
}

/** The agents: what the code says of one goes before what the configuration says. */
export class Agents {
  readonly #sources: AgentSources;

  constructor(sources: AgentSources) {
    this.#sources = sources;
  }

  get ids(): readonly string[] {
    const { definitions, configured } = this.#sources;
    return [...new Set([...definitions.map(({ id }) => id), ...configured])];
  }

  /** Who is meant where nobody is named. */
  get first(): string {
    const { ids } = this;
    return ids.includes("main") ? "main" : (ids[0] ?? "main");
  }

  find(agentId: string): Agent | null {
    return this.ids.includes(agentId) ? this.describe(agentId) : null;
  }

  /** An agent that nobody defined here has what `defaults` says. */
  describe(agentId: string): Agent {
    const { config, env } = this.#sources;
    const definition = this.#definition(agentId);
    const settings = agentSettings(config, agentId);
    const { allow } = settings.tools;
    const allowed = definition?.allow ?? (allow.length === 0 ? undefined : allow);
    return {
      id: agentId,
      runtime: "loop",
      definition,
      model: definition?.model ?? settings.model ?? defaultModel(env, config),
      system: definition?.system ?? settings.system,
      thinking: definition?.thinking ?? settings.thinking,
      cwd: definition?.cwd ?? settings.cwd,
      ...(allowed === undefined ? {} : { allow: allowed }),
      deny: definition?.deny ?? settings.tools.deny,
      ask: definition?.ask ?? settings.tools.ask,
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

  /** The same, as far as sessions reach it. */
  policy(agentId: string): AgentPolicy | null {
    const agent = this.find(agentId);
    if (agent === null) return null;
    const { id, model, cwd, sandboxed, roots, subagents, allow, deny, ask } = agent;
    const tools = {
      ...(allow === undefined ? {} : { allow }),
      deny,
      ...(ask.length === 0 ? {} : { ask }),
    };
    return { id, model, cwd, sandboxed, roots, tools, subagents };
  }

  get directory(): AgentDirectory {
    return { ids: this.ids, find: (agentId) => this.policy(agentId) };
  }

  /** Who may see whom. What `defaults` says holds for agents that nobody configured too. */
  get access(): AccessSettings {
    const { config } = this.#sources;
    const { sessions, agentToAgent } = config.tools;
    const general = { ...sessions.visibility, ...said(config.defaults.visibility) };
    const agents = this.ids.map((id) => [id, { visibility: this.find(id)?.visibility ?? null }]);
    return {
      tools: { sessions: { visibility: general }, agentToAgent },
      agents: Object.fromEntries(agents),
    };
  }

  /** How long a run of it may take where nothing else is said, also of one that nobody has defined; 0: no limit. */
  runTimeoutSeconds(agentId: string): number {
    const { runTimeoutSeconds } = agentSettings(this.#sources.config, agentId);
    return this.#definition(agentId)?.runTimeoutSeconds ?? runTimeoutSeconds;
  }

  #definition(agentId: string): AgentDefinition | null {
    return this.#sources.definitions.find(({ id }) => id === agentId) ?? null;
  }
}

/** The actions that something is said of. */
function said(visibility: AgentVisibility): Partial<VisibilityByAction> {
  return Object.fromEntries(Object.entries(visibility).filter(([, word]) => word !== null));
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
