import { mapStrings } from "../access/redaction/map-strings.ts";
import { SkeinError } from "../core/errors.ts";
import { stringifyJson } from "../core/json.ts";
import { withoutPathsOutside } from "../core/text.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import { readArguments } from "./arguments.ts";
import type { SessionTool, ToolAnswer, ToolResult } from "./contract.ts";
import { isRefusal, refusalOf } from "./refusal.ts";

/**
 * One call of a session tool, the same on every surface: the arguments read, what goes wrong as a refusal, nothing secret
 * in the result. Only what ends the run throws: an abort, and a write under a lost fence.
 */
export async function runSessionTool(
  tool: SessionTool,
  rawArgs: unknown,
  call: Caller,
  app: App,
): Promise<ToolAnswer> {
  const redacted = (result: ToolResult) => {
    const safe = app.redactor.redactJson(result).value as ToolResult;
    return isRefusal(safe) ? hidePaths(safe, call) : safe;
  };
  try {
    const answer = await tool.execute(readArguments(tool, rawArgs), call, app);
    const result = plain(answer.result);
    // A refusal tells what was asked for, and what failed: no tool has made that safe.
    const isSafe = tool.isRedacted === true && !isRefusal(result);
    return { ...answer, result: isSafe ? result : redacted(result) };
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof SkeinError && error.code === "fenced") throw error;
    const refusal = refusalOf(tool.name, error, app.report);
    return { result: redacted(plain({ ...refusal, ...tool.refused?.(call) })) };
  }
}

/** Models of other users, and sandboxed ones, do not learn where files are on this machine. */
function hidePaths(refusal: ToolResult, { userId, sandboxed, session }: Caller): ToolResult {
  if (userId === null && !sandboxed) return refusal;
  return mapStrings(refusal, (text) => withoutPathsOutside(session?.cwd ?? null, text)) as ToolResult;
}

/** As JSON has it: what is `undefined` is not there. */
function plain(result: ToolResult): ToolResult {
  return JSON.parse(stringifyJson(result)) as ToolResult;
}
