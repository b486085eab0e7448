import { stat } from "node:fs/promises";
import { SkeinError } from "../../../core/errors.ts";
import { thrownText } from "../../../core/text.ts";
import { childEnv } from "./child-env.ts";
import type { ChildProcess, ProcessOptions, ProcessSpec } from "./contract.ts";
import { findCommand } from "./find-command.ts";
import { startProcess } from "./start-process.ts";

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
  const advice = `Install it, or correct acp.agents.${name}.command`;
  if (found === null) throw unavailable(name, absence(command), advice);
  try {
    return await startProcess({ ...spec, command: found }, options);
  } catch (error) {
    throw unavailable(name, `the command "${command}" could not be started: ${thrownText(error)}`, advice);
  }
}

/** Why nothing stands for a command. */
export function absence(command: string): string {
  return command.includes("/")
    ? `the command "${command}" is not there, or may not be executed`
    : `the command "${command}" was not found on PATH`;
}

function unavailable(agent: string, problem: string, advice: string): SkeinError {
  return new SkeinError("acp_unavailable", { agent, problem, advice });
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
