import type { ChildProcess, ProcessOptions, ProcessSpec } from "../../agents/process/start-process.ts";
import { CannotStart, startCommand } from "../../agents/process/start-process.ts";
import { acpInstall } from "../../config/acp-agents.ts";
import { unavailable } from "./unavailable.ts";

export interface ChildSpec extends ProcessSpec {
  /** Of the agent, for messages. */
  readonly name?: string;
}

/** Starts an agent; `acp_unavailable` says what stands in the way, and what to do. No process is left of a start that failed. */
export async function startChild(spec: ChildSpec, options: ProcessOptions): Promise<ChildProcess> {
  try {
    return await startCommand(spec, options);
  } catch (error) {
    if (!(error instanceof CannotStart)) throw error;
    throw unavailable(spec.name ?? spec.command, error.message, adviceOn(error, spec));
  }
}

function adviceOn({ place }: CannotStart, spec: ChildSpec): string {
  if (place === "cwd") return "Make the folder, or name another one";
  const how = acpInstall(spec);
  const { name = spec.command } = spec;
  return `Install it${how === null ? "" : ` (${how})`}, or correct acp.agents.${name}.command`;
}
