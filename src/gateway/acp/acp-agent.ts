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
import { configOptions, patchOf } from "./options.ts";
import { modeOf } from "./permissions.ts";
import { promptInput } from "./prompt-input.ts";
import { commandsUpdate, modeState, notDone, usageUpdate } from "./session-start.ts";

/** What the editor of a connection can be told and asked. */
export interface Editor {
  tell(sessionId: string, update: acp.SessionUpdate): Promise<void>;
  ask(request: acp.RequestPermissionRequest, signal: AbortSignal): Promise<acp.RequestPermissionResponse>;
}

interface Opening {
  readonly cwd: string;
  readonly mcpServers?: readonly unknown[];
}

type Opened = Pick<acp.NewSessionResponse, "modes" | "configOptions">;

/** The sessions that one editor has open, by the ids that it knows them by. */
export class AcpAgent {
  readonly #parts: AcpParts;
  readonly #editor: Editor;
  readonly #live = new Map<string, LiveSession>();
  #takesNotices = false;

  constructor(parts: AcpParts, editor: Editor) {
    this.#parts = parts;
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
    return { sessionId: key, ...(await this.#open(key, key, { ...asked, cwd }, "new")) };
  }

  async load({ sessionId, ...asked }: acp.LoadSessionRequest): Promise<acp.LoadSessionResponse> {
    return this.#open(sessionId, (await this.#find(sessionId)).key, asked, "load");
  }

  async resume({ sessionId, ...asked }: acp.ResumeSessionRequest): Promise<acp.ResumeSessionResponse> {
    return this.#open(sessionId, (await this.#find(sessionId)).key, asked, "resume");
  }

  async fork({ sessionId, ...asked }: acp.ForkSessionRequest): Promise<acp.ForkSessionResponse> {
    const from = await this.#find(sessionId);
    const { key } = await this.#parts.calls.call("sessions.fork", { ...this.#parts.whose, key: from.key });
    return { sessionId: key, ...(await this.#open(key, key, asked, "resume")) };
  }

  list({ cwd = null, cursor = null }: acp.ListSessionsRequest): Promise<acp.ListSessionsResponse> {
    return listSessions(this.#parts, { cwd, cursor });
  }

  async delete({ sessionId }: acp.DeleteSessionRequest): Promise<void> {
    const { key } = await this.#find(sessionId);
    this.#forget(sessionId);
    await this.#parts.calls.call("sessions.delete", { ...this.#parts.whose, key });
  }

  /** What was asked here and is not answered ends with it. */
  async close({ sessionId }: acp.CloseSessionRequest): Promise<void> {
    const live = this.#of(sessionId);
    await live.cancelAsked();
    this.#forget(sessionId);
  }

  async prompt({ sessionId, prompt }: acp.PromptRequest, signal: AbortSignal): Promise<acp.PromptResponse> {
    const live = this.#of(sessionId);
    const input = promptInput(prompt);
    const command = input.isTyped ? this.#commandIn(input.message) : null;
    if (command !== null) return this.#run(sessionId, live, command);
    // Two slashes say one, where one would be a command.
    const isEscaped = input.isTyped && /^\/\//.test(input.message) && this.#commandIn(input.message.slice(1));
    const message = isEscaped ? input.message.slice(1) : input.message;
    const response = await live.prompt({ ...input, message }, signal);
    await this.#tellState(sessionId, live);
    return response;
  }

  async cancel({ sessionId }: acp.CancelNotification): Promise<void> {
    await this.#live.get(sessionId)?.cancel();
  }

  async setMode({ sessionId, modeId }: acp.SetSessionModeRequest): Promise<void> {
    const live = this.#of(sessionId);
    live.permissions.mode = modeOf(modeId);
    await this.#editor.tell(sessionId, { sessionUpdate: "current_mode_update", currentModeId: modeId });
  }

  async setOption(asked: acp.SetSessionConfigOptionRequest): Promise<acp.SetSessionConfigOptionResponse> {
    const { calls, whose } = this.#parts;
    const { key } = this.#of(asked.sessionId);
    await calls.call("sessions.patch", { ...whose, key, ...patchOf(asked.configId, asked.value) });
    return { configOptions: await this.#options(key) };
  }

  /** Nobody is told of anything any more; what was accepted goes on. */
  end(): void {
    for (const sessionId of [...this.#live.keys()]) this.#forget(sessionId);
  }

  async #open(id: string, key: string, asked: Opening, how: "new" | "load" | "resume"): Promise<Opened> {
    checkFolder(asked.cwd);
    const ports: LivePorts = {
      tell: (update) => this.#editor.tell(id, update),
      ask: (request, signal) => this.#editor.ask({ ...request, sessionId: id }, signal),
    };
    const live = await LiveSession.open(this.#parts, key, ports, how === "load");
    this.#forget(id);
    this.#live.set(id, live);
    const options = await this.#options(key);
    // Of a session that it is not yet told of an editor can hear nothing.
    setImmediate(() => {
      void this.#begin(id, live, notDone(this.#parts, { ...asked, isNew: how === "new" }));
    });
    return {
      modes: modeState(live.permissions),
      ...(options.length === 0 ? {} : { configOptions: options }),
    };
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

  /** Without a model. What cannot be done is told like what was done: the session goes on either way. */
  async #run(
    id: string,
    live: LiveSession,
    { command, rest }: { readonly command: EditorCommand; readonly rest: string },
  ): Promise<acp.PromptResponse> {
    const text = await command.run(live.key, rest).catch((error: unknown) => thrownText(error));
    await live.say(text);
    const options = await this.#options(live.key);
    if (options.length > 0)
      await this.#editor.tell(id, { sessionUpdate: "config_option_update", configOptions: options });
    return { stopReason: "end_turn" };
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

  #of(sessionId: string): LiveSession {
    const live = this.#live.get(sessionId);
    if (live !== undefined) return live;
    const advice = "Open it with session/new, session/load or session/resume first";
    throw new SkeinError("not_found", { what: "An open session", name: sessionId, advice });
  }

  #forget(sessionId: string): void {
    this.#live.get(sessionId)?.close();
    this.#live.delete(sessionId);
  }
}

function checkFolder(cwd: string): void {
  if (isAbsolute(cwd) && !cwd.includes("\0")) return;
  const advice = "Name the whole path of a folder";
  const problem = `cwd is "${escapeToLine(cutText(cwd, 300))}", no absolute path`;
  throw new SkeinError("invalid_arguments", { problem, advice });
}
