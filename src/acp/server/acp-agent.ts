import { isAbsolute } from "node:path";
import { setImmediate } from "node:timers";
import type * as acp from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import { cutText, escapeToLine, thrownText } from "../../core/text.ts";
import type { SessionDetailsPayload } from "../../protocol/session-details.ts";
import type { AcpParts, EditorCommand } from "./contract.ts";
import { listSessions, titleOf } from "./listing.ts";
import type { LivePorts } from "./live-session.ts";
import { LiveSession } from "./live-session.ts";
import { OpenSession } from "./open-session.ts";
import { configOptions, patchOf } from "./options.ts";
import { modeOf } from "./permissions.ts";
import type { PromptInput } from "./prompt-input.ts";
import { promptInput } from "./prompt-input.ts";
import { commandsUpdate, modeState, notDone, usageUpdate } from "./session-start.ts";
import { unhurried } from "./unhurried.ts";

/** What the editor of a connection can be told and asked. */
export interface Editor {
  tell(sessionId: string, update: acp.SessionUpdate): Promise<void>;
  ask(request: acp.RequestPermissionRequest, signal: AbortSignal): Promise<acp.RequestPermissionResponse>;
}

interface Opening {
  readonly cwd: string;
  readonly mcpServers?: readonly unknown[];
}

type How = "new" | "load" | "resume" | "fork";
type Opened = Pick<acp.NewSessionResponse, "modes" | "configOptions">;

/** The sessions that one editor has open, by the ids that it knows them by. */
export class AcpAgent {
  readonly #parts: AcpParts;
  readonly #editor: Editor;
  readonly #open = new Map<string, OpenSession>();
  #takesNotices = false;
  #isOver = false;

  constructor(parts: AcpParts, editor: Editor) {
    this.#parts = unhurried(parts);
    this.#editor = editor;
  }

