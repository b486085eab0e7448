import type { ClientConnection, ContentBlock, PromptCapabilities } from "@agentclientprotocol/sdk/unstable";
import { client, methods, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { ChildProcess } from "../../../agents/process/start-process.ts";
import { hasExited } from "../../../agents/process/start-process.ts";
import type { SkeinError } from "../../../core/errors.ts";
import { ourselves } from "../../../core/ourselves.ts";
import { thrownText } from "../../../core/text.ts";
import { within } from "../../../core/within.ts";
import { unavailable } from "../unavailable.ts";
import type { AgentAbout } from "./agent-answers.ts";
import { readAbout, readSessionId, readSettings } from "./agent-answers.ts";
import type { ClientRequests } from "./client-requests.ts";
import { failed, loginNeeded, unsupported } from "./failures.ts";
import { MessageLines } from "./message-lines.ts";
import { messageStream } from "./message-stream.ts";
import type { OpenedSettings, SettingChange } from "./session-settings.ts";

/** How long is waited for the end of a process whose pipe has ended, to tell how it ended. */
const farewellMs = 1000;
const authRequired = -32000;
const noSuchMethod = -32601;
/** No method of the protocol any more, but the only one that some agents have. */
const setModel = "session/set_model";

export interface ConnectionParts {
  /** Its name in the configuration. */
  readonly agent: string;
  readonly child: ChildProcess;
  readonly requests: ClientRequests;
  /** As they come; a promise: nothing more is read until then. */
  onUpdate(sessionId: string, update: unknown, bytes: number): Promise<void> | undefined;
}

export interface OpenedSession extends OpenedSettings {
  readonly sessionId: string;
}

/** An agent process and what is said with it. What it does against the protocol ends in a SkeinError, never in silence. */
export class AgentConnection {
  readonly #parts: ConnectionParts;
  readonly #connection: ClientConnection;
  readonly #lines = new MessageLines();
  #broken: Error | null = null;
  #about: AgentAbout | null = null;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    const { child, requests } = parts;
    const stream = messageStream(child, {
      lines: this.#lines,
      onUpdate: (params, bytes) => {
        const { sessionId, update } = (params ?? {}) as { sessionId?: unknown; update?: unknown };
        return typeof sessionId === "string" ? parts.onUpdate(sessionId, update, bytes) : undefined;
      },
      onBroken: (problem) => {
        this.#broken = problem;
      },
    });
    this.#connection = requests.register(client({ name: "skein" })).connect(stream);
  }

  hasDied(): boolean {
    return hasExited(this.#parts.child.pid);
  }

  /** Resolves when nothing more can be said with it. */
  get closed(): Promise<void> {
    return Promise.race([this.#connection.closed, this.#parts.child.ended.then(() => undefined)]);
  }

  async initialize(): Promise<void> {
    const { agent } = this.#parts;
    const about = await this.#ask("while it was starting", async () =>
      readAbout(
        await this.#connection.agent.request<unknown>(methods.agent.initialize, {
          protocolVersion: PROTOCOL_VERSION,
          clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
          clientInfo: ourselves,
        }),
      ),
    );
    if (about.protocolVersion !== PROTOCOL_VERSION) {
      const problem = `it speaks version ${about.protocolVersion} of the protocol, not ${PROTOCOL_VERSION}`;
      throw unavailable(agent, problem, "Install a version of it that speaks ours");
    }
    this.#about = about;
  }

  async newSession(cwd: string, system: string | null): Promise<OpenedSession> {
    const params = { cwd, mcpServers: [], ...this.#systemIn(system) };
    return this.#ask("while it opened a session", async () => {
      const told = await this.#connection.agent.request<unknown>(methods.agent.session.new, params);
      return { ...readSettings(told), sessionId: readSessionId(told) };
    });
  }

  /** `false`: whatever it is to be told stands in its prompts. */
  get takesSystem(): boolean {
    return this.#about?.takesSystem === true;
  }

  /** Of its process. */
  get mark(): string {
    return this.#parts.child.mark;
  }

  get promptCapabilities(): PromptCapabilities | undefined {
    return this.#about?.prompts;
  }

  /** How its process fares, and what it wrote that it should not have; blank: there is nothing to tell. */
  get account(): string {
    const { stray } = this.#lines;
    const told = [this.#parts.child.report(), stray === "" ? "" : `on its stdout: ${stray}`];
    return told.filter((each) => each !== "").join("; ");
  }

  /** One of its sessions from before. Resuming replays nothing, and comes first. */
  async goOnWith(sessionId: string, cwd: string, system: string | null): Promise<OpenedSession> {
    const { agent } = this.#parts;
    const { canLoad = false, canResume = false } = this.#about ?? {};
    if (!canLoad && !canResume) {
      const problem = `it cannot go on with its session "${sessionId}": its process has ended, and what it knew with it`;
      throw unsupported(agent, problem, "Spawn it anew, and tell it what it has to know");
    }
    const params = { sessionId, cwd, mcpServers: [], ...this.#systemIn(system) };
    const method = canResume ? methods.agent.session.resume : methods.agent.session.load;
    return this.#ask(`while it opened its session "${sessionId}"`, async () => {
      const told = await this.#connection.agent.request<unknown>(method, params);
      return { ...readSettings(told ?? {}), sessionId };
    });
  }

  /** `acp_unsupported`: it offered what it does not know how to set. */
  async apply(sessionId: string, change: SettingChange): Promise<void> {
    const unknown = () =>
      unsupported(this.#parts.agent, `it offers a ${change.set} and cannot set it`, "Leave it out");
    await this.#ask(
      "while it was set up",
      async () => {
        const { agent } = this.#connection;
        if (change.set === "mode")
          await agent.request(methods.agent.session.setMode, { sessionId, modeId: change.modeId });
        else if (change.set === "model")
          await agent.request(setModel, { sessionId, modelId: change.modelId });
        else {
          const { configId, value } = change;
          await agent.request(methods.agent.session.setConfigOption, { sessionId, configId, value });
        }
      },
      unknown,
    );
  }

  #systemIn(system: string | null) {
    if (system === null || !this.takesSystem) return {};
    return { systemPrompt: { mode: "append", content: [{ type: "text" as const, text: system }] } };
  }

  prompt(sessionId: string, prompt: ContentBlock[]): Promise<unknown> {
    return this.#ask("in the middle of a turn", () =>
      this.#connection.agent.request(methods.agent.session.prompt, { sessionId, prompt }),
    );
  }

  /** Asks it to stop its turn; whether it does shows in the answer to the prompt. */
  cancel(sessionId: string): void {
    // Who is gone already needs no telling.
    void this.#connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => undefined);
  }

  /** No process of it is left then. */
  async stop(): Promise<void> {
    const { child, requests } = this.#parts;
    this.#connection.close();
    await Promise.all([child.stop(), requests.close()]);
  }

  /** Everything that is known of why it failed. */
  async failure(when: string): Promise<SkeinError> {
    const { agent, child } = this.#parts;
    const hasEnded = this.#broken === null && (await within(farewellMs, child.ended));
    const what = this.#broken?.message ?? (hasEnded ? `it ended ${when}` : `it closed its pipe ${when}`);
    const account = this.#broken === null ? this.account : child.report();
    return failed(agent, account === "" ? what : `${what}; ${account}`);
  }

  /** What `ask` throws of its answer is told as its misfit. `unknown`: what it means that it does not know the method. */
  async #ask<T>(when: string, ask: () => Promise<T>, unknown?: () => SkeinError): Promise<T> {
    const { agent, child } = this.#parts;
    try {
      return await ask();
    } catch (error) {
      if (this.#connection.signal.aborted) throw await this.failure(when);
      if (!(error instanceof RequestError)) {
        throw failed(agent, `its answer ${when} is none of the protocol: ${thrownText(error)}`);
      }
      if (error.code === noSuchMethod && unknown !== undefined) throw unknown();
      if (error.code === authRequired) throw loginNeeded(agent, errorWords(error), this.#about?.ways ?? []);
      const account = child.report();
      const told = `it answered ${when}: ${errorWords(error)}${account === "" ? "" : `; ${account}`}`;
      throw failed(agent, told);
    }
  }
}

/** An error as an agent tells it: the reason is often in the data. */
function errorWords({ message, code, data }: RequestError): string {
  const details = (data as { details?: unknown } | null | undefined)?.details;
  const more = typeof details === "string" ? details : data === undefined ? "" : JSON.stringify(data);
  return `${message} (${code})${more === "" ? "" : `: ${more}`}`;
}
