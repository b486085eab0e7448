import type { PromptResponse, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Timing } from "../../client/retry.ts";
import { realTiming, retryWhileTransient } from "../../client/retry.ts";
import { inputEntryId } from "../../core/hashed-id.ts";
import { present } from "../../core/present.ts";
import type { Calls, EventStream, ReceivedEvent } from "../../protocol/calls.ts";
import type { SentPayload } from "../../protocol/runs.ts";
import type { EditorSession, ServerContext } from "./context.ts";
import { allEntries, entriesAfter, lastEntryId } from "./log-pages.ts";
import { PendingApprovals } from "./pending-approvals.ts";
import { PermissionRequests } from "./permission-requests.ts";
import type { PromptInput } from "./prompt.ts";
import { limitText, promptResponse } from "./prompt.ts";
import { SessionView } from "./session-view.ts";

type Reader = Calls<"sessions.resolve" | "sessions.get" | "sessions.entries" | "approvals.list">;

/** A prompt that has no response yet. */
interface Prompt {
  runId: string | null;
  isCancelled: boolean;
  /** Whether updates from the prompt's run can be sent, which requires that the earlier prompts have responses. */
  hasBegun: boolean;
  /** Whether the prompt's run is asleep. Meanwhile, other runs in the session continue. */
  isAsleep: boolean;
  /** Resolves when the prompt's response is being sent. */
  readonly responded: Promise<void>;
}

/** The maximum duration of one call to `agent.wait`. A longer wait takes several calls. */
const waitMs = 60_000;
/** How long the `run.ended` event can take to arrive after `agent.wait` has returned. */
const lateEventMs = 2000;

/** Events that occur only while a run is working. A queued, steered or merged run emits other events. */
const workEvents = new Set(["run.started", "run.recovered", "run.resumed", "run.delta", "run.tool"]);

/**
 * Shows an editor everything that happens in a session, no matter which client caused it. If events are missed, the log
 * is read instead.
 */
export class LiveSession {
  /** Identifies the session in every call. Stays the same when the session is reset. */
  readonly key: string;
  readonly permissions: PermissionRequests;
  readonly #context: ServerContext;
  readonly #editor: EditorSession;
  readonly #timing: Timing;
  /** Retries a call while a gateway is temporarily unavailable. */
  readonly #reader: Reader;
  readonly #view = new SessionView(() => crypto.randomUUID());
  readonly #stream: EventStream;
  readonly #approvals: PendingApprovals;
  readonly #prompts = new Set<Prompt>();
  /** Prompts whose responses are not being sent yet, in order. */
  readonly #unanswered = new Set<Prompt>();
  /** Keyed by run ID. Resolves to the stop reason of the run's last answer once the end of the run has been shown. */
  readonly #runEnds = new Map<string, PromiseWithResolvers<string | null>>();
  /** Runs whose end has been shown from the log. Their remaining events are skipped. */
  readonly #finishedRuns = new Set<string>();
  readonly #closing = new AbortController();
  /** The most recent task that sends updates. These tasks run one at a time. */
  #lastTask: Promise<unknown> = Promise.resolve();
  #lastSend: Promise<unknown> = Promise.resolve();
  /** The last log entry that has been shown, or that existed when the session was opened. */
  #cursor: string | null = null;
  /** The session ID of the log that the cursor points into. A reset starts a new log. */
  #sessionId = "";
  /** The run that the unfinished calls belong to. Only one run in a session works at a time. */
  #workingRun: string | null = null;

