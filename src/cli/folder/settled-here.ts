import type { Run } from "../../runs/contract.ts";
import type { OpenSkein } from "./with-skein.ts";

const open = ["queued", "running", "waiting", "sleeping"] as const;

/**
 * Until one request and all that it set off has ended, or nothing is left of it but what waits for agents that are not
 * configured here: nobody could say when that ends. Gives these agents.
 */
export async function settledHere(
  { skein, config }: Pick<OpenSkein, "skein" | "config">,
  rootId: string,
): Promise<readonly string[]> {
  const enough = new AbortController();
  const isElsewhere = ({ state, session }: Run) =>
    state === "queued" && !Object.hasOwn(config.agents, session.agentId);
  const elsewhere = async () => {
    const left = await skein.runs({ rootId, states: open });
    const others = left.filter(isElsewhere);
    const isAll = left.every((run) => isElsewhere(run) || run.state === "sleeping");
    return isAll ? [...new Set(others.map(({ session }) => session.agentId))] : [];
  };
  let agents: readonly string[] = [];
  const look = async () => {
    if (enough.signal.aborted) return;
    agents = await elsewhere();
    if (agents.length > 0) enough.abort();
  };
  const failed = (error: unknown) => enough.abort(error);
  const leave = skein.subscribe(({ type }) => {
    if (type === "run.ended" || type === "run.sleeping") void look().catch(failed);
  });
  try {
    await look();
    await skein.settled(rootId, enough.signal);
  } catch (error) {
    if (agents.length === 0) throw error;
  } finally {
    leave();
  }
  return agents;
}

export function leftTo(agents: readonly string[]): string {
  return `left for a process that has ${agents.join(", ")}: ${agents.length === 1 ? "this agent is" : "these agents are"} not configured here`;
}
