import type { Tool } from "../agents/contract.ts";
import type { ToolDefinition } from "../agents/tools/define-tool.ts";
import type { Selection, ToolLayer, ToolRule } from "../agents/tools/select-tools.ts";
import { denialOf, isAskedAbout, joinTools, selectTools } from "../agents/tools/select-tools.ts";
import { matchesGlob } from "../core/glob.ts";
import type { Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { Agent, SubagentPolicy } from "./agents.ts";
import { childToolLayers, spawnerOf } from "./child-rules.ts";
import type { ActiveTools } from "./with-state.ts";

/** Tools as a model sees them, as far as they are known without starting a server. */
export interface OfferedTools {
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: Readonly<Record<string, unknown>>;
  }[];
  /** Servers that a turn would start first, and how the names of their tools begin. */
  readonly unlisted: readonly { readonly from: string; readonly prefix: string }[];
}

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
    const all = await this.of({ ...agent, tools: { deny: [] } }, null, { meta: {} });
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

/** What an agent says of the tools of those that its sessions spawn; `null`: nothing. */
export type SubagentRules = (agentId: string) => Pick<SubagentPolicy, "tools"> | null;

/** An agent as far as rules about tools go. */
export type RuledAgent = Pick<Agent, "id" | "tools">;

/** What agent and run allow. */
export function layersOf(
  { id, tools }: RuledAgent,
  wanted: readonly string[] | undefined,
): readonly ToolLayer[] {
  return [
    { of: `agent ${id}`, ...tools },
    ...(wanted === undefined ? [] : [{ of: "this run", allow: wanted }]),
  ];
}

/** With the rules of a session that was spawned, as the agent that spawned it changes them. */
export function toolLayers(
  agent: RuledAgent,
  run: Run | null,
  { meta }: Pick<SessionRecord, "meta">,
  subagents: SubagentRules,
): readonly ToolLayer[] {
  return [
    ...layersOf(agent, run?.options.tools),
    ...childToolLayers(meta, subagents(spawnerOf(meta, agent.id))),
  ];
}

/** What is known of the tools of a source before it is asked. */
export interface ToolReach {
  /** Every name begins with it. */
  readonly prefix: string;
  /** Every tool is in them, each with its prefix. */
  readonly groups: readonly string[];
}

const groupPrefix = "group:";

/** Whether rules may leave anything of a source; a source of which they leave nothing need not be asked. */
export function mayReach(reach: ToolReach, layers: readonly ToolRule[]): boolean {
  return layers.every(({ allow, deny = [] }) => {
    if (deny.some((entry) => fitsAll(entry, reach))) return false;
    return allow === undefined || allow.some((entry) => mayFit(entry, reach));
  });
}

/** Whether an entry of `allow` may mean one of its tools. */
export function mayFit(entry: string, { prefix, groups }: ToolReach): boolean {
  if (entry.startsWith(groupPrefix)) return groups.some((group) => matchesGlob(entry, group));
  const wanted = [...entry];
  const begin = [...prefix];
  const star = wanted.indexOf("*");
  const fixed = star === -1 ? wanted : wanted.slice(0, star);
  if (star === -1 && fixed.length < begin.length) return false;
  return begin.every((sign, at) => {
    const here = fixed[at];
    return here === undefined || here === "?" || here === sign;
  });
}

function fitsAll(entry: string, { prefix, groups }: ToolReach): boolean {
  if (entry.startsWith(groupPrefix)) return groups.some((group) => matchesGlob(entry, group));
  return entry.endsWith("*") && matchesGlob(entry, prefix);
}

/** A tool as far as a request has it. */
export type ListedTool = Pick<Tool, "name" | "description" | "inputSchema" | "groups">;

/** What is known of a source without starting anything; `null`: it has told nobody yet. */
export interface ListedSource {
  readonly from: string;
  readonly reach?: ToolReach | undefined;
  readonly tools: readonly ListedTool[] | null;
}

/** The tools that a turn under these rules would be offered, and the sources that it would ask first. */
export function offeredTools(sources: readonly ListedSource[], layers: readonly ToolLayer[]): OfferedTools {
  const reached = sources.filter(({ reach }) => reach === undefined || mayReach(reach, layers));
  const listed = reached.flatMap(({ from, tools }) => (tools === null ? [] : [{ from, tools }]));
  const { tools } = selectTools(joinTools(listed), layers);
  const unlisted = reached.filter((source) => source.tools === null);
  return {
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    unlisted: unlisted.map(({ from, reach }) => ({ from, prefix: reach?.prefix ?? "" })),
  };
}

export interface UngrantedTools {
  /** Entries that fit no tool of the child's agent. */
  readonly unknown: readonly string[];
  /** Names of tools that the rules about the child take away. */
  readonly denied: readonly string[];
}
