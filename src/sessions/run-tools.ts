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

/** The tools that a model would be offered, as far as they can be determined without starting a server. */
export interface OfferedTools {
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: Readonly<Record<string, unknown>>;
  }[];
  /** Servers that a turn would have to start first, and the prefixes of their tool names. */
  readonly unlisted: readonly { readonly from: string; readonly prefix: string }[];
}

/** Tools that do not belong to the agent: those from MCP servers, and Skein's own session tools. */
export interface ToolSource {
  readonly from: string;
  /** If absent, the source is always queried. */
  readonly reach?: ToolReach;
  /**
   * `true` if an agent's own tool replaces a tool with the same name from this source. Otherwise, a duplicate name is a
   * conflict.
   */
  readonly givesWay?: boolean;
  tools(): Promise<readonly Tool[]>;
  /**
   * Returns the tools that the source last listed, without querying it, or `null` if it has not listed any. Absent if
   * querying the source starts nothing.
   */
  lastListed?(): readonly Tool[] | null;
}

/**
 * The tools for runs: the agent's own tools and the tools from the sources, filtered by the rules of the agent, the run
 * and the session.
 */
export class RunTools {
  readonly #sources: readonly ToolSource[];
  readonly #prepared = new WeakMap<ToolDefinition, Promise<Tool>>();

  readonly #reported = new Set<string>();
  readonly #report: (error: unknown) => void;
  readonly #subagents: SubagentRules;

  /**
   * `report` receives one error for each entry in an agent's `allow` and `ask` that matches no tool. Such an entry is
   * usually a typo.
   */
  constructor(
    sources: readonly ToolSource[],
    report: (error: unknown) => void,
    subagents: SubagentRules = () => null,
  ) {
    this.#sources = sources;
    this.#report = report;
    this.#subagents = subagents;
  }

  /** Returns the tools for a run. If `run` is `null`, returns the tools that a run in the session would be offered. */
  async of(agent: Agent, run: Run | null, session: Pick<SessionRecord, "meta">): Promise<readonly Tool[]> {
    const defined = await this.#definedBy(agent);
    const own = layersOf(agent, run?.options.tools);
    const layers = toolLayers(agent, run, session, this.#subagents);
    const asked = this.#sources.filter(({ reach }) => reach === undefined || mayReach(reach, layers));
    const others = await Promise.all(
      asked.map(async (source) => {
        const offered = await source.tools();
        return { from: source.from, tools: withoutDefined(source, offered, defined) };
      }),
    );
    const all = joinTools([{ from: `agent ${agent.id}`, tools: defined }, ...others]);
    const { tools, unmatched } = selectTools(all, layers);
    const silent = this.#sources.filter(
      ({ from }) => !others.some((each) => each.from === from && each.tools.length > 0),
    );
    // A child's rules can name tools that only its parent has, so only the agent's and the run's entries are reported.
    const typos = unmatched.filter(({ of }) => own.some((layer) => layer.of === of));
    this.#reportUnmatched(agent.id, typos, silent);
    return tools.map((tool) => underApproval(tool, layers));
  }

