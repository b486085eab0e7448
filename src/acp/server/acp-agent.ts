import { isAbsolute } from "node:path";
import { setImmediate } from "node:timers";
import type * as acp from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import { cutText, escapeToLine, thrownText } from "../../core/text.ts";
import type { SessionDetailsPayload } from "../../protocol/session-details.ts";
import type { EditorCommand, EditorSession, ServerContext } from "./context.ts";
import { retryRateLimited } from "./context.ts";
import { LiveSession } from "./live-session.ts";
import { modeOf } from "./permission-requests.ts";
import { promptInput } from "./prompt.ts";
import {
  commandsUpdate,
  configOptions,
  ignoredText,
  listSessions,
  patchOf,
  titleOf,
  usageUpdate,
} from "./session-info.ts";

/** The editor at the other end of the connection. */
export interface Editor {
  sendUpdate(sessionId: string, update: acp.SessionUpdate): Promise<void>;
  requestPermission(
    request: acp.RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<acp.RequestPermissionResponse>;
}

interface OpenRequest {
  readonly cwd: string;
  readonly mcpServers?: readonly unknown[];
}

/** A session that is open in the editor. */
interface OpenSession {
  readonly live: LiveSession;
  /** Slash commands that are running. */
  readonly commands: Set<AbortController>;
  unansweredCount: number;
}

type OpenResponse = Pick<acp.NewSessionResponse, "modes" | "configOptions">;

/** Handles the requests from one editor. */
export class AcpAgent {
  readonly #context: ServerContext;
  readonly #editor: Editor;
  /** Keyed by the session ID that the editor uses. */
  readonly #open = new Map<string, OpenSession>();
  #takesNotices = false;
  #hasEnded = false;

  constructor(context: ServerContext, editor: Editor) {
    this.#context = retryRateLimited(context);
    this.#editor = editor;
  }

