import type { ClientConnection, ContentBlock, PromptCapabilities } from "@agentclientprotocol/sdk/unstable";
import { client, methods, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { AcpLink } from "../../agents/contract.ts";
import type { ChildProcess } from "../../agents/process/start-process.ts";
import { hasExited } from "../../agents/process/start-process.ts";
import { within } from "../../core/concurrency.ts";
import type { SkeinError } from "../../core/errors.ts";
import { clientInfo } from "../../core/names.ts";
import { thrownText } from "../../core/text.ts";
import type { InitializeResponse, SessionResponse, SettingChange } from "./agent-responses.ts";
import {
  readInitializeResponse,
  readSessionId,
  readSessionResponse,
  settingChanges,
} from "./agent-responses.ts";
import type { ClientRequests } from "./client-requests.ts";
import { failed, unavailable, unsupported } from "./errors.ts";
import { MessageLines, messageStream } from "./message-stream.ts";
import type { PermissionRequests } from "./permission-requests.ts";

/** How long to wait for a process to exit after its pipe has closed, so that the error can include the exit status. */
const exitMs = 1000;
const authRequired = -32000;
const methodNotFound = -32601;
/** No longer part of the protocol, but the only way to set the model in some agents. */
const setModel = "session/set_model";

/** The capabilities that Skein announces. Some agents offer more features to clients that have them. */
export const initializeParams = {
  protocolVersion: PROTOCOL_VERSION,
  clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
  clientInfo: clientInfo,
};

/** The agent's session to open or create. */
export interface SessionRequest {
  readonly cwd: string;
  readonly link: Pick<AcpLink, "agentSessionId" | "resumeSessionId" | "model" | "thinking">;
  readonly system: string | null;
}

/** Receives an agent's requests and updates during a turn. */
export interface TurnWatch {
  readonly permissions: PermissionRequests;
  /** Returns a promise if the agent is sending too fast. Nothing more is read until the promise resolves. */
  onUpdate(update: unknown, bytes: number): Promise<void> | undefined;
}

/** A running agent process and the connection to it. A protocol violation always becomes a `SkeinError`. */
export class Agent {
  /** The agent's name in the configuration. */
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #requests: ClientRequests;
  readonly #connection: ClientConnection;
  readonly #lines = new MessageLines();
  #readError: Error | null = null;
  #about: InitializeResponse | null = null;
  #watch: TurnWatch | null = null;
  /** Empty until the session is open. */
  agentSessionId = "";
  /** The cost of the agent's session so far in dollars, or `null` if unknown. */
  cost: number | null = null;
  /** The system prompt that was last sent to the agent. */
  system: string | null = null;

  constructor(name: string, child: ChildProcess, requests: ClientRequests) {
    this.name = name;
    this.#child = child;
    this.#requests = requests;
    const stream = messageStream(child, {
      lines: this.#lines,
      // Updates outside a turn, which are mostly the replay of a loaded session, are not written.
      onUpdate: (params, bytes) => {
        const { sessionId, update } = (params ?? {}) as { sessionId?: unknown; update?: unknown };
        return sessionId === this.agentSessionId ? this.#watch?.onUpdate(update, bytes) : undefined;
      },
      onReadError: (error) => {
        this.#readError = error;
      },
    });
    this.#connection = requests.register(client({ name: "skein" })).connect(stream);
  }

  /** The mark that identifies the agent's process. */
  get mark(): string {
    return this.#child.mark;
  }

  get promptCapabilities(): PromptCapabilities | undefined {
    return this.#about?.promptCapabilities;
  }

  /** Resolves when the connection or the process has ended. */
  get closed(): Promise<void> {
    return Promise.race([this.#connection.closed, this.#child.ended.then(() => undefined)]);
  }

  hasDied(): boolean {
    return hasExited(this.#child.pid);
  }

  /** The exit status, the end of stderr, and any stray output. Empty if there is nothing to report. */
  get diagnostics(): string {
    const { stray } = this.#lines;
    const parts = [this.#child.report(), stray === "" ? "" : `on its stdout: ${stray}`];
    return parts.filter((part) => part !== "").join("; ");
  }

  /** Opens the agent's session and applies the model and the thinking level. */
  async openSession({ cwd, link, system }: SessionRequest): Promise<void> {
    const about = await this.#initialize();
    this.#about = about;
    const existing = link.agentSessionId ?? link.resumeSessionId;
    const takesSystem = system !== null && about.takesSystem;
    const params = {
      cwd,
      mcpServers: [],
      ...(takesSystem && {
        systemPrompt: { mode: "append", content: [{ type: "text" as const, text: system }] },
      }),
    };
    const { sessionId, ...offered } = await (existing === null
      ? this.#newSession(params)
      : this.#resumeSession(about, { ...params, sessionId: existing }));
    const wasSet = link.agentSessionId !== null;
    for (const change of settingChanges(this.name, link, offered, wasSet))
      await this.#applySetting(sessionId, change);
    this.agentSessionId = sessionId;
    this.cost = existing === null ? 0 : null;
    this.system = about.takesSystem ? system : null;
  }

  /** Routes requests and updates to this turn from now on. If `null`, drops updates and grants no permissions. */
  watch(watch: TurnWatch | null): void {
    this.#watch = watch;
    this.#requests.permissions = watch?.permissions ?? null;
  }

  terminalText(terminalId: string): string | null {
    return this.#requests.terminalText(terminalId);
  }

  prompt(prompt: ContentBlock[]): Promise<unknown> {
    const params = { sessionId: this.agentSessionId, prompt };
    return this.#ask("in the middle of a turn", () =>
      this.#connection.agent.request(methods.agent.session.prompt, params),
    );
  }

  /** Asks the agent to end its turn and stops the turn's terminals. The response to the prompt reports the result. */
  cancel(): Promise<void> {
    const params = { sessionId: this.agentSessionId };
    // An agent that no longer exists does not need to be notified.
    void this.#connection.agent.notify(methods.agent.session.cancel, params).catch(() => undefined);
    return this.#requests.endTerminals();
  }

  /** Stops the agent. Resolves when none of its processes remain. */
  async stop(): Promise<void> {
    this.#connection.close();
    await Promise.all([this.#child.stop(), this.#requests.close()]);
  }

  async #initialize(): Promise<InitializeResponse> {
    const about = await this.#ask("while it was starting", async () =>
      readInitializeResponse(
        await this.#connection.agent.request<unknown>(methods.agent.initialize, initializeParams),
      ),
    );
    if (about.protocolVersion === PROTOCOL_VERSION) return about;
    const problem = `it uses protocol version ${about.protocolVersion}, not ${PROTOCOL_VERSION}`;
    throw unavailable(this.name, problem, "Install a version that supports it");
  }

  #newSession(params: object): Promise<SessionResponse & { readonly sessionId: string }> {
    return this.#ask("while it was opening a session", async () => {
      const response = await this.#connection.agent.request<unknown>(methods.agent.session.new, params);
      return { ...readSessionResponse(response), sessionId: readSessionId(response) };
    });
  }

  /** `session/resume` is preferred over `session/load`, which replays the whole session. */
  #resumeSession(
    { canLoad, canResume }: InitializeResponse,
    params: { readonly sessionId: string },
  ): Promise<SessionResponse & { readonly sessionId: string }> {
    const { sessionId } = params;
    if (!canLoad && !canResume) {
      const problem = `it cannot resume its session "${sessionId}", because its process has exited and its context is lost`;
      throw unsupported(this.name, problem, "Spawn it again, and repeat what it needs to know");
    }
    const method = canResume ? methods.agent.session.resume : methods.agent.session.load;
    return this.#ask(`while it was opening its session "${sessionId}"`, async () => {
      const response = await this.#connection.agent.request<unknown>(method, params);
      return { ...readSessionResponse(response ?? {}), sessionId };
    });
  }

  async #applySetting(sessionId: string, change: SettingChange): Promise<void> {
    const { session } = methods.agent;
    const { agent } = this.#connection;
    await this.#ask(
      "while it was being set up",
      async () => {
        const { value } = change;
        if ("configId" in change)
          await agent.request(session.setConfigOption, { sessionId, configId: change.configId, value });
        else if (change.set === "mode") await agent.request(session.setMode, { sessionId, modeId: value });
        else await agent.request(setModel, { sessionId, modelId: value });
      },
      () => unsupported(this.name, `it offers a ${change.set} but cannot set it`, "Omit it"),
    );
  }

  /** Returns an error that includes everything known about how the connection ended. */
  async #failure(when: string): Promise<SkeinError> {
    const hasExited = this.#readError === null && (await within(exitMs, this.#child.ended));
    const what = this.#readError?.message ?? (hasExited ? `it exited ${when}` : `it closed its pipe ${when}`);
    const details = this.#readError === null ? this.diagnostics : this.#child.report();
    return failed(this.name, details === "" ? what : `${what}; ${details}`);
  }

  /** Sends a request. An error thrown while parsing the response is reported as a protocol violation. */
  async #ask<T>(when: string, send: () => Promise<T>, onUnknownMethod?: () => SkeinError): Promise<T> {
    try {
      return await send();
    } catch (error) {
      if (this.#connection.signal.aborted) throw await this.#failure(when);
      if (!(error instanceof RequestError)) {
        throw failed(this.name, `its response ${when} does not follow the protocol: ${thrownText(error)}`);
      }
      if (error.code === methodNotFound && onUnknownMethod !== undefined) throw onUnknownMethod();
      if (error.code === authRequired) throw this.#loginRequired(error);
      const report = this.#child.report();
      throw failed(
        this.name,
        `it responded with an error ${when}: ${errorText(error)}${report === "" ? "" : `; ${report}`}`,
      );
    }
  }

  #loginRequired(error: RequestError): SkeinError {
    const names = this.#about?.authMethods ?? [];
    const offers = names.length === 0 ? "" : `; it offers: ${names.join(", ")}`;
    const problem = `it requires a login (${errorText(error)})${offers}`;
    const advice = "Log in with the agent's own command, or set its key under acp.agents";
    return unavailable(this.name, problem, advice);
  }
}

/** Returns an agent's error message together with the error's data, which often contains the reason. */
function errorText({ message, code, data }: RequestError): string {
  const details = (data as { details?: unknown } | null | undefined)?.details;
  const more = typeof details === "string" ? details : data === undefined ? "" : JSON.stringify(data);
  return `${message} (${code})${more === "" ? "" : `: ${more}`}`;
}