  initialize({ clientCapabilities }: acp.InitializeRequest, protocolVersion: number): acp.InitializeResponse {
    this.#takesNotices = (clientCapabilities?.session?.notices ?? null) !== null;
    return {
      protocolVersion,
      agentInfo: { name: "skein", title: "Skein", version: this.#parts.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true, audio: false },
        mcpCapabilities: { http: false, sse: false },
        sessionCapabilities: {
          list: {},
          resume: {},
          fork: {},
          close: {},
          ...(this.#parts.may("sessions.delete") ? { delete: {} } : {}),
        },
      },
      authMethods: [],
    };
  }

  async create({ cwd, ...asked }: acp.NewSessionRequest): Promise<acp.NewSessionResponse> {
    const { calls, whose, may } = this.#parts;
    checkFolder(cwd);
    const place = may("sessions.patch") ? { cwd } : {};
    const { key } = await calls.call("sessions.create", { ...whose, ...place });
    return { sessionId: key, ...(await this.#begun(key, await this.#find(key), { ...asked, cwd }, "new")) };
  }

  async load({ sessionId, ...asked }: acp.LoadSessionRequest): Promise<acp.LoadSessionResponse> {
    return this.#begun(sessionId, await this.#find(sessionId), asked, "load");
  }

  async resume({ sessionId, ...asked }: acp.ResumeSessionRequest): Promise<acp.ResumeSessionResponse> {
    return this.#begun(sessionId, await this.#find(sessionId), asked, "resume");
  }

  async fork({ sessionId, ...asked }: acp.ForkSessionRequest): Promise<acp.ForkSessionResponse> {
    checkFolder(asked.cwd);
    const from = await this.#find(sessionId);
    const { key } = await this.#parts.calls.call("sessions.fork", { ...this.#parts.whose, key: from.key });
    return { sessionId: key, ...(await this.#begun(key, await this.#find(key), asked, "fork")) };
  }

  list(
    { cwd = null, cursor = null }: acp.ListSessionsRequest,
    signal: AbortSignal,
  ): Promise<acp.ListSessionsResponse> {
    return listSessions(this.#parts, { cwd, cursor }, signal);
  }

  async delete({ sessionId }: acp.DeleteSessionRequest): Promise<void> {
    const { key } = await this.#find(sessionId);
    await this.#open.get(sessionId)?.cancelAsked();
    this.#forget(sessionId);
    await this.#parts.calls.call("sessions.delete", { ...this.#parts.whose, key });
  }

  /** What was asked here and is not answered ends with it; what others set off goes on. */
  async close({ sessionId }: acp.CloseSessionRequest): Promise<void> {
    await this.#of(sessionId).cancelAsked();
    this.#forget(sessionId);
  }

  async prompt({ sessionId, prompt }: acp.PromptRequest, signal: AbortSignal): Promise<acp.PromptResponse> {
    const open = this.#of(sessionId);
    return open.answering((answered) =>
      this.#answer(sessionId, open, promptInput(prompt), { signal, answered }),
    );
  }

  async cancel({ sessionId }: acp.CancelNotification): Promise<void> {
    await this.#open.get(sessionId)?.cancel();
  }

  async setMode({ sessionId, modeId }: acp.SetSessionModeRequest): Promise<void> {
    const { live } = this.#of(sessionId);
    live.permissions.mode = modeOf(modeId);
    await this.#editor.tell(sessionId, { sessionUpdate: "current_mode_update", currentModeId: modeId });
  }

  async setOption(asked: acp.SetSessionConfigOptionRequest): Promise<acp.SetSessionConfigOptionResponse> {
    const { calls, whose } = this.#parts;
    const { key } = this.#of(asked.sessionId).live;
    await calls.call("sessions.patch", { ...whose, key, ...patchOf(asked.configId, asked.value) });
    return { configOptions: await this.#options(key) };
  }

  /** Nobody is told of anything any more; what was accepted goes on. */
  end(): void {
    this.#isOver = true;
    for (const sessionId of [...this.#open.keys()]) this.#forget(sessionId);
  }

  async #begun(id: string, details: SessionDetailsPayload, asked: Opening, how: How): Promise<Opened> {
    checkFolder(asked.cwd);
    this.#checkIdle(id);
    const { key } = details;
    const options = await configOptions(this.#parts, details);
    const ports: LivePorts = {
      tell: (update) => this.#editor.tell(id, update),
      ask: (request, signal) => this.#editor.ask({ ...request, sessionId: id }, signal),
    };
    const live = await LiveSession.open(this.#parts, key, ports, how === "load");
    try {
      this.#checkIdle(id);
    } catch (error) {
      live.close();
      throw error;
    }
    this.#forget(id);
    this.#open.set(id, new OpenSession(live));
    // Of a session that it is not yet told of an editor can hear nothing.
    setImmediate(() => {
      void this.#begin(id, live, notDone(this.#parts, { ...asked, isNew: how === "new", at: details.cwd }));
    });
    return {
      modes: modeState(live.permissions),
      ...(options.length === 0 ? {} : { configOptions: options }),
    };
  }

  /** A session that is opened anew is another to the editor, which would not hear the end of what it asked before. */
  #checkIdle(sessionId: string): void {
    if (this.#isOver)
      throw new SkeinError("conflict", { problem: "The editor has gone", advice: "Start again" });
    if (this.#open.get(sessionId)?.isAnswering !== true) return;
    const problem = `A prompt of the session ${sessionId} is being answered`;
    throw new SkeinError("conflict", { problem, advice: "Wait for its end, or cancel it, and open it then" });
  }

  async #begin(id: string, live: LiveSession, text: string | null): Promise<void> {
    await this.#editor.tell(id, commandsUpdate(this.#parts));
    if (text !== null && this.#takesNotices)
      await this.#editor.tell(id, { sessionUpdate: "notice", severity: "warning", title: text });
    else if (text !== null) await live.say(`${text}\n\n`);
    live.begin();
  }

  #commandIn(message: string): { readonly command: EditorCommand; readonly rest: string } | null {
    const [, name, rest = ""] = /^\/([a-z]+)(?:\s+(.*))?$/s.exec(message.trim()) ?? [];
    const command = this.#parts.commands.find((each) => each.name === name);
    return command === undefined ? null : { command, rest: rest.trim() };
  }

  async #answer(
    id: string,
    open: OpenSession,
    input: PromptInput,
    { signal, answered }: { readonly signal: AbortSignal; readonly answered: Promise<void> },
  ): Promise<acp.PromptResponse> {
    const command = input.isTyped ? this.#commandIn(input.message) : null;
    if (command !== null) return this.#run(id, open, command, signal);
    // Two slashes say one, where one would be a command.
    const isEscaped =
      input.isTyped && input.message.startsWith("//") && this.#commandIn(input.message.slice(1)) !== null;
    const message = isEscaped ? input.message.slice(1) : input.message;
    const response = await open.live.prompt({ ...input, message }, signal, answered);
    await this.#beside(id, open, () => this.#tellState(id, open.live));
    return response;
  }

  /** Without a model. What cannot be done is told like what was done: the session goes on either way. */
  async #run(
    id: string,
    open: OpenSession,
    { command, rest }: { readonly command: EditorCommand; readonly rest: string },
    signal: AbortSignal,
  ): Promise<acp.PromptResponse> {
    const { live } = open;
    const run = (cancelled: AbortSignal) => command.run(live.key, rest, cancelled).catch(thrownText);
    const text = await open.command(run, signal, () => this.#isOver);
    if (text === null) return { stopReason: "cancelled" };
    await live.say(text);
    await this.#beside(id, open, async () => {
      const options = await this.#options(live.key);
      if (options.length > 0)
        await this.#editor.tell(id, { sessionUpdate: "config_option_update", configOptions: options });
    });
    return { stopReason: "end_turn" };
  }

  /** What is told beside an answer, which stands without it too. */
  async #beside(id: string, open: OpenSession, act: () => Promise<void>): Promise<void> {
    const isOpen = () => this.#open.get(id) === open;
    if (!isOpen()) return;
    await act().catch((error: unknown) => {
      if (isOpen()) this.#parts.report(error);
    });
  }

  async #tellState(id: string, live: LiveSession): Promise<void> {
    const details = await this.#find(live.key);
    const usage = await usageUpdate(this.#parts, details);
    if (usage !== null) await this.#editor.tell(id, usage);
    const updatedAt = new Date(details.updatedAt).toISOString();
    await this.#editor.tell(id, { sessionUpdate: "session_info_update", title: titleOf(details), updatedAt });
  }

  async #options(key: string): Promise<acp.SessionConfigOption[]> {
    return configOptions(this.#parts, await this.#find(key));
  }

  #find(key: string): Promise<SessionDetailsPayload> {
    return this.#parts.calls.call("sessions.get", { ...this.#parts.whose, key });
  }

  #of(sessionId: string): OpenSession {
    const open = this.#open.get(sessionId);
    if (open !== undefined) return open;
    const advice = "Open it with session/new, session/load or session/resume first";
    throw new SkeinError("not_found", { what: "Open session", name: sessionId, advice });
  }

  #forget(sessionId: string): void {
    this.#open.get(sessionId)?.live.close();
    this.#open.delete(sessionId);
  }
}

function checkFolder(cwd: string): void {
  if (isAbsolute(cwd) && !cwd.includes("\0")) return;
  const advice = "Name the whole path of a folder";
  const problem = `cwd is "${escapeToLine(cutText(cwd, 300))}", no absolute path`;
  throw new SkeinError("invalid_arguments", { problem, advice });
}