  private constructor(context: ServerContext, key: string, editor: EditorSession, timing: Timing) {
    this.key = key;
    this.#context = context;
    this.#editor = editor;
    this.#timing = timing;
    this.#reader = {
      call: (method, params) =>
        retryWhileTransient(timing, this.#closing.signal, () => context.calls.call(method, params)),
    };
    const { report, calls } = context;
    const { requestPermission, sendUpdate } = editor;
    const resolve = async (approvalId: string, answer: "approved" | "denied") => {
      await calls.call("approvals.resolve", { approvalId, answer, ...this.#user });
    };
    const onOpen = () => this.#approvals.poll();
    this.permissions = new PermissionRequests(
      { requestPermission, sendUpdate, resolve, onOpen, report },
      this.#view.tools,
    );
    const events = ["run.*", "approval.*", "entry.appended", "session.reset"];
    this.#stream = calls.events({ keys: [key], events, ...this.#user });
    const { permissions } = this;
    this.#approvals = new PendingApprovals(key, context, { reader: this.#reader, permissions, timing });
  }

  /** Subscribes to a session's events. If `showHistory` is set, the session's branch is shown before this resolves. */
  static async open(
    context: ServerContext,
    key: string,
    editor: EditorSession,
    showHistory: boolean,
    timing: Timing = realTiming,
  ): Promise<LiveSession> {
    const live = new LiveSession(context, key, editor, timing);
    try {
      await Promise.all([live.#stream.ready, live.#approvals.ready]);
      live.#sessionId = (await live.#reader.call("sessions.resolve", live.#name)).sessionId;
      live.#cursor = await lastEntryId(live.#reader, live.#name);
      if (showHistory)
        for await (const entries of allEntries(live.#reader, live.#name, "branch"))
          for (const entry of entries) await live.#send(live.#view.showEntry(entry));
      await live.#endAbandonedCalls();
    } catch (error) {
      live.close();
      throw error;
    }
    return live;
  }

  /** Starts showing events and pending approvals. Call this once the session has been sent to the editor. */
  begin(): void {
    if (this.#closing.signal.aborted) return;
    const report = (error: unknown) => this.#report(error);
    // Runs before any event is handled, so that requests that have already been answered are withdrawn.
    void this.#inOrder(() => this.#approvals.syncOwn()).catch(report);
    void this.#listen().catch(report);
    void this.#approvals.listenToSpawned().catch(report);
  }

  close(): void {
    this.#closing.abort();
    this.#stream.close();
    this.#approvals.close();
    this.permissions.close();
  }

  /**
   * Sends a prompt and shows its run until the run ends. The prompt is accepted immediately. An editor attributes every
   * update before a response to that response, so this prompt's updates wait until the `responded` promises of all
   * earlier prompts have resolved.
   */
  async prompt(
    { message, attachments }: PromptInput,
    signal: AbortSignal,
    responded: Promise<void>,
  ): Promise<PromptResponse> {
    const prompt: Prompt = { runId: null, isCancelled: false, hasBegun: false, isAsleep: false, responded };
    const cancel = () => {
      // A run continues if the editor disconnects.
      if (this.#closing.signal.aborted) return;
      void this.#cancel(prompt).catch((error: unknown) => this.#report(error));
    };
    this.#prompts.add(prompt);
    this.#unanswered.add(prompt);
    void responded.then(() => this.#unanswered.delete(prompt));
    signal.addEventListener("abort", cancel, { once: true });
    // If the prompt and its cancellation arrive together, the listener is not called.
    if (signal.aborted) cancel();
    try {
      const runId = await this.#sendPrompt(prompt, message, attachments);
      if (prompt.isCancelled) await this.#abort(runId);
      const sent = await this.#waitForEnd(runId);
      await this.#waitForTurn(prompt);
      const stopReason = await this.#catchUp(runId);
      const text = limitText(sent);
      if (text !== null) await this.say(text);
      return promptResponse({ sent, stopReason, isCancelled: prompt.isCancelled });
    } catch (error) {
      // The session was closed along with the prompt, so nothing is waiting for the run to end.
      if (prompt.isCancelled && this.#closing.signal.aborted) return { stopReason: "cancelled" };
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#prompts.delete(prompt);
      if (this.#prompts.size === 0) this.#runEnds.clear();
    }
  }

  /** Aborts this editor's prompts, or the session's current run if there are none. */
  async cancel(): Promise<void> {
    if (this.#prompts.size > 0) return this.cancelPrompts();
    const { runs } = await this.#context.calls.call("chat.abort", { sessionKey: this.key, ...this.#user });
    this.permissions.withdrawRuns(runs.map(({ runId }) => runId));
  }

  async cancelPrompts(): Promise<void> {
    const prompts = [...this.#prompts];
    await Promise.all(prompts.map((prompt) => this.#cancel(prompt)));
    this.permissions.withdrawRuns(prompts.flatMap(({ runId }) => runId ?? []));
  }

  /** Shows text from Skein as if the agent had sent it. The text is not stored in the session. */
  async say(text: string): Promise<void> {
    const update: SessionUpdate = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
    await this.#inOrder(() => this.#editor.sendUpdate(update));
  }

  get #user(): { readonly userId?: string } {
    return present({ userId: this.#context.scope.userId });
  }

  get #name(): { readonly key: string; readonly userId?: string } {
    return { key: this.key, ...this.#user };
  }

  /** Resolves when the prompt has been accepted. Prompts are sent in order. */
  #sendPrompt(prompt: Prompt, message: string, attachments: PromptInput["attachments"]): Promise<string> {
    const params = {
      sessionKey: this.key,
      ...this.#user,
      message,
      idempotencyKey: `acp:${this.key.slice(-120)}:${crypto.randomUUID()}`,
      queueMode: "followup" as const,
      ...(attachments.length > 0 && { attachments }),
    };
    const sent = this.#lastSend
      .then(() => this.#context.calls.call("chat.send", params))
      .then(({ runId, waitsForApp }) => {
        prompt.runId = runId;
        this.#view.expectTyped(inputEntryId(runId));
        if (waitsForApp !== undefined) this.#sayWaiting(prompt, runId, waitsForApp);
        return runId;
      });
    this.#lastSend = sent.catch(() => undefined);
    return sent;
  }

  #sayWaiting(prompt: Prompt, runId: string, app: string): void {
    const text = `Waiting for a process of the app ${app}. Run \`skein runs release ${runId}\` to let any process answer.`;
    void this.#waitForTurn(prompt)
      .then(() => this.say(text))
      .catch((error: unknown) => this.#report(error));
  }

  /** Waits for the responses to the earlier prompts, except those whose runs are asleep. */
  async #waitForTurn(prompt: Prompt): Promise<void> {
    if (prompt.hasBegun) return;
    const prompts = [...this.#unanswered];
    const earlier = prompts.slice(0, prompts.indexOf(prompt)).filter(({ isAsleep }) => !isAsleep);
    await Promise.all(earlier.map(({ responded }) => responded));
    prompt.hasBegun = true;
  }

  async #cancel(prompt: Prompt): Promise<void> {
    prompt.isCancelled = true;
    if (prompt.runId !== null) await this.#abort(prompt.runId);
  }

  async #abort(runId: string): Promise<void> {
    await this.#context.calls.call("runs.abort", { runId, ...this.#user });
  }

  async #waitForEnd(runId: string): Promise<SentPayload> {
    const { signal } = this.#closing;
    for (;;) {
      const params = { runId, timeoutMs: waitMs, ...this.#user };
      const sent = await this.#context.calls.call("agent.wait", params, { signal });
      signal.throwIfAborted();
      if (sent.finished) return sent;
    }
  }

  /**
   * Resolves to the stop reason of a run's last answer once the whole run has been shown, from events or from the log.
   */
  async #catchUp(runId: string): Promise<string | null> {
    const timeout = Promise.withResolvers<"late">();
    const cancelTimer = this.#timing.setTimer(lateEventMs, () => timeout.resolve("late"));
    const ended = this.#runEnd(runId).promise.then((stopReason) => ({ stopReason }));
    const end = await Promise.race([ended, timeout.promise]);
    cancelTimer();
    return this.#inOrder(async () => {
      if (end === "late") this.#finishedRuns.add(runId);
      await this.#readLog();
      if (end !== "late") return end.stopReason;
      await this.#endAbandonedCalls();
      return this.#view.stopReason;
    });
  }

  /** Ends unfinished calls that no run is working on, after reading what has been logged for them. */
  async #endAbandonedCalls(): Promise<void> {
    const { runId = null } = await this.#reader.call("sessions.get", this.#name);
    this.#workingRun = runId;
    const open = this.#view.tools.open();
    if (runId !== null || open.length === 0) return;
    await this.#readLog();
    await this.#send(this.#view.tools.abandon(open));
  }

  async #listen(): Promise<void> {
    for await (const received of this.#stream) {
      if (this.#closing.signal.aborted) return;
      await this.#holdBack(received);
      await this.#inOrder(() => this.#takeEvent(received)).catch((error: unknown) => this.#report(error));
    }
  }

  /**
   * Delays a prompt's events until its turn starts. This is not run as an ordered task, because the awaited response
   * depends on such tasks.
   */
  async #holdBack({ event, payload }: ReceivedEvent): Promise<void> {
    if (event === "gap" || !("runId" in payload)) return;
    const isStart = event === "run.started" || event === "run.recovered";
    // A prompt's run ID is not known until the prompt has been accepted.
    if (isStart) await this.#lastSend;
    const prompt = [...this.#prompts].find(({ runId }) => runId === payload.runId);
    if (prompt === undefined) return;
    prompt.isAsleep = event === "run.sleeping";
    if (isStart) await this.#waitForTurn(prompt);
  }

  #report(error: unknown): void {
    if (!this.#closing.signal.aborted) this.#context.report(error);
  }

  async #takeEvent(received: ReceivedEvent): Promise<void> {
    switch (received.event) {
      case "gap":
        return this.#takeGap();
      case "session.reset":
        this.#cursor = null;
        this.#sessionId = received.payload.freshSessionId;
        return;
      case "entry.appended": {
        const { entry, sessionId } = received.payload;
        // A prompt's entry is not known until the prompt has been accepted.
        await this.#lastSend;
        await this.#send(this.#view.showEvent(entry));
        if (sessionId === this.#sessionId) this.#cursor = entry.id;
        return;
      }
      case "approval.requested":
        return this.permissions.open(received.payload);
      case "approval.resolved":
        return this.permissions.withdraw(received.payload.approvalId);
      default:
        return this.#takeRunEvent(received);
    }
  }

  async #takeRunEvent(received: ReceivedEvent): Promise<void> {
    if (!("sessionKey" in received.payload)) return;
    const { runId = "" } = received.payload;
    if (this.#finishedRuns.has(runId)) {
      if (received.event === "run.ended") this.#finishedRuns.delete(runId);
      return;
    }
    if (workEvents.has(received.event)) this.#workingRun = runId;
    if (received.event === "run.resumed" || received.event === "run.ended") this.#approvals.checkRun(runId);
    switch (received.event) {
      case "run.delta":
        return this.#send(this.#view.showDelta(received.payload));
      case "run.tool":
        return this.#send(this.#view.showTool(received.payload));
      case "run.retry":
      case "run.started":
      case "run.recovered":
        return this.#send(this.#view.restartAnswer());
      case "run.ended":
        return this.#takeRunEnd(runId);
      default:
        return;
    }
  }

  /** A run that ends without having worked does not end the calls of the run that is working. */
  async #takeRunEnd(runId: string): Promise<void> {
    const { stopReason, isCurrent, tools } = this.#view;
    if (this.#prompts.size > 0) this.#runEnd(runId).resolve(stopReason);
    // The unfinished calls might belong to a run whose events have not arrived yet.
    if (!isCurrent && tools.open().length > 0) return this.#endAbandonedCalls();
    if (this.#workingRun !== null && this.#workingRun !== runId) return;
    this.#workingRun = null;
    await this.#send(tools.abandon());
  }

  /** If reading the log fails, the next read catches up. Approvals are synced in either case. */
  async #takeGap(): Promise<void> {
    this.#view.markGap();
    try {
      await this.#readLog();
      await this.#endAbandonedCalls();
    } catch (error) {
      this.#report(error);
    }
    await this.#approvals.syncOwn();
  }

  /** Shows the entries after the cursor, or all entries if the session has a new log. */
  async #readLog(): Promise<void> {
    const { sessionId } = await this.#reader.call("sessions.resolve", this.#name);
    if (sessionId !== this.#sessionId) this.#cursor = null;
    this.#sessionId = sessionId;
    for await (const entries of entriesAfter(this.#reader, this.#name, this.#cursor)) {
      for (const entry of entries) {
        if (this.#isHeldBack(entry.id)) return;
        await this.#send(this.#view.showEntry(entry));
        this.#cursor = entry.id;
      }
    }
  }

  /** Whether an entry is the input of a prompt whose turn has not started yet. */
  #isHeldBack(entryId: string): boolean {
    return [...this.#prompts].some(
      ({ hasBegun, runId }) => !hasBegun && runId !== null && inputEntryId(runId) === entryId,
    );
  }

  async #send(updates: readonly SessionUpdate[]): Promise<void> {
    for (const update of updates) await this.#editor.sendUpdate(update);
  }

  /** Runs a task after the earlier ones, even if they failed. */
  #inOrder<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#lastTask.then(task);
    this.#lastTask = done.catch(() => undefined);
    return done;
  }

  #runEnd(runId: string): PromiseWithResolvers<string | null> {
    const known = this.#runEnds.get(runId) ?? Promise.withResolvers<string | null>();
    this.#runEnds.set(runId, known);
    return known;
  }
}
