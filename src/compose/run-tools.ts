import type { Run } from "../runs/contract.ts";
import type { Tool } from "../runtimes/contract.ts";
import type { ToolDefinition } from "../runtimes/tools/define-tool.ts";
import type { Selection, ToolLayer } from "../runtimes/tools/select-tools.ts";
import { isAskedAbout, joinTools, selectTools } from "../runtimes/tools/select-tools.ts";
import { childToolLayers, spawnerOf } from "../sessions/between/child-tools.ts";
import type { SubagentPolicy } from "../sessions/between/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { Agent } from "./agents.ts";
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
}

/** The tools of a run: what the agent defines and the sources offer, under what agent and run allow, and asked about as the rules say. */
export class RunTools {
  readonly #sources: readonly ToolSource[];
  readonly #prepared = new WeakMap<ToolDefinition, Promise<Tool>>();

  readonly #told = new Set<string>();
  readonly #report: (error: unknown) => void;
  readonly #subagents: (agentId: string) => Pick<SubagentPolicy, "tools"> | null;

  /** `subagents`: what an agent says of those that its sessions spawn; `null`: nothing. `report` is told once of each entry of an agent's `allow` and `ask` that fits no tool: most often a slip of the pen. */
  constructor(
    sources: readonly ToolSource[],
    report: (error: unknown) => void,
    subagents: (agentId: string) => Pick<SubagentPolicy, "tools"> | null = () => null,
  ) {
    this.#sources = sources;
    this.#report = report;
    this.#subagents = subagents;
  }

  /** `run` null: those that a run of the session would have. */
  async of(agent: Agent, run: Run | null, session: Pick<SessionRecord, "meta">): Promise<readonly Tool[]> {
    const defined = await Promise.all((agent.definition?.tools ?? []).map((tool) => this.#prepare(tool)));
    const own = layersOf(agent, run);
    const layers = [...own, ...this.#ofChild(agent, session)];
    const asked = this.#sources.filter(({ reach }) => reach === undefined || mayReach(reach, layers));
    const others = await Promise.all(
      asked.map(async (source) => {
        const offered = await source.tools();
        const isFree = ({ name }: Tool) => !defined.some((tool) => tool.name === name);
        return { from: source.from, tools: source.givesWay === true ? offered.filter(isFree) : offered };
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
    return tools.map((tool) => (isAskedAbout(tool, layers) ? { ...tool, needsApproval: () => true } : tool));
  }

  /** Entries, as rules have them, that fit no tool that an agent could have. */
  async unfit(agent: Agent, entries: readonly string[]): Promise<readonly string[]> {
    const { allow: _, ...free } = { ...agent, deny: [], ask: [] };
    const all = await this.of(free, null, { meta: {} });
    return selectTools(all, [{ of: "", allow: entries }]).unmatched.map(({ entry }) => entry);
  }

  /** The rules of a session that was spawned, as the agent that spawned it changes them. */
  #ofChild(agent: Agent, { meta }: Pick<SessionRecord, "meta">): readonly ToolLayer[] {
    return childToolLayers(meta, this.#subagents(spawnerOf(meta, agent.id)));
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

  /** Schemas are made ready once. */
  #prepare(definition: ToolDefinition): Promise<Tool> {
    const known = this.#prepared.get(definition);
    if (known !== undefined) return known;
    const made = import("../runtimes/tools/prepare-tool.ts").then(({ prepareTool }) =>
      prepareTool(definition),
    );
    this.#prepared.set(definition, made);
    return made;
  }
}

function layersOf({ id, allow, deny, ask }: Agent, run: Run | null): readonly ToolLayer[] {
  const wanted = run?.options.tools;
  return [
    { of: `agent ${id}`, ...(allow === undefined ? {} : { allow }), deny, ask },
    ...(wanted === undefined ? [] : [{ of: "this run", allow: wanted }]),
  ];
}
