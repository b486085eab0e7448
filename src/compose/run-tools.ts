import type { Tool } from "../agents/contract.ts";
import type { ToolDefinition } from "../agents/tools/define-tool.ts";
import type { Selection, ToolLayer } from "../agents/tools/select-tools.ts";
import { denialOf, isAskedAbout, joinTools, selectTools } from "../agents/tools/select-tools.ts";
import type { Run } from "../runs/contract.ts";
import type { ActiveTools } from "../sessions/active-tools.ts";
import type { UngrantedTools } from "../sessions/between/contract.ts";
import type { OfferedTools } from "../sessions/skein/skein.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { Agent } from "./agents.ts";
import { offeredTools } from "./offered-tools.ts";
import type { RuledAgent, SubagentRules } from "./tool-layers.ts";
import { layersOf, toolLayers } from "./tool-layers.ts";
import type { ToolReach } from "./tool-reach.ts";
import { mayFit, mayReach } from "./tool-reach.ts";

/** Tools that come from elsewhere: MCP servers, and those of Skein itself. */
export interface ToolSource {
  readonly from: string;
  /** Left out: it is always asked. */
  readonly reach?: ToolReach;
  /** A tool of the agent's own goes before one of the same name. Left out: two of one name are a conflict. */
  readonly givesWay?: boolean;
  tools(): Promise<readonly Tool[]>;
  /** What it has told last, without being asked; `null`: nothing yet. Left out: asking it starts nothing. */
  told?(): readonly Tool[] | null;
}

/** The tools of a run: what the agent defines and the sources offer, under what agent and run allow, and asked about as the rules say. */
export class RunTools {
  readonly #sources: readonly ToolSource[];
  readonly #prepared = new WeakMap<ToolDefinition, Promise<Tool>>();

  readonly #told = new Set<string>();
  readonly #report: (error: unknown) => void;
  readonly #subagents: SubagentRules;

  /** `subagents`: what an agent says of those that its sessions spawn; `null`: nothing. `report` is told once of each entry of an agent's `allow` and `ask` that fits no tool: most often a slip of the pen. */
  constructor(
    sources: readonly ToolSource[],
    report: (error: unknown) => void,
    subagents: SubagentRules = () => null,
  ) {
    this.#sources = sources;
    this.#report = report;
    this.#subagents = subagents;
  }

  /** `run` null: those that a run of the session would have. */
  async of(agent: Agent, run: Run | null, session: Pick<SessionRecord, "meta">): Promise<readonly Tool[]> {
    const defined = await this.#definedBy(agent);
    const own = layersOf(agent, run?.options.tools);
    const layers = toolLayers(agent, run, session, this.#subagents);
    const asked = this.#sources.filter(({ reach }) => reach === undefined || mayReach(reach, layers));
    const others = await Promise.all(
      asked.map(async (source) => {
        const offered = await source.tools();
        return { from: source.from, tools: besideDefined(source, offered, defined) };
      }),
    );
    const all = joinTools([{ from: `agent ${agent.id}`, tools: defined }, ...others]);
    const { tools, unmatched } = selectTools(all, layers);
    const silent = this.#sources.filter(
      ({ from }) => !others.some((each) => each.from === from && each.tools.length > 0),
    );
    // What a parent may use need not be there for its child: only the agent's and the run's entries are slips.
    const slips = unmatched.filter(({ of }) => own.some((layer) => layer.of === of));
    this.#tellOf(agent.id, slips, silent);
    return tools.map((tool) => underApproval(tool, layers));
  }

  /** One tool under the rules of a session, without asking any source: as it may be called, or why it may not. */
  rule(
    agent: RuledAgent,
    session: Pick<SessionRecord, "meta">,
    tool: Tool,
  ): Tool | { readonly denied: string } {
    const layers = toolLayers(agent, null, session, this.#subagents);
    const denied = denialOf(tool, layers);
    return denied === null ? underApproval(tool, layers) : { denied };
  }

  /** Why a tool of the agent, or of a source that has listed its tools, may not be called; `null`: there is no such tool. */
  async denial(agent: Agent, session: Pick<SessionRecord, "meta">, name: string): Promise<string | null> {
    const listed = this.#sources.flatMap((source) => source.told?.() ?? []);
    const tool = [...(await this.#definedBy(agent)), ...listed].find((each) => each.name === name);
    const ruled = tool === undefined ? null : this.rule(agent, session, tool);
    return ruled !== null && "denied" in ruled ? ruled.denied : null;
  }

  /** Those that a run of the session would have, as far as they are known without starting anything. */
  async offered(
    agent: Agent,
    session: Pick<SessionRecord, "meta">,
    active: ActiveTools,
    run: Run | null = null,
  ): Promise<OfferedTools> {
    const defined = await this.#definedBy(agent);
    const listed = await Promise.all(
      this.#sources.map(async (source) => {
        const told = source.told === undefined ? await source.tools() : source.told();
        const { from, reach } = source;
        const tools = told === null ? null : besideDefined(source, told, defined);
        return { from, reach, tools: tools?.filter((tool) => active.offers(tool, agent.onDemand)) ?? null };
      }),
    );
    const own = defined.filter((tool) => active.offers(tool, agent.onDemand));
    const layers = toolLayers(agent, run, session, this.#subagents);
    return offeredTools([{ from: `agent ${agent.id}`, tools: own }, ...listed], layers);
  }

  /** What of these entries a session does not get: entries that fit no tool of its agent, and tools that are denied to it. */
  async ungranted(
    agent: Agent,
    session: Pick<SessionRecord, "meta">,
    entries: readonly string[],
  ): Promise<UngrantedTools> {
    const { allow: _, ...free } = { ...agent, deny: [], ask: [] };
    const all = await this.of(free, null, { meta: {} });
    const { tools, unmatched } = selectTools(all, [{ of: "", allow: entries }]);
    const granted = new Set((await this.of(agent, null, session)).map(({ name }) => name));
    const denied = tools.map(({ name }) => name).filter((name) => !granted.has(name));
    return { unknown: unmatched.map(({ entry }) => entry), denied };
  }

  /** A source that was not asked, or is down, may have what an entry means. */
  #tellOf(agentId: string, unmatched: Selection<Tool>["unmatched"], silent: readonly ToolSource[]): void {
    for (const { of, entry, note } of unmatched) {
      const key = JSON.stringify([agentId, entry]);
      const isOpen = silent.some(({ reach }) => reach !== undefined && mayFit(entry, reach));
      if (isOpen || this.#told.has(key)) continue;
      this.#told.add(key);
      this.#report(new Error(of === `agent ${agentId}` ? note : `Agent ${agentId}: ${note}`));
    }
  }

  #definedBy({ definition }: Agent): Promise<readonly Tool[]> {
    return Promise.all((definition?.tools ?? []).map((tool) => this.#prepare(tool)));
  }

  /** Schemas are made ready once. */
  #prepare(definition: ToolDefinition): Promise<Tool> {
    const known = this.#prepared.get(definition);
    if (known !== undefined) return known;
    const made = import("../agents/tools/prepare-tool.ts").then(({ prepareTool }) => prepareTool(definition));
    this.#prepared.set(definition, made);
    return made;
  }
}

function underApproval(tool: Tool, layers: readonly ToolLayer[]): Tool {
  return isAskedAbout(tool, layers) ? { ...tool, needsApproval: () => true } : tool;
}

function besideDefined({ givesWay }: ToolSource, offered: readonly Tool[], defined: readonly Tool[]) {
  if (givesWay !== true) return offered;
  return offered.filter(({ name }) => !defined.some((tool) => tool.name === name));
}
