import type { Run } from "../runs/contract.ts";
import type { Tool } from "../runtimes/contract.ts";
import type { ToolDefinition } from "../runtimes/tools/define-tool.ts";
import { joinTools, selectTools } from "../runtimes/tools/select-tools.ts";
import type { Agent } from "./agents.ts";

/** Tools that come from elsewhere: MCP servers, and those of Skein itself. */
export interface ToolSource {
  readonly from: string;
  tools(): Promise<readonly Tool[]>;
}

/** The tools of a run: what the agent defines and the sources offer, under what agent and run allow. */
export class RunTools {
  readonly #sources: readonly ToolSource[];
  readonly #prepared = new WeakMap<ToolDefinition, Promise<Tool>>();

  constructor(sources: readonly ToolSource[]) {
    this.#sources = sources;
  }

  async of(agent: Agent, run: Run): Promise<readonly Tool[]> {
    const own = await Promise.all((agent.definition?.tools ?? []).map((tool) => this.#prepare(tool)));
    const others = await Promise.all(
      this.#sources.map(async (source) => ({ from: source.from, tools: await source.tools() })),
    );
    const all = joinTools([{ from: `agent ${agent.id}`, tools: own }, ...others]);
    const { allow, deny } = agent;
    const { tools: wanted } = run.options;
    const layers = [
      { of: `agent ${agent.id}`, ...(allow === undefined ? {} : { allow }), deny },
      ...(wanted === undefined ? [] : [{ of: "this run", allow: wanted }]),
    ];
    return selectTools(all, layers).tools;
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
