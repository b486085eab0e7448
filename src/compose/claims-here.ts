import type { AgentDefinition } from "../agents/tools/define-agent.ts";
import { selectTools } from "../agents/tools/select-tools.ts";
import type { Channel } from "../channels/contract.ts";
import { isAcpKey } from "../core/keys.ts";
import type { EmbeddedOptions } from "../runs/embedded/books.ts";
import type { Acp } from "./acp.ts";
import type { Agents } from "./agents.ts";
import { appName } from "./app-name.ts";
import { layersOf } from "./tool-layers.ts";

export interface ClaimSources {
  readonly agents: Agents;
  readonly acp: Pick<Acp, "serves">;
  /** What the code brings. */
  readonly given: {
    readonly app?: string;
    readonly agents?: readonly AgentDefinition[];
    readonly channels?: readonly Channel[];
  };
  channels(): ReadonlyMap<string, Channel>;
}

/** The runs that this process claims, and the messages that it delivers. */
export function claimsHere(
  sources: ClaimSources,
): Pick<EmbeddedOptions, "app" | "agentHere" | "channelsHere"> {
  const { agents, acp, given } = sources;
  const own = given.channels ?? [];
  const hasCode = (given.agents ?? []).length + own.length > 0;
  const app = hasCode || given.app !== undefined ? appName(given.app) : "";
  return {
    app,
    agentHere: (agentId, key, wanted) => {
      if (isAcpKey(key)) return acp.serves(agentId, key) ? { app: null, tools: [] } : null;
      const agent = agents.find(agentId);
      if (agent === null) return null;
      if (agent.definition === null) return { app: null, tools: [] };
      const { tools } = selectTools(agent.definition.tools ?? [], layersOf(agent, wanted));
      return { app, tools: tools.map(({ name }) => name) };
    },
    channelsHere: () =>
      [...sources.channels().keys()].map((id) => ({
        id,
        app: own.some((channel) => channel.id === id) ? app : null,
      })),
  };
}
