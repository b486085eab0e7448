import { stat } from "node:fs/promises";
import { acpInstall } from "../../../config/acp-agents.ts";
import { thrownText } from "../../../core/text.ts";
import { absence } from "./absence.ts";
import { childEnv } from "./child-env.ts";
import type { ChildProcess, ProcessOptions, ProcessSpec } from "./contract.ts";
import { findCommand } from "./find-command.ts";
import { startProcess } from "./start-process.ts";
import { unavailable } from "./unavailable.ts";

export interface ChildSpec extends ProcessSpec {
  /** Of the agent, for messages. */
  readonly name?: string;
}

/** Starts an agent; `acp_unavailable` says what stands in the way, and what to do. No process is left of a start that failed. */
export async function startChild(spec: ChildSpec, options: ProcessOptions): Promise<ChildProcess> {
  const { name = spec.command, command, cwd } = spec;
  if (!(await isFolder(cwd))) {
    const problem = `its working directory "${cwd}" is not there`;
    throw unavailable(name, problem, "Make the folder, or name another one");
  }
  const found = await findCommand(command, childEnv(options.env, spec.env), cwd);
  const how = acpInstall(spec);
  const advice = `Install it${how === null ? "" : ` (${how})`}, or correct acp.agents.${name}.command`;
  if (found === null) throw unavailable(name, absence(command), advice);
  try {
    return await startProcess({ ...spec, command: found }, options);
  } catch (error) {
    throw unavailable(name, `the command "${command}" could not be started: ${thrownText(error)}`, advice);
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
