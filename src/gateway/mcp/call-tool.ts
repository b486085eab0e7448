import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { SkeinEvent } from "../../core/events.ts";
import { stringifyJson } from "../../core/json.ts";
import { present } from "../../core/present.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { SessionTool, ToolResult } from "../../tools/session-tool.ts";
import { isRefusal, modelParameters, refusalOf } from "../../tools/session-tool.ts";
import { removePaths } from "../auth/mask.ts";
import type { TokenScope } from "../auth/principal.ts";
import { mayCall } from "../auth/principal.ts";
import type { McpAsker, McpBackend } from "./mcp-context.ts";

/** A tool call from an MCP client. */
export interface ToolRequest {
  readonly name: string;
  readonly args: unknown;
  readonly signal: AbortSignal;
  readonly idempotencyKey?: string;
  /** Reports progress. Absent if the client did not request it. */
  tell?(progress: number, message: string): void;
}

/** The field in `_meta` that contains the idempotency key of a call. */
export const idempotencyMeta = "skein/idempotencyKey";

/**
 * Calls a tool. A rejected call returns a result with `isError`. Throws only if the tool is unknown or the call is
 * aborted.
 */
export async function callTool(
  app: McpBackend,
  table: readonly SessionTool[],
  asker: McpAsker,
  request: ToolRequest,
): Promise<CallToolResult> {
  const tool = table.find(({ name }) => name === request.name);
  if (tool === undefined) throw unknownTool(request.name);
  const may = mayCall({ ...asker, user: null, expiresAt: null }, { scope: toolScope(tool) });
  if (may.allowed) return answerOf(await resultOf(app, asker, request));
  const error = `${may.problem}, which ${tool.name} requires. ${may.advice}.`;
  return answerOf({ status: "forbidden", code: "forbidden", error });
}

/** Calls a tool and returns its result. Errors are returned as results. Only an abort throws. */
export async function resultOf(
  app: McpBackend,
  { tokenId, userId, sessionKey, scopes }: McpAsker,
  { name, args, signal, idempotencyKey, tell }: ToolRequest,
): Promise<ToolResult> {
  const follower = tell === undefined ? null : new RunFollower(tell);
  const leave = follower === null ? null : app.subscribe(userId, (event) => follower.hear(event));
  try {
    const isOperator = scopes.includes("admin");
    const call = { tokenId, userId, isOperator, sessionKey, signal, ...present({ idempotencyKey }) };
    const { result } = await app.callTool(name, args ?? {}, {
      ...call,
      ...(follower === null ? {} : { onWait: (runIds) => follower.follow(runIds) }),
    });
    return isOperator ? result : removePaths(result, isRefusal(result));
  } catch (error) {
    signal.throwIfAborted();
    return refusalOf(name, error, app.report);
  } finally {
    leave?.();
  }
}

function answerOf(result: ToolResult): CallToolResult {
  return {
    content: [{ type: "text", text: stringifyJson(result) }],
    structuredContent: { ...result },
    ...(isRefusal(result) ? { isError: true } : {}),
  };
}

function unknownTool(name: string): ProtocolError {
  const shown = escapeToLine(cutText(name, 100));
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${shown}. See tools/list.`);
}

/** Returns the scope that a tool requires. */
export function toolScope({ isReadOnly = false }: Pick<SessionTool, "isReadOnly">): TokenScope {
  return isReadOnly ? "read" : "write";
}

/** Returns the tools that a token with these scopes can call. */
export function toolsFor(
  table: readonly SessionTool[],
  scopes: readonly TokenScope[],
): readonly SessionTool[] {
  return table.filter((tool) => scopes.includes(toolScope(tool)));
}

export function toolListing(tool: SessionTool): Tool {
  const { name, label, description, parameters, output } = tool;
  const isReadOnly = tool.isReadOnly ?? false;
  return {
    name,
    title: label,
    description,
    inputSchema: { ...modelParameters(parameters), type: "object" },
    ...(output === undefined ? {} : { outputSchema: { ...output, type: "object" } }),
    annotations: {
      title: label,
      readOnlyHint: isReadOnly,
      destructiveHint: tool.isDestructive ?? false,
      idempotentHint: isReadOnly,
      // The work is done by agents, whose tools can access anything.
      openWorldHint: !isReadOnly,
    },
  };
}

/**
 * Returns the progress text for a step in a run, or `null` if the step is not reported. It contains only names, because
 * text is not redacted here.
 */
export function stepText(event: SkeinEvent): string | null {
  switch (event.type) {
    case "run.queued":
      return "A run is queued.";
    case "run.started":
      return "A run has started.";
    case "run.step":
      return event.phase === "asked" ? `Step ${event.step}: calling the model.` : null;
    case "run.tool":
      return event.phase === "call" ? `Calling the tool ${escapeToLine(event.toolName)}.` : null;
    case "run.retry":
      return "Calling the model again.";
    case "run.compaction":
      return event.phase === "started" ? "Compacting the conversation." : null;
    case "run.waiting":
      return event.for === "approval"
        ? "A call is waiting for approval."
        : "The run is waiting for another run.";
    case "run.sleeping":
      return "The run is sleeping until the results it is waiting for arrive.";
    case "run.resumed":
      return "The run continues.";
    case "run.ended":
      return `A run has ended: ${event.state}.`;
    default:
      return null;
  }
}

/** Follows runs and the runs that they start. */
export class RunFollower {
  readonly #runs = new Set<string>();
  readonly #tell: (progress: number, message: string) => void;
  #told = 0;

  constructor(tell: (progress: number, message: string) => void) {
    this.#tell = tell;
  }

  follow(runIds: readonly string[]): void {
    for (const runId of runIds) this.#runs.add(runId);
    this.#say("Waiting for the reply.");
  }

  hear(event: SkeinEvent): void {
    if (event.runId === undefined) return;
    if (event.type === "run.queued" && event.startedBy !== undefined && this.#runs.has(event.startedBy))
      this.#runs.add(event.runId);
    const text = this.#runs.has(event.runId) ? stepText(event) : null;
    if (text !== null) this.#say(text);
  }

  /** Reports a progress value that is higher than the previous one. The total is unknown. */
  #say(message: string): void {
    this.#told += 1;
    this.#tell(this.#told, message);
  }
}
