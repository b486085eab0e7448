import type { InitializeResponse } from "@agentclientprotocol/sdk/unstable";
import { methods, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/unstable";
import type { ChildProcess, Environment } from "../../agents/process/start-process.ts";
import type { AcpAgent } from "../../config/acp-agents.ts";
import { SkeinError } from "../../core/errors.ts";
import { ourselves } from "../../core/ourselves.ts";
import { FirstAnswer } from "./first-answer.ts";
import { startChild } from "./start-child.ts";

export interface ProbeOptions {
  /** What PATH, HOME and LANG are taken from. */
  readonly env: Environment;
  readonly cwd: string;
  readonly timeoutMs: number;
}

/** What an agent says of itself when it is asked, and nothing more is asked of it. */
export type Probed =
  | {
      readonly answers: true;
      readonly name?: string;
      readonly version?: string;
      readonly protocolVersion: number;
      readonly can: AgentCan;
      /** How one signs in, by name; none: one need not, or it says nothing about that. */
      readonly authMethods: readonly string[];
    }
  | { readonly answers: false; readonly problem: string };

export interface AgentCan {
  /** To go on with a session of its own from before, its history told again. */
  readonly load: boolean;
  /** The same, without its history. */
  readonly resume: boolean;
  readonly fork: boolean;
  readonly list: boolean;
}

/** Starts an agent, asks what it is, and ends it. Whatever it does, no process of it is left. */
export async function probeAgent(agent: AcpAgent, options: ProbeOptions): Promise<Probed> {
  const { env, cwd, timeoutMs } = options;
  const child = await startChild({ ...agent, cwd }, { env }).catch((error: unknown) => {
    if (!(error instanceof SkeinError)) throw error;
    return error;
  });
  if (child instanceof SkeinError) return { answers: false, problem: String(child.details.problem) };
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => late.resolve(`it did not answer within ${timeoutMs / 1000} s`), timeoutMs);
  try {
    return await ask(child, late.promise);
  } finally {
    clearTimeout(timer);
    await child.stop();
  }
}

async function ask(child: ChildProcess, late: Promise<string>): Promise<Probed> {
  const first = new FirstAnswer(1);
  child.stdout.on("data", (chunk: Buffer) => first.take(chunk));
  const message = { jsonrpc: "2.0", id: 1, method: methods.agent.initialize, params };
  child.stdin.write(`${JSON.stringify(message)}\n`);
  const ended = child.ended.then(() => "it did not answer");
  const answer = await Promise.race([first.answer, ended, late]);
  if (typeof answer !== "string") return readAnswer(answer);
  const rest = [
    child.report(),
    first.garbage === null ? "" : `it wrote what is no message: ${first.garbage}`,
  ];
  return { answers: false, problem: [answer, ...rest.filter((each) => each !== "")].join("; ") };
}

/** It is asked as a run would ask it: some agents look at what we can do before they say what they can. */
const params = {
  protocolVersion: PROTOCOL_VERSION,
  clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
  clientInfo: ourselves,
};

function readAnswer(answer: { readonly result?: unknown; readonly error?: unknown }): Probed {
  const { result, error } = answer;
  if (error !== undefined) {
    const said = shortText((error as { readonly message?: unknown } | null)?.message);
    return { answers: false, problem: `it refused to begin: ${said ?? "it does not say why"}` };
  }
  const told = (typeof result === "object" && result !== null ? result : {}) as Partial<InitializeResponse>;
  const { protocolVersion, agentInfo, agentCapabilities, authMethods } = told;
  if (protocolVersion !== PROTOCOL_VERSION) {
    const spoken = typeof protocolVersion === "number" ? `version ${protocolVersion}` : "no version";
    return { answers: false, problem: `it speaks ${spoken} of the protocol, not ${PROTOCOL_VERSION}` };
  }
  const session = agentCapabilities?.sessionCapabilities;
  const has = (each: unknown) => typeof each === "object" && each !== null;
  const name = shortText(agentInfo?.title ?? agentInfo?.name);
  const version = shortText(agentInfo?.version);
  return {
    answers: true,
    ...(name === null ? {} : { name }),
    ...(version === null ? {} : { version }),
    protocolVersion,
    can: {
      load: agentCapabilities?.loadSession === true,
      resume: has(session?.resume),
      fork: has(session?.fork),
      list: has(session?.list),
    },
    authMethods: (Array.isArray(authMethods) ? authMethods : [])
      .map((method) => shortText(method?.name ?? method?.id))
      .filter((each) => each !== null)
      .slice(0, 20),
  };
}

function shortText(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value.trim().slice(0, 100) : null;
}
