import { agentSettings } from "../config/agent-settings.ts";
import { defaultModel } from "../config/default-model.ts";
import type { Config } from "../config/sections/all.ts";
import type { Environment } from "../config/variables.ts";
import type { AgentDefinition } from "../runtimes/tools/define-agent.ts";
import { ActiveTools } from "../sessions/active-tools.ts";
import type { AgentProfile } from "../sessions/running/contract.ts";

export interface Agent extends AgentProfile {
  readonly definition: AgentDefinition | null;
  readonly cwd: string | null;
  /** Left out: all. */
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
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
    if (!this.ids.includes(agentId)) return null;
    const { config, env } = this.#sources;
    const definition = this.#definition(agentId);
    const settings = agentSettings(config, agentId);
    const { allow } = settings.tools;
    const allowed = definition?.allow ?? (allow.length === 0 ? undefined : allow);
    return {
      id: agentId,
      definition,
      model: definition?.model ?? settings.model ?? defaultModel(env, config),
      system: definition?.system ?? settings.system,
      thinking: definition?.thinking ?? settings.thinking,
      cwd: definition?.cwd ?? settings.cwd,
      ...(allowed === undefined ? {} : { allow: allowed }),
      deny: definition?.deny ?? settings.tools.deny,
      maxSteps: definition?.maxSteps ?? settings.maxSteps,
      maxOutputTokens: definition?.maxOutputTokens ?? null,
      state: () => [new ActiveTools(), ...stateOf(definition)],
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

function stateOf(definition: AgentDefinition | null) {
  const { state = [] } = definition ?? {};
  return typeof state === "function" ? state() : state;
}
