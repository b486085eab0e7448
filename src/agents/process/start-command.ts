import { stat } from "node:fs/promises";
import { thrownText } from "../../core/text.ts";
import { absence } from "./absence.ts";
import { childEnv } from "./child-env.ts";
import type { ChildProcess, ProcessOptions, ProcessSpec } from "./contract.ts";
import { findCommand } from "./find-command.ts";
import { startProcess } from "./start-process.ts";

/** What stands in the way of a process, for people, and which of its two places it is. */
export class CannotStart extends Error {
  readonly place: "cwd" | "command";

  constructor(place: CannotStart["place"], problem: string) {
    super(problem);
    this.place = place;
  }
}

/** Starts what people call by a command; throws `CannotStart` alone. No process is left of a start that failed. */
export async function startCommand(spec: ProcessSpec, options: ProcessOptions): Promise<ChildProcess> {
  const { command, cwd } = spec;
  if (!(await isFolder(cwd))) throw new CannotStart("cwd", `its working directory "${cwd}" is not there`);
  const found = await findCommand(command, childEnv(options.env, spec.env), cwd);
  if (found === null) throw new CannotStart("command", absence(command));
  try {
    return await startProcess({ ...spec, command: found }, options);
  } catch (error) {
    throw new CannotStart("command", `the command "${command}" could not be started: ${thrownText(error)}`);
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
