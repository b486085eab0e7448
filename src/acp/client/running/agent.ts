import { existsSync } from "node:fs";
import type { ContentBlock } from "@agentclientprotocol/sdk/unstable";
import type { AcpLink } from "../../../agents/contract.ts";
import type { ChildProcess } from "../../../agents/process/start-process.ts";
import { endMarked } from "../../../agents/process/start-process.ts";
import type { AcpAgent } from "../../../config/acp-agents.ts";
import { unlessAborted } from "../../../core/abort.ts";
import type { SkeinError } from "../../../core/errors.ts";
import type { FileOwner } from "../../../file-access/file-boundary.ts";
import type { AcpDeps } from "../contract.ts";
import { clientFiles } from "../files.ts";
import { startChild } from "../start-child.ts";
import { Terminals } from "../terminals.ts";
import { ClientRequests } from "./client-requests.ts";
import { AgentConnection } from "./connection.ts";
import { failed } from "./failures.ts";
import type { PermissionDesk } from "./permissions.ts";
import { settingChanges } from "./session-settings.ts";

/** Which session of which agent, and where. */
export interface AgentWish {
  readonly spec: AcpAgent;
  readonly cwd: string;
  readonly owner: FileOwner;
  readonly link: Pick<AcpLink, "agentSessionId" | "resumeSessionId" | "model" | "thinking" | "processMark">;
  readonly system: string | null;
}

/** Who looks after an agent in a turn. */
export interface TurnWatch {
  readonly desk: PermissionDesk;
  onUpdate(update: unknown, bytes: number): Promise<void> | undefined;
}

/** Which session is listened to, and by whom. */
interface Hearing {
  of: string;
  watch: TurnWatch | null;
}

/** An agent that runs, with its session open. */
export class Agent {
  readonly #connection: AgentConnection;
  readonly #requests: ClientRequests;
  readonly #hears: Hearing;
  readonly agentSessionId: string;
  /** Of its process. */
  readonly mark: string;
  /** Dollars of its session so far, as it told them; `null`: not known. */
  cost: number | null;
  /** The system prompt that it was told last; `null`: none. */
  system: string | null;

  constructor(
    parts: {
      readonly connection: AgentConnection;
      readonly requests: ClientRequests;
      readonly hears: Hearing;
    },
    session: { readonly id: string; readonly isNew: boolean; readonly system: string | null },
  ) {
    this.#connection = parts.connection;
    this.#requests = parts.requests;
    this.#hears = parts.hears;
    this.#hears.of = session.id;
    this.agentSessionId = session.id;
    this.mark = parts.connection.mark;
    this.cost = session.isNew ? 0 : null;
    this.system = session.system;
  }

  /** Resolves when nothing more can be said with it. */
  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  hasDied(): boolean {
    return this.#connection.hasDied();
  }

  get promptCapabilities() {
    return this.#connection.promptCapabilities;
  }

  /** From here on its requests and updates belong to this turn; `null`: to none, and updates are dropped. */
  watch(watch: TurnWatch | null): void {
    this.#hears.watch = watch;
    this.#requests.desk = watch?.desk ?? null;
  }

  terminalText(terminalId: string): string | null {
    return this.#requests.terminalText(terminalId);
  }

  prompt(blocks: ContentBlock[]): Promise<unknown> {
    return this.#connection.prompt(this.agentSessionId, blocks);
  }

  /** Of its turn, with what that runs in terminals; resolves when those have ended. */
  cancel(): Promise<void> {
    this.#connection.cancel(this.agentSessionId);
    return this.#requests.endTerminals();
  }

  stop(): Promise<void> {
    return this.#connection.stop();
  }
}

type StartDeps = Pick<AcpDeps, "env" | "files"> & { readonly startTimeoutMs: number };

/** Starts an agent and opens its session. Of one that does not come to that no process is left. */
export async function startAgent(deps: StartDeps, wish: AgentWish, signal: AbortSignal): Promise<Agent> {
  const { name, command, args, env } = wish.spec;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), deps.startTimeoutMs);
  const starting = AbortSignal.any([signal, late.signal]);
  let connection: AgentConnection | null = null;
  try {
    const { processMark } = wish.link;
    // Of a Skein that was killed it may live on for two seconds: two that work on one session undo each other's work.
    if (processMark !== null) await unlessAborted(endMarked(processMark, deps), starting);
    const requests = requestsIn(wish, deps);
    const child = await started(
      startChild({ name, command, args, env, cwd: wish.cwd }, { env: deps.env }),
      starting,
    );
    const hears: Hearing = { of: "", watch: null };
    if (requests === null) {
      await child.stop();
      throw failed(name, "its working directory was not there when it was started");
    }
    connection = new AgentConnection({
      agent: name,
      child,
      requests,
      // What comes outside of a turn, a replay above all, is not ours to write.
      onUpdate: (id, update, bytes) => (id === hears.of ? hears.watch?.onUpdate(update, bytes) : undefined),
    });
    const session = await unlessAborted(openSession(connection, wish), starting);
    return new Agent({ connection, requests, hears }, session);
  } catch (error) {
    const told =
      late.signal.aborted && !signal.aborted ? await tooSlow(connection, name, deps.startTimeoutMs) : error;
    await connection?.stop();
    throw told;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Made before the agent runs: whatever it puts in the place of its folder, this is the one. `null`: there is no folder, as
 * whoever starts the process says.
 */
function requestsIn({ spec, cwd, owner }: AgentWish, { env, files }: StartDeps): ClientRequests | null {
  if (!existsSync(cwd)) return null;
  if ("refusal" in files.checkPath(owner, cwd, "read"))
    throw failed(spec.name, "its working directory leads into Skein's root folder", "Choose another cwd");
  const place = { cwd, owner, files };
  return new ClientRequests(clientFiles(place), new Terminals(place, env, spec.env));
}

/** A process that is there only after nobody wants it any more is ended. */
async function started(child: Promise<ChildProcess>, signal: AbortSignal): Promise<ChildProcess> {
  try {
    return await unlessAborted(child, signal);
  } catch (error) {
    if (signal.aborted) await child.then((late) => late.stop()).catch(() => undefined); // it never was
    throw error;
  }
}

async function openSession(connection: AgentConnection, { spec, cwd, link: wanted, system }: AgentWish) {
  await connection.initialize();
  const known = wanted.agentSessionId ?? wanted.resumeSessionId;
  const opened = await (known === null
    ? connection.newSession(cwd, system)
    : connection.goOnWith(known, cwd, system));
  const isSet = wanted.agentSessionId !== null;
  for (const change of settingChanges(spec.name, wanted, opened, isSet))
    await connection.apply(opened.sessionId, change);
  return { id: opened.sessionId, isNew: known === null, system: connection.takesSystem ? system : null };
}

async function tooSlow(connection: AgentConnection | null, name: string, ms: number): Promise<SkeinError> {
  const told = connection?.account ?? "";
  const problem = `it did not open a session within ${ms / 1000} seconds${told === "" ? "" : `; ${told}`}`;
  return failed(name, problem, "Try it by hand, or raise acp.startTimeoutSeconds");
}