  /**
   * Applies a session's rules to one tool without querying a source. Returns the tool, or why it is denied.
   */
  rule(
    agent: RuledAgent,
    session: Pick<SessionRecord, "meta">,
    tool: Tool,
  ): Tool | { readonly denied: string } {
    const layers = toolLayers(agent, null, session, this.#subagents);
    const denied = denialOf(tool, layers);
    return denied === null ? underApproval(tool, layers) : { denied };
  }

  /** Returns why a tool is denied, or `null` if neither the agent nor a listed source has such a tool. */
  async denial(agent: Agent, session: Pick<SessionRecord, "meta">, name: string): Promise<string | null> {
    const listed = this.#sources.flatMap((source) => source.lastListed?.() ?? []);
    const tool = [...(await this.#definedBy(agent)), ...listed].find((each) => each.name === name);
    const ruled = tool === undefined ? null : this.rule(agent, session, tool);
    return ruled !== null && "denied" in ruled ? ruled.denied : null;
  }

  /**
   * Returns the tools that a run in the session would be offered, as far as they can be determined without starting
   * anything.
   */
  async offered(
    agent: Agent,
    session: Pick<SessionRecord, "meta">,
    active: ActiveTools,
    run: Run | null = null,
  ): Promise<OfferedTools> {
    const defined = await this.#definedBy(agent);
    const listed = await Promise.all(
      this.#sources.map(async (source) => {
        const known = source.lastListed === undefined ? await source.tools() : source.lastListed();
        const { from, reach } = source;
        const tools = known === null ? null : withoutDefined(source, known, defined);
        return { from, reach, tools: tools?.filter((tool) => active.offers(tool, agent.onDemand)) ?? null };
      }),
    );
    const own = defined.filter((tool) => active.offers(tool, agent.onDemand));
    const layers = toolLayers(agent, run, session, this.#subagents);
    return offeredTools([{ from: `agent ${agent.id}`, tools: own }, ...listed], layers);
  }

  /**
   * Returns the entries that have no effect in a session: those that match none of its agent's tools, and those that
   * are denied.
   */
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

  /** Reports unmatched entries, except those that could match a source that has not been queried or is down. */
  #reportUnmatched(
    agentId: string,
    unmatched: Selection<Tool>["unmatched"],
    silent: readonly ToolSource[],
  ): void {
    for (const { of, entry, note } of unmatched) {
      const key = JSON.stringify([agentId, entry]);
      const isOpen = silent.some(({ reach }) => reach !== undefined && mayFit(entry, reach));
      if (isOpen || this.#reported.has(key)) continue;
      this.#reported.add(key);
      this.#report(new Error(of === `agent ${agentId}` ? note : `Agent ${agentId}: ${note}`));
    }
  }

  #definedBy({ definition }: Agent): Promise<readonly Tool[]> {
    return Promise.all((definition?.tools ?? []).map((tool) => this.#prepare(tool)));
  }

  /** Prepares a definition's schemas only once. */
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

function withoutDefined({ givesWay }: ToolSource, offered: readonly Tool[], defined: readonly Tool[]) {
  if (givesWay !== true) return offered;
  return offered.filter(({ name }) => !defined.some((tool) => tool.name === name));
}

/** Returns an agent's tool settings for the sessions it spawns, or `null` if there are none. */
type SubagentRules = (agentId: string) => Pick<SubagentPolicy, "tools"> | null;

/** The part of an agent that tool rules need. */
type RuledAgent = Pick<Agent, "id" | "tools">;

/** Returns the rules of the agent and the run. */
export function layersOf(
  { id, tools }: RuledAgent,
  wanted: readonly string[] | undefined,
): readonly ToolLayer[] {
  return [
    { of: `agent ${id}`, ...tools },
    ...(wanted === undefined ? [] : [{ of: "this run", allow: wanted }]),
  ];
}

/** Returns the rules of the agent and the run and, for a spawned session, the rules of its spawn. */
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

/** What is known about a source's tools before the source is queried. */
export interface ToolReach {
  /** The prefix that all of its tool names share. */
  readonly prefix: string;
  /** The groups that all of its tools belong to. */
  readonly groups: readonly string[];
}

const groupPrefix = "group:";

/** Whether the rules could allow any of a source's tools. If not, the source does not need to be queried. */
export function mayReach(reach: ToolReach, layers: readonly ToolRule[]): boolean {
  return layers.every(({ allow, deny = [] }) => {
    if (deny.some((entry) => fitsAll(entry, reach))) return false;
    return allow === undefined || allow.some((entry) => mayFit(entry, reach));
  });
}

/** Whether an entry in `allow` could match one of the source's tools. */
function mayFit(entry: string, { prefix, groups }: ToolReach): boolean {
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

/** The part of a tool that is included in a request. */
export type ListedTool = Pick<Tool, "name" | "description" | "inputSchema" | "groups">;

/**
 * A source's known tools, determined without starting anything. `tools` is `null` if the source has not listed any yet.
 */
interface ListedSource {
  readonly from: string;
  readonly reach?: ToolReach | undefined;
  readonly tools: readonly ListedTool[] | null;
}

/** Returns the tools that a turn under these rules would be offered and the sources that it would query first. */
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

interface UngrantedTools {
  /** Entries that match none of the child agent's tools. */
  readonly unknown: readonly string[];
  /** Tools that the child's rules deny. */
  readonly denied: readonly string[];
}
