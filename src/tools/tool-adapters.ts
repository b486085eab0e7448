import type { Tool, ToolCallContext, TurnAbout } from "../agents/contract.ts";
import { deliveryId } from "../core/hashed-id.ts";
import { stringifyJson } from "../core/json.ts";
import { present } from "../core/present.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { SessionRecord } from "../store/contract.ts";
import { runSessionTool } from "./run-session-tool.ts";
import type { SessionTool, ToolResult } from "./session-tool.ts";
import { isRefusal, modelParameters } from "./session-tool.ts";

export const sessionsGroup = "group:sessions";

/** Whether a session is isolated from everything outside its own tree. */
export type IsSandboxed = (about: TurnAbout, session: SessionRecord | null) => boolean | Promise<boolean>;

/**
 * Converts a session tool to a tool for a turn. Retrying a call is safe because the call's ID identifies whatever it
 * starts.
 */
export function toRuntimeTool(tool: SessionTool, app: App, isSandboxed: IsSandboxed): Tool {
  return {
    name: tool.name,
    description: tool.description,
    inputSchema: modelParameters(tool.parameters),
    replay: "safe",
    groups: [sessionsGroup],
    ...present({ isLast: tool.isLast, persisted: tool.persisted }),
    needsApproval: () => false,
    // Accepts any arguments because the tool itself rejects invalid ones.
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

/** Returns the caller within a run. */
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

/** A call from an external loop. */
export interface ForeignCall {
  readonly toolCallId: string;
  readonly signal: AbortSignal | null;
}

type RunForeign = (name: string, args: unknown, call: ForeignCall) => Promise<ToolResult>;

/** A tool in the AI SDK's format that does not depend on the AI SDK. */
export interface ForeignTool {
  readonly description: string;
  readonly inputSchema: ForeignSchema;
  execute(
    args: unknown,
    call: { readonly toolCallId: string; readonly abortSignal?: AbortSignal | undefined },
  ): Promise<ToolResult>;
}

/**
 * A Standard Schema that wraps a JSON Schema. It accepts any arguments because the tool itself rejects invalid ones.
 */
interface ForeignSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "skein";
    validate(value: unknown): { readonly value: unknown };
    readonly jsonSchema: {
      input(options?: unknown): Record<string, unknown>;
      output(options?: unknown): Record<string, unknown>;
    };
  };
}

/** Returns tools for an external loop, keyed by name. Each tool calls `run`. An external loop cannot yield. */
export function foreignTools(run: RunForeign, tools: readonly ToolInfo[]): Record<string, ForeignTool> {
  return Object.fromEntries(tools.map((tool) => [tool.name, foreignTool(run, tool)]));
}

type ToolInfo = Pick<SessionTool, "name" | "description" | "parameters">;

const noSleep: ToolResult = {
  status: "error",
  code: "yield_not_supported",
  error: "Yield not supported in this context",
};

function foreignTool(run: RunForeign, { name, description, parameters }: ToolInfo): ForeignTool {
  return {
    description,
    inputSchema: schemaOf(parameters),
    execute: async (args, { toolCallId, abortSignal }) =>
      name === "sessions_yield" ? noSleep : run(name, args, { toolCallId, signal: abortSignal ?? null }),
  };
}

function schemaOf(parameters: SessionTool["parameters"]): ForeignSchema {
  const written = () => ({ ...modelParameters(parameters) });
  return {
    "~standard": {
      version: 1,
      vendor: "skein",
      validate: (value) => ({ value }),
      jsonSchema: { input: written, output: written },
    },
  };
}
