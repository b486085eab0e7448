import type { Tool, ToolCallContext, TurnAbout } from "../agents/contract.ts";
import { deliveryId } from "../core/hashed-id.ts";
import { stringifyJson } from "../core/json.ts";
import { present } from "../core/present.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { SessionTool } from "./contract.ts";
import { modelParameters } from "./model-parameters.ts";
import { isRefusal } from "./refusal.ts";
import { runSessionTool } from "./run-session-tool.ts";

export const sessionsGroup = "group:sessions";

/** Whether a session is kept apart from what it did not spawn. */
export type IsSandboxed = (about: TurnAbout, session: SessionRecord | null) => boolean | Promise<boolean>;

/** A session tool as a turn calls it. Safe to call again: what it sets off has its name from the call. */
export function toRuntimeTool(tool: SessionTool, app: App, isSandboxed: IsSandboxed): Tool {
  return {
    name: tool.name,
    description: tool.description,
    inputSchema: modelParameters(tool.parameters),
    replay: "safe",
    groups: [sessionsGroup],
    ...present({ isLast: tool.isLast, persisted: tool.persisted }),
    needsApproval: () => false,
    // Everything passes: what is wrong with arguments is a refusal like any other.
    check: async (args) => ({ args }),
    execute: async (args, context) => {
      const caller = await callerOf(context, app, isSandboxed);
      const { result, sleep } = await runSessionTool(tool, args, caller, app);
      return {
        content: [{ type: "text", text: stringifyJson(result) }],
        isError: isRefusal(result),
        ...present({ sleep }),
      };
    },
  };
}

/** Who calls, in the middle of a run. */
export async function callerOf(
  context: ToolCallContext,
  { store, runs }: Pick<App, "store" | "runs">,
  isSandboxed: IsSandboxed,
): Promise<Caller> {
  const { about, entryId, toolCallId, signal } = context;
  const { userId, agentId, sessionId, runId } = about;
  const [session, run] = await Promise.all([
    store.sessions.get(present({ userId }), sessionId),
    runs.get(runId),
  ]);
  return {
    userId,
    agentId,
    session,
    sandboxed: await isSandboxed(about, session),
    run,
    callId: deliveryId(sessionId, entryId, toolCallId),
    entryId,
    signal,
    whileWaiting: (runIds, wait) => context.whileWaiting(runIds, wait),
  };
}
