import type { CallToolResult } from "@modelcontextprotocol/server";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { stringifyJson } from "../../core/json.ts";
import { present } from "../../core/present.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { SessionTool, ToolResult } from "../../tools/contract.ts";
import { isRefusal, refusalOf } from "../../tools/refusal.ts";
import { mayCall } from "../auth/principal.ts";
import { withoutPaths } from "../masking/without-paths.ts";
import type { McpAsker, McpParts } from "./contract.ts";
import { Follower } from "./progress.ts";
import { toolScope } from "./tool-listing.ts";

/** A call of a tool as it came in. */
export interface ToolRequest {
  readonly name: string;
  readonly args: unknown;
  readonly signal: AbortSignal;
  readonly idempotencyKey?: string;
  /** Left out: nobody asked for progress. */
  tell?(progress: number, message: string): void;
}

/** What somebody may name a call by, so that the same one again is done once. */
export const idempotencyMeta = "skein/idempotencyKey";

/** Calls a tool for an asker. A refusal is a result, marked as an error; only an unknown tool is none. */
export async function callTool(
  parts: McpParts,
  table: readonly SessionTool[],
  asker: McpAsker,
  request: ToolRequest,
): Promise<CallToolResult> {
  const tool = table.find(({ name }) => name === request.name);
  if (tool === undefined) throw unknownTool(request.name);
  const may = mayCall({ ...asker, user: null, expiresAt: null }, { scope: toolScope(tool) });
  if (may.allowed) return answerOf(await resultOf(parts, asker, request));
  const error = `${may.problem}, which ${tool.name} needs. ${may.advice}.`;
  return answerOf({ status: "forbidden", code: "forbidden", error });
}

/** The result of a tool for an asker, what is thrown as a refusal too. Only an abort throws. */
export async function resultOf(
  parts: McpParts,
  { tokenId, userId, sessionKey, scopes }: McpAsker,
  { name, args, signal, idempotencyKey, tell }: ToolRequest,
): Promise<ToolResult> {
  const follower = tell === undefined ? null : new Follower(tell);
  const leave = follower === null ? null : parts.subscribe(userId, (event) => follower.hear(event));
  try {
    const isOperator = scopes.includes("admin");
    const call = { tokenId, userId, isOperator, sessionKey, signal, ...present({ idempotencyKey }) };
    const { result } = await parts.callTool(name, args ?? {}, {
      ...call,
      ...(follower === null ? {} : { onWait: (runIds) => follower.follow(runIds) }),
    });
    return isOperator ? result : withoutPaths(result, isRefusal(result));
  } catch (error) {
    signal.throwIfAborted();
    return refusalOf(name, error, parts.report);
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
