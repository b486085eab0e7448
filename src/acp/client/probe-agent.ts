import { methods, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/unstable";
import type { ChildProcess, Environment } from "../../agents/process/start-process.ts";
import type { AcpAgent } from "../../config/acp-agents.ts";
import { SkeinError } from "../../core/errors.ts";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { isRecord } from "../../core/shape.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import { initializeParams } from "./agent.ts";
import type { InitializeResponse } from "./agent-responses.ts";
import { readInitializeResponse } from "./agent-responses.ts";
import { startChild } from "./start-agent.ts";

export interface ProbeOptions {
  /** The source of PATH, HOME and LANG. */
  readonly env: Environment;
  readonly cwd: string;
  readonly timeoutMs: number;
}

/** How an agent answers `initialize`. */
export type ProbeResult =
  | {
      readonly answers: true;
      readonly name?: string;
      readonly version?: string;
      readonly protocolVersion: number;
      /** `load` replays the history of an earlier session, `resume` does not. */
      readonly can: Readonly<Record<"load" | "resume" | "fork" | "list", boolean>>;
      /** The names of the ways to log in. */
      readonly authMethods: readonly string[];
    }
  | { readonly answers: false; readonly problem: string };

/** Starts an agent, asks for its capabilities, and ends it. Leaves no process, whatever the agent does. */
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
    () => timeout.resolve(`it did not answer within ${timeoutMs / 1000} s`),
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
  const reader = new ResponseReader(1);
  child.stdout.on("data", (chunk: Buffer) => reader.take(chunk));
  const message = { jsonrpc: "2.0", id: 1, method: methods.agent.initialize, params: initializeParams };
  child.stdin.write(`${JSON.stringify(message)}\n`);
  const ended = child.ended.then(() => "it did not answer");
  const response = await Promise.race([reader.response, ended, timeout]);
  if (typeof response !== "string") return resultOf(response);
  const { stray } = reader;
  const problems = [response, child.report(), stray === null ? "" : `it wrote text that is not a message: ${stray}`];
  return { answers: false, problem: problems.filter((each) => each !== "").join("; ") };
}

function resultOf({ result, error }: Response): ProbeResult {
  if (error !== undefined) {
    const message = isRecord(error) && typeof error.message === "string" ? error.message.trim() : "";
    const reason = message === "" ? "it does not say why" : message.slice(0, 100);
    return { answers: false, problem: `it refused to begin: ${reason}` };
  }
  const about = tryRead(result);
  if (about?.protocolVersion !== PROTOCOL_VERSION) {
    const version = about === null ? "no version" : `version ${about.protocolVersion}`;
    return { answers: false, problem: `it speaks ${version} of the protocol, not ${PROTOCOL_VERSION}` };
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
    return null; // without a protocol version it is no answer to `initialize`
  }
}

/** More than an agent writes before its first response. */
const maxBytes = 8 * 1024 * 1024;
const maxStrayChars = 200;

interface Response {
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Finds the response to one request in the output of a process, and skips everything else. */
export class ResponseReader {
  readonly #id: number;
  readonly #response = Promise.withResolvers<Response>();
  readonly #lines = new LineGatherer({ maxBytes, tooLong: () => new Error("a line of too many bytes") });
  #byteCount = 0;
  #stray: string | null = null;

  constructor(id: number) {
    this.#id = id;
  }

  /** Never resolves if the process sends no response. */
  get response(): Promise<Response> {
    return this.#response.promise;
  }

  /** The first line that is not a message, shortened; `null` if there is none. */
  get stray(): string | null {
    return this.#stray ?? strayText(this.#lines.unfinished.toString("utf8"));
  }

  take(chunk: Buffer): void {
    this.#byteCount += chunk.length;
    if (this.#byteCount > maxBytes) return; // still read, so that the process does not block, but not stored
    for (const line of this.#lines.split(chunk)) this.#read(line.toString("utf8"));
  }

  #read(line: string): void {
    const message = parseMessage(line);
    if (message === null) this.#stray ??= strayText(line);
    else if (message.id === this.#id && ("result" in message || "error" in message))
      this.#response.resolve(message);
  }
}

function strayText(line: string): string | null {
  const text = escapeToLine(line.trim());
  return text === "" ? null : cutText(text, maxStrayChars);
}

function parseMessage(line: string): (Response & { readonly id?: unknown }) | null {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : null;
  } catch {
    return null; // a banner or a log line
  }
}
