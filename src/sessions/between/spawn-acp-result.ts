import { present } from "../../core/present.ts";
import type { Run } from "../../runs/contract.ts";
import { agentSessionIdOf } from "./agent-session-id.ts";
import type { BetweenDeps, Caller } from "./contract.ts";
import type { SpawnNames } from "./spawn-names.ts";
import type { SpawnRequest } from "./spawn-request.ts";
import type { SpawnResult } from "./spawn-result.ts";
import { circle, endOf, late, pushed } from "./spawn-result.ts";
import { awaitChild } from "./spawn-wait.ts";

const endedAlready = "It has ended already: this is its result, and no message follows.";
const untold = "The agent has not told the id of its session yet.";

/**
 * What a spawn over ACP answers, once the agent has told its session, or at the end if that is asked for. A run that ends
 * before is the answer itself, and then nothing is announced.
 */
export async function acpResult(
  deps: BetweenDeps,
  caller: Caller,
  { background, mode }: SpawnRequest,
  { key, runId }: SpawnNames,
  run: Run,
): Promise<SpawnResult> {
  const linked = () => deps.acp.untilAgentSessionId(run, caller.signal);
  const waited = await awaitChild(deps, caller, runId, background ? linked : undefined);
  const agentSessionId = await agentSessionIdOf(deps.store, run.session);
  const { sequel, deliverTo } = run.options;
  const told = {
    status: "ok",
    runId,
    ...present({ threadId: deliverTo?.threadId, agentSessionId }),
    childSessionKey: key,
    ...present({ label: sequel?.type === "child" ? sequel.label : undefined }),
    mode,
  };
  if (waited === "circle") return { ...told, code: "wait_cycle", note: circle };
  if (waited === "late") return { ...told, note: lateNote(background, agentSessionId) };
  const { state, outcome } = waited;
  if (agentSessionId === null && outcome?.state !== "ok") {
    const { code = outcome?.state ?? state, error = `The run of the agent ended as ${state}.` } =
      outcome ?? {};
    return { status: "error", runId, childSessionKey: key, outcome: outcome?.state ?? state, code, error };
  }
  return { ...told, ...(background ? { note: endedAlready } : {}), ...endOf(waited) };
}

function lateNote(background: boolean, agentSessionId: string | null): string {
  if (!background) return late;
  return agentSessionId === null ? `${untold} ${pushed}` : pushed;
}
