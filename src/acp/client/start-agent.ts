import { existsSync } from "node:fs";
import type { AcpLink } from "../../agents/contract.ts";
import type { ChildProcess, Environment, ProcessSpec } from "../../agents/process/start-process.ts";
import { CannotStart, endMarked, startCommand } from "../../agents/process/start-process.ts";
import type { AcpAgent } from "../../config/acp-agents.ts";
import { acpInstall } from "../../config/acp-agents.ts";
import { unlessAborted } from "../../core/concurrency.ts";
import type { FileBoundary, FileOwner } from "../../file-access/file-boundary.ts";
import type { SessionRequest } from "./agent.ts";
import { Agent } from "./agent.ts";
import { clientFiles } from "./client-files.ts";
import { ClientRequests } from "./client-requests.ts";
import { failed, unavailable } from "./errors.ts";
import { Terminals } from "./terminals.ts";

/**
 * Starts an agent's process. Throws `acp_unavailable` with a suggested fix. A failed start leaves no process behind.
 */
export async function startChild(
  spec: ProcessSpec & { readonly name?: string },
  env: Environment,
): Promise<ChildProcess> {
  try {
    return await startCommand(spec, { env });
  } catch (error) {
    if (!(error instanceof CannotStart)) throw error;
    const { name = spec.command } = spec;
    const install = acpInstall(spec);
    const advice =
      error.place === "cwd"
        ? "Create the folder, or choose a different one"
        : `Install it${install === null ? "" : ` (${install})`}, or correct acp.agents.${name}.command`;
    throw unavailable(name, error.message, advice);
  }
}

export interface StartRequest extends SessionRequest {
  readonly spec: AcpAgent;
  readonly owner: FileOwner;
  readonly link: SessionRequest["link"] & Pick<AcpLink, "processMark">;
}

export interface StartOptions {
  /** The environment from which the process inherits PATH, HOME and LANG. */
  readonly env: Environment;
  readonly files: Pick<FileBoundary, "checkPath" | "attachments">;
  /** The time limit for starting the agent and opening its session. */
  readonly startTimeoutMs: number;
}

/** Starts an agent and opens its session. A failed start leaves no process behind. */
export async function startAgent(
  options: StartOptions,
  request: StartRequest,
  signal: AbortSignal,
): Promise<Agent> {
  const { spec, cwd, link } = request;
  const { name, command, args, env } = spec;
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), options.startTimeoutMs);
  const starting = AbortSignal.any([signal, timeout.signal]);
  let agent: Agent | null = null;
  try {
    // After Skein is killed, an agent's process keeps running for up to two seconds. Two processes in one session would
    // undo each other's work.
    if (link.processMark !== null) await unlessAborted(endMarked(link.processMark, options), starting);
    const requests = openRequests(request, options);
    const child = await stopIfAborted(startChild({ name, command, args, env, cwd }, options.env), starting);
    if (requests === null) {
      await child.stop();
      throw failed(name, "its working directory did not exist when it was started");
    }
    agent = new Agent(name, child, requests);
    await unlessAborted(agent.openSession(request), starting);
    return agent;
  } catch (error) {
    const hasTimedOut = timeout.signal.aborted && !signal.aborted;
    const problem = hasTimedOut ? timeoutError(agent, name, options.startTimeoutMs) : error;
    await agent?.stop();
    throw problem;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Resolves the working directory before the agent runs, so that the agent cannot replace it. Returns `null` if the
 * folder is missing, in which case starting the process fails with the reason.
 */
function openRequests(
  { spec, cwd, owner }: StartRequest,
  { env, files }: StartOptions,
): ClientRequests | null {
  if (!existsSync(cwd)) return null;
  if ("refusal" in files.checkPath(owner, cwd, "read"))
    throw failed(spec.name, "its working directory leads into Skein's root folder", "Choose a different cwd");
  const place = { cwd, owner, files };
  return new ClientRequests(clientFiles(place), new Terminals(place, env, spec.env));
}

/** Rejects if the signal is aborted first, but only after a process that has started anyway has been stopped. */
async function stopIfAborted(child: Promise<ChildProcess>, signal: AbortSignal): Promise<ChildProcess> {
  try {
    return await unlessAborted(child, signal);
  } catch (error) {
    if (signal.aborted) await child.then((late) => late.stop()).catch(() => undefined); // The process never started.
    throw error;
  }
}

function timeoutError(agent: Agent | null, name: string, ms: number) {
  const diagnostics = agent?.diagnostics ?? "";
  const problem = `it did not open a session within ${ms / 1000} seconds${diagnostics === "" ? "" : `; ${diagnostics}`}`;
  return failed(name, problem, "Try starting it manually, or increase acp.startTimeoutSeconds");
}