  initialize({ clientCapabilities }: acp.InitializeRequest, protocolVersion: number): acp.InitializeResponse {
    this.#takesNotices = (clientCapabilities?.session?.notices ?? null) !== null;
    return {
      protocolVersion,
      agentInfo: { name: "skein", title: "Skein", version: this.#context.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true, audio: false },
        mcpCapabilities: { http: false, sse: false },
        sessionCapabilities: {
          list: {},
          resume: {},
          fork: {},
          close: {},
          ...(this.#context.canCall("sessions.delete") && { delete: {} }),
        },
      },
      authMethods: [],
    };
  }

  async create(request: acp.NewSessionRequest): Promise<acp.NewSessionResponse> {
    const { calls, scope, canCall } = this.#context;
    const { cwd } = request;
    checkFolder(cwd);
    const folder = canCall("sessions.patch") ? { cwd } : {};
    const { key } = await calls.call("sessions.create", { ...scope, ...folder });
    return { sessionId: key, ...(await this.#openSession(key, request, "new")) };
  }

  load({ sessionId, ...request }: acp.LoadSessionRequest): Promise<acp.LoadSessionResponse> {
    return this.#openSession(sessionId, request, "load");
  }

  resume({ sessionId, ...request }: acp.ResumeSessionRequest): Promise<acp.ResumeSessionResponse> {
    return this.#openSession(sessionId, request, "resume");
  }

  async fork({ sessionId, ...request }: acp.ForkSessionRequest): Promise<acp.ForkSessionResponse> {
    const { calls, scope } = this.#context;
    checkFolder(request.cwd);
    const source = await this.#find(sessionId);
    const { key } = await calls.call("sessions.fork", { ...scope, key: source.key });
    return { sessionId: key, ...(await this.#openSession(key, request, "fork")) };
  }

  list(request: acp.ListSessionsRequest, signal: AbortSignal): Promise<acp.ListSessionsResponse> {
    return listSessions(this.#context, request, signal);
  }

  async delete({ sessionId }: acp.DeleteSessionRequest): Promise<void> {
    const { calls, scope } = this.#context;
    const { key } = await this.#find(sessionId);
    const open = this.#open.get(sessionId);
    if (open !== undefined) await cancelPrompts(open);
    this.#close(sessionId);
    await calls.call("sessions.delete", { ...scope, key });
  }

  /** Cancels this editor's prompts. Runs that other clients started continue. */
  async close({ sessionId }: acp.CloseSessionRequest): Promise<void> {
    await cancelPrompts(this.#get(sessionId));
    this.#close(sessionId);
  }

  async prompt({ sessionId, prompt }: acp.PromptRequest, signal: AbortSignal): Promise<acp.PromptResponse> {
    const open = this.#get(sessionId);
    const responded = Promise.withResolvers<void>();
    open.unansweredCount += 1;
    try {
      return await this.#answer(sessionId, open, prompt, signal, responded.promise);
    } finally {
      open.unansweredCount -= 1;
      // By the time this runs, the SDK is already sending the response.
      setImmediate(responded.resolve);
    }
  }

  /** Cancels this editor's commands and prompts, or the session's current run if there are none. */
  async cancel({ sessionId }: acp.CancelNotification): Promise<void> {
    const open = this.#open.get(sessionId);
    if (open === undefined) return;
    if (open.commands.size === 0) await open.live.cancel();
    else await cancelPrompts(open);
  }

  async setMode({ sessionId, modeId }: acp.SetSessionModeRequest): Promise<void> {
    this.#get(sessionId).live.permissions.mode = modeOf(modeId);
    await this.#editor.sendUpdate(sessionId, { sessionUpdate: "current_mode_update", currentModeId: modeId });
  }

  async setOption(request: acp.SetSessionConfigOptionRequest): Promise<acp.SetSessionConfigOptionResponse> {
    const { calls, scope } = this.#context;
    const { key } = this.#get(request.sessionId).live;
    await calls.call("sessions.patch", { ...scope, key, ...patchOf(request.configId, request.value) });
    return { configOptions: await this.#options(key) };
  }

  /** Stops all updates. Prompts that have been accepted continue. */
  end(): void {
    this.#hasEnded = true;
    for (const sessionId of [...this.#open.keys()]) this.#close(sessionId);
  }

  async #openSession(
    id: string,
    request: OpenRequest,
    method: "new" | "load" | "resume" | "fork",
  ): Promise<OpenResponse> {
    const details = await this.#find(id);
    checkFolder(request.cwd);
    this.#checkIdle(id);
    const options = await configOptions(this.#context, details);
    const editor: EditorSession = {
      sendUpdate: (update) => this.#editor.sendUpdate(id, update),
      requestPermission: (asked, signal) =>
        this.#editor.requestPermission({ ...asked, sessionId: id }, signal),
    };
    const live = await LiveSession.open(this.#context, details.key, editor, method === "load");
    try {
      this.#checkIdle(id);
    } catch (error) {
      live.close();
      throw error;
    }
    this.#close(id);
    this.#open.set(id, { live, commands: new Set(), unansweredCount: 0 });
    const ignored = ignoredText(this.#context, request, method === "new" ? null : details.cwd);
    // An editor ignores updates for a session until it has received the response that opens the session.
    setImmediate(() => void this.#begin(id, live, ignored));
    return {
      modes: live.permissions.modeState,
      ...(options.length > 0 && { configOptions: options }),
    };
  }

  /** Throws if prompts are pending. Opening the session again would replace it, and they would never be answered. */
  #checkIdle(sessionId: string): void {
    if (this.#hasEnded)
      throw new SkeinError("conflict", { problem: "The editor has disconnected", advice: "Start again" });
    if ((this.#open.get(sessionId)?.unansweredCount ?? 0) === 0) return;
    const problem = `A prompt in the session ${sessionId} is still being answered`;
    throw new SkeinError("conflict", {
      problem,
      advice: "Wait for the response or cancel the prompt, then open the session",
    });
  }

  async #begin(id: string, live: LiveSession, notice: string | null): Promise<void> {
    await this.#editor.sendUpdate(id, commandsUpdate(this.#context));
    if (notice !== null && this.#takesNotices)
      await this.#editor.sendUpdate(id, { sessionUpdate: "notice", severity: "warning", title: notice });
    else if (notice !== null) await live.say(`${notice}\n\n`);
    live.begin();
  }

  #findCommand(message: string): { readonly command: EditorCommand; readonly input: string } | null {
    const [, name, input = ""] = /^\/([a-z]+)(?:\s+(.*))?$/s.exec(message.trim()) ?? [];
    const command = this.#context.commands.find((each) => each.name === name);
    return command === undefined ? null : { command, input: input.trim() };
  }

  async #answer(
    id: string,
    open: OpenSession,
    blocks: acp.ContentBlock[],
    signal: AbortSignal,
    responded: Promise<void>,
  ): Promise<acp.PromptResponse> {
    const prompt = promptInput(blocks);
    const found = prompt.isTyped ? this.#findCommand(prompt.message) : null;
    if (found !== null) return this.#runCommand(id, open, found, signal);
    // A second slash escapes a command.
    const unescaped = prompt.message.slice(1);
    const isEscaped =
      prompt.isTyped && prompt.message.startsWith("//") && this.#findCommand(unescaped) !== null;
    const message = isEscaped ? unescaped : prompt.message;
    const response = await open.live.prompt({ ...prompt, message }, signal, responded);
    await this.#tryUpdate(id, open, () => this.#sendState(id, open.live));
    return response;
  }

  /** Runs a command without a model. An error is displayed like a result, because the session can continue. */
  async #runCommand(
    id: string,
    open: OpenSession,
    { command, input }: { readonly command: EditorCommand; readonly input: string },
    signal: AbortSignal,
  ): Promise<acp.PromptResponse> {
    const { live, commands } = open;
    const controller = new AbortController();
    const cancelled = Promise.withResolvers<null>();
    controller.signal.addEventListener("abort", () => cancelled.resolve(null), { once: true });
    const cancel = () => {
      // An editor that disconnects does not cancel the command.
      if (!this.#hasEnded) controller.abort();
    };
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    commands.add(controller);
    let text: string | null;
    try {
      const run = command.run(live.key, input, controller.signal).catch(thrownText);
      text = await Promise.race([cancelled.promise, run]);
    } finally {
      signal.removeEventListener("abort", cancel);
      commands.delete(controller);
    }
    if (text === null) return { stopReason: "cancelled" };
    await live.say(text);
    await this.#tryUpdate(id, open, async () => {
      const options = await this.#options(live.key);
      if (options.length > 0)
        await this.#editor.sendUpdate(id, { sessionUpdate: "config_option_update", configOptions: options });
    });
    return { stopReason: "end_turn" };
  }

  /** Sends updates that accompany a response. The response is valid even if the updates fail. */
  async #tryUpdate(id: string, open: OpenSession, update: () => Promise<void>): Promise<void> {
    const isOpen = () => this.#open.get(id) === open;
    if (!isOpen()) return;
    await update().catch((error: unknown) => {
      if (isOpen()) this.#context.report(error);
    });
  }

  async #sendState(id: string, live: LiveSession): Promise<void> {
    const details = await this.#find(live.key);
    const usage = await usageUpdate(this.#context, details);
    if (usage !== null) await this.#editor.sendUpdate(id, usage);
    const updatedAt = new Date(details.updatedAt).toISOString();
    const title = titleOf(details);
    await this.#editor.sendUpdate(id, { sessionUpdate: "session_info_update", title, updatedAt });
  }

  async #options(key: string): Promise<acp.SessionConfigOption[]> {
    return configOptions(this.#context, await this.#find(key));
  }

  #find(key: string): Promise<SessionDetailsPayload> {
    return this.#context.calls.call("sessions.get", { ...this.#context.scope, key });
  }

  #get(sessionId: string): OpenSession {
    const open = this.#open.get(sessionId);
    if (open !== undefined) return open;
    const advice = "Open it with session/new, session/load or session/resume first";
    throw new SkeinError("not_found", { what: "Open session", name: sessionId, advice });
  }

  #close(sessionId: string): void {
    this.#open.get(sessionId)?.live.close();
    this.#open.delete(sessionId);
  }
}

/** Cancels this editor's commands and prompts. Runs that other clients started continue. */
async function cancelPrompts({ live, commands }: OpenSession): Promise<void> {
  for (const command of commands) command.abort();
  await live.cancelPrompts();
}

function checkFolder(cwd: string): void {
  if (isAbsolute(cwd) && !cwd.includes("\0")) return;
  const advice = "Use the absolute path of a folder";
  const problem = `cwd is "${escapeToLine(cutText(cwd, 300))}", which is not an absolute path`;
  throw new SkeinError("invalid_arguments", { problem, advice });
}
