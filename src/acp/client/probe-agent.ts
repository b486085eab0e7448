import { methods, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/unstable";
import type { ChildProcess, Environment } from "../../agents/process/start-process.ts";
import type { AcpAgent } from "../../config/acp-agents.ts";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { thrownText } from "../../core/text.ts";
import { initializeParams } from "./agent.ts";
import type { InitializeResponse } from "./agent-responses.ts";
import { readInitializeResponse } from "./agent-responses.ts";
import { MessageLines } from "./message-stream.ts";
import { startChild } from "./start-agent.ts";

export interface ProbeOptions {
  /** The environment from which PATH, HOME and LANG are inherited. */
  readonly env: Environment;
  readonly cwd: string;
  readonly timeoutMs: number;
}

/** An agent's response to `initialize`. */
export type ProbeResult =
  | {
      readonly answers: true;
      readonly name?: string;
      readonly version?: string;
      readonly protocolVersion: number;
      /** `load` replays the history of an earlier session. `resume` does not. */
      readonly can: Readonly<Record<"load" | "resume" | "fork" | "list", boolean>>;
      /** The names of the login methods. */
      readonly authMethods: readonly string[];
    }
  | { readonly answers: false; readonly problem: string };

/**
 * Starts an agent, requests its capabilities, and stops it. Leaves no process behind, regardless of what the agent
 * does.
 */
export async function probeAgent(
  agent: AcpAgent,
  { env, cwd, timeoutMs }: ProbeOptions,
): Promise<ProbeResult> {
  const child = await startChild({ ...agent, cwd }, env).catch((error: unknown) => {
    if (!(error instanceof SkeinError)) throw error;
    return error;
  });
  if (child instanceof SkeinError) return { answers: false, problem: String(child.details.problem) };
  const timeout = Promise.withResolvers<string>();
  const timer = setTimeout(
    () => timeout.resolve(`it did not respond within ${timeoutMs / 1000} s`),
    timeoutMs,
  );
  try {
    return await initialize(child, timeout.promise);
  } finally {
    clearTimeout(timer);
    await child.stop();
  }
}

async function initialize(child: ChildProcess, timeout: Promise<string>): Promise<ProbeResult> {
  const lines = new MessageLines();
  const message = { jsonrpc: "2.0", id: 1, method: methods.agent.initialize, params: initializeParams };
  child.stdin.write(`${JSON.stringify(message)}\n`);
  const noResponse = child.closed().then(() => "it did not respond");
  const found = readResponse(child.stdout, lines, 1)
    .then(async (response): Promise<Response | string> => response ?? (await noResponse))
    .catch(thrownText);
  const response = await Promise.race([found, noResponse, timeout]);
  if (typeof response !== "string") return resultOf(response);
  const { stray } = lines;
  const problems = [
    response,
    child.report(),
    stray === "" ? "" : `it wrote text that is not a message: ${stray}`,
  ];
  return { answers: false, problem: problems.filter((each) => each !== "").join("; ") };
}

interface Response {
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Finds the response to one request and skips every other message. Returns `null` if the output ends without it. */
export async function readResponse(
  output: AsyncIterable<Buffer>,
  lines: MessageLines,
  id: number,
): Promise<Response | null> {
  for await (const chunk of output)
    for await (const { message } of lines.take(chunk))
      if (message.id === id && ("result" in message || "error" in message)) return message;
  return null;
}

function resultOf({ result, error }: Response): ProbeResult {
  if (error !== undefined) {
    const message = isRecord(error) && typeof error.message === "string" ? error.message.trim() : "";
    const reason = message === "" ? "it gave no reason" : message.slice(0, 100);
    return { answers: false, problem: `it refused to start: ${reason}` };
  }
  const about = tryRead(result);
  if (about?.protocolVersion !== PROTOCOL_VERSION) {
    const version =
      about === null ? "an unknown protocol version" : `protocol version ${about.protocolVersion}`;
    return { answers: false, problem: `it uses ${version}, not ${PROTOCOL_VERSION}` };
  }
  const { name, version, protocolVersion, canLoad, canResume, canFork, canList, authMethods } = about;
  return {
    answers: true,
    ...(name !== null && { name }),
    ...(version !== null && { version }),
    protocolVersion,
    can: { load: canLoad, resume: canResume, fork: canFork, list: canList },
    authMethods,
  };
}

function tryRead(result: unknown): InitializeResponse | null {
  try {
    return readInitializeResponse(result);
  } catch {
    return null; // A message without a protocol version is not a response to `initialize`.
  }
}
