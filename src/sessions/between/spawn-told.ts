import { isAcpKey } from "../../core/keys.ts";
import type { Run } from "../../runs/contract.ts";
import type { SessionRecord } from "../../store/contract.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { SpawnRequest } from "./spawn-request.ts";

/** What hooks are told of a child; the context is that of the session that spawns it. */
export interface ToldChild {
  readonly agentId: string;
  readonly runtime: SpawnRequest["runtime"];
  readonly task: string;
  readonly label: string | null;
  readonly ctx: RuntimeContext;
}

export function toldOf(
  { session }: { readonly session: SessionRecord },
  { task, label, runtime }: Pick<SpawnRequest, "task" | "label" | "runtime">,
  agentId: string,
): ToldChild {
  const { userId, key: sessionKey, sessionId, cwd, meta } = session;
  const { channel = null, delivery = null } = meta;
  const ctx = { userId, agentId: session.agentId, sessionKey, sessionId, cwd, channel, delivery };
  return { agentId, runtime, task, label: label ?? null, ctx };
}

/** The same of one that has ended; `null`: it is no child. */
export function toldOfEnd({ runId, session, options, outcome }: Run) {
  const { sequel } = options;
  if (sequel?.type !== "child" || outcome === null) return null;
  const { parent, task, label = null } = sequel;
  const { userId, agentId, key: childSessionKey } = session;
  const ctx: RuntimeContext = { userId, sessionKey: parent.key, sessionId: parent.sessionId };
  const { state, reply = null } = outcome;
  return {
    agentId,
    runtime: isAcpKey(childSessionKey) ? "acp" : "subagent",
    task,
    label,
    childSessionKey,
    runId,
    outcome: state,
    result: reply,
    ctx,
  } as const;
}
