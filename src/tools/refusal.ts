import { messageWithoutPaths, SkeinError } from "../core/errors.ts";
import type { ToolResult } from "./contract.ts";

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

/** An argument that a tool cannot take. Every surface renders it as a refusal with this code. */
export class ToolInputError extends Error {
  override readonly name = "ToolInputError";
  readonly code = "invalid_arguments";
  /** Where it is: `attachments.2.name`; empty: the arguments as a whole. */
  readonly path: string;

  constructor(message: string, path: string) {
    super(message);
    this.path = path;
  }
}
