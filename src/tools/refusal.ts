import { messageWithoutPaths, SkeinError } from "../core/errors.ts";
import type { ToolResult } from "./contract.ts";
import { ToolInputError } from "./tool-input-error.ts";

/** What was thrown, as the result that every surface shows. What is our own mistake is reported, and said without its insides. */
export function refusalOf(toolName: string, error: unknown, report: (error: unknown) => void): ToolResult {
  const isTold =
    error instanceof ToolInputError || (error instanceof SkeinError && error.code !== "internal");
  if (isTold) return { status: "error", code: error.code, error: messageWithoutPaths(error) };
  report(error);
  const { code, message } = new SkeinError("internal", { problem: `${toolName} failed` });
  return { status: "error", code, error: message };
}

/** Whether a result says that what was asked was not done. */
export function isRefusal({ status }: ToolResult): boolean {
  return status === "error" || status === "forbidden";
}
