import type { PromptResponse, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Timing } from "../../client/retry.ts";
import { patiently, realTiming } from "../../client/retry.ts";
import { inputEntryId } from "../../core/hashed-id.ts";
import { present } from "../../core/present.ts";
import type { Calls, EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";
import type { SentPayload } from "../../protocol/runs.ts";
import type { AcpParts, Tell } from "./contract.ts";
import { limitText, promptResponse } from "./outcome.ts";
import { OwnAsking } from "./own-asking.ts";
import type { PermissionPorts } from "./permissions.ts";
import { Permissions } from "./permissions.ts";
import type { PromptInput } from "./prompt-input.ts";
import { endOfLog, fromTheBeginning, writtenAfter } from "./read-log.ts";
import { SessionView } from "./session-view.ts";
import { askingStream, SpawnedAsking } from "./spawned-asking.ts";

export interface LivePorts {
  readonly tell: Tell;
  readonly ask: PermissionPorts["ask"];
  readonly timing?: Timing;
}

type Reading = Calls<"sessions.resolve" | "sessions.get" | "sessions.entries" | "approvals.list">;

/** A prompt that is not answered yet. */
interface Turn {
  runId: string | null;
  isCancelled: boolean;
  /** Updates of its run may be sent: the prompts before it are answered. */
  hasBegun: boolean;
  /** Its run sleeps, and others of the session go on meanwhile. */
  isAsleep: boolean;
  /** Resolves when the response is on its way. */
  readonly answered: Promise<void>;
}

/** How long one call waits; another one follows it. */
const waitMs = 60_000;
/** How long the end of a run may come behind the answer to whoever waited for it. */
const lateMs = 2000;

/** Told of a run that is at work; one that is queued, steered or merged tells other things. */
const signsOfWork = new Set(["run.started", "run.recovered", "run.resumed", "run.delta", "run.tool"]);

/**
 * A session that is open in an editor: everything that happens in it is shown there, whoever set it off. What is missed
 * of the events is read from the log.
 */
export class LiveSession {
  /** By which every call names it: it stays when the session is reset. */
  readonly key: string;
  readonly permissions: Permissions;
  readonly #parts: AcpParts;
  readonly #ports: LivePorts;
  readonly #timing: Timing;
  /** Asked again for as long as the gateway says not now. */
  readonly #reading: Reading;
  readonly #view = new SessionView(() => crypto.randomUUID());
  readonly #stream: EventStream;
  readonly #own: OwnAsking;
  readonly #spawned: SpawnedAsking;
  readonly #turns = new Set<Turn>();
  /** Turns whose responses are not on their way, in the order of the prompts. */
  readonly #unanswered = new Set<Turn>();
  /** With how the run's last answer ended. */
  readonly #ends = new Map<string, PromiseWithResolvers<string | null>>();
  /** Runs whose end was shown: what still comes of them was. */
  readonly #over = new Set<string>();
  readonly #leaving = new AbortController();
  /** What is being told, one thing after the other. */
  #telling: Promise<unknown> = Promise.resolve();
  #sending: Promise<unknown> = Promise.resolve();
  /** The last entry of its log that was shown, or stood there before. */
  #cursor: string | null = null;
  /** Whose log that is: a reset begins another. */
  #sessionId = "";
  /** The run whose calls are open: in a session one works at a time. */
  #working: string | null = null;

  private constructor(parts: AcpParts, key: string, ports: LivePorts) {
    this.key = key;
    this.#parts = parts;
    this.#ports = ports;
    this.#timing = ports.timing ?? realTiming;
    this.#reading = {
      call: (method, params) =>
        patiently(this.#timing, this.#leaving.signal, () => parts.calls.call(method, params)),
    };
    const { report, whose, lookMs } = parts;
    const { ask, tell } = ports;
    const resolve = (approvalId: string, answer: "approved" | "denied") => this.#resolve(approvalId, answer);
    const onOpen = () => this.#own.watch();
    this.permissions = new Permissions({ ask, tell, resolve, onOpen, report }, this.#view.tools);
    const { permissions } = this;
    const asking = { reading: this.#reading, permissions, whose, report };
    this.#own = new OwnAsking(key, { ...asking, timing: this.#timing, ...present({ lookMs }) });
    const events = ["run.*", "approval.*", "entry.appended", "session.reset"];
    this.#stream = parts.calls.events({ keys: [key], events, ...this.#user });
    this.#spawned = new SpawnedAsking(key, { stream: askingStream(parts), ...asking });
  }

  /** Heard from now on. With `isWhole`, all that stands on its branch is shown before this resolves. */
  static async open(parts: AcpParts, key: string, ports: LivePorts, isWhole: boolean): Promise<LiveSession> {
    const live = new LiveSession(parts, key, ports);
    try {
      await Promise.all([live.#stream.ready, live.#spawned.ready]);
      live.#sessionId = (await live.#reading.call("sessions.resolve", live.#named)).sessionId;
      live.#cursor = await endOfLog(live.#reading, live.#named);
      if (isWhole) await live.#showAll();
      await live.#endLeftCalls();
    } catch (error) {
      live.close();
      throw error;
    }
    return live;
  }

  /** Begins to show what happens, and asks what is waiting to be asked; once the editor knows the session. */
  begin(): void {
    if (this.#leaving.signal.aborted) return;
    // Before any event: a question that is answered meanwhile is then taken back.
    void this.#inOrder(() => this.#own.askAgain()).catch((error: unknown) => this.#report(error));
    void this.#listen().catch((error: unknown) => this.#report(error));
    void this.#spawned.listen().catch((error: unknown) => this.#report(error));
  }

  close(): void {
    this.#leaving.abort();
    this.#stream.close();
    this.#own.close();
    this.#spawned.close();
    this.permissions.close();
  }

  /**
   * Sends a prompt, and shows what comes of it until it is answered. It is accepted at once; to an editor, whatever comes before
   * the response to a prompt is part of that response, so its updates wait until the prompts before it are `answered`.
   */
  async prompt(
    { message, attachments }: PromptInput,
    signal: AbortSignal,
    answered: Promise<void>,
  ): Promise<PromptResponse> {
    const turn: Turn = { runId: null, isCancelled: false, hasBegun: false, isAsleep: false, answered };
    const cancel = () => {
      // With the editor gone the run goes on.
      if (this.#leaving.signal.aborted) return;
      void this.#cancel(turn).catch((error: unknown) => this.#report(error));
    };
    this.#turns.add(turn);
    this.#unanswered.add(turn);
    void answered.then(() => this.#unanswered.delete(turn));
    signal.addEventListener("abort", cancel, { once: true });
    // Both may come in one reading: then nobody is told any more.
    if (signal.aborted) cancel();
    try {
      const runId = await this.#say(turn, message, attachments);
      if (turn.isCancelled) await this.#abort(runId);
      const sent = await this.#ended(runId);
      await this.#begin(turn);
      const stopReason = await this.#caughtUp(runId);
      const text = limitText(sent);
      if (text !== null) await this.say(text);
      return promptResponse({ sent, stopReason, isCancelled: turn.isCancelled });
    } catch (error) {
      // The session was closed with it: its end is not waited for.
      if (turn.isCancelled && this.#leaving.signal.aborted) return { stopReason: "cancelled" };
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#turns.delete(turn);
      if (this.#turns.size === 0) this.#ends.clear();
    }
  }

  /** Ends what was asked here; where nothing was, whatever the session is doing. */
  async cancel(): Promise<void> {
    const { calls } = this.#parts;
    if (this.#turns.size > 0) return this.cancelAsked();
    const { runs } = await calls.call("chat.abort", { sessionKey: this.key, ...this.#user });
    this.permissions.dismiss(runs.map(({ runId }) => runId));
  }

  /** Ends what was asked here, and nothing else. */
  async cancelAsked(): Promise<void> {
    const turns = [...this.#turns];
    await Promise.all(turns.map((turn) => this.#cancel(turn)));
    this.permissions.dismiss(turns.flatMap(({ runId }) => runId ?? []));
  }

  /** Words of ours, as the agent's: nothing is written. */
  async say(text: string): Promise<void> {
    await this.#inOrder(() =>
      this.#ports.tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
    );
  }

  get #user(): { readonly userId?: string } {
    return present({ userId: this.#parts.whose.userId });
  }

  get #named(): { readonly key: string; readonly userId?: string } {
    return { key: this.key, ...this.#user };
  }

  /** Waits until it is accepted, in the order of the prompts. What was typed in the editor is not shown there once more. */
  async #say(turn: Turn, message: string, attachments: PromptInput["attachments"]): Promise<string> {
    const send = () =>
      this.#parts.calls.call("chat.send", {
        sessionKey: this.key,
        ...this.#user,
        message,
        idempotencyKey: `acp:${this.key.slice(-120)}:${crypto.randomUUID()}`,
        queueMode: "followup",
        ...(attachments.length === 0 ? {} : { attachments }),
      });
    const sent = this.#sending.then(send).then(({ runId, waitsForApp }) => {
      turn.runId = runId;
      this.#view.expect(inputEntryId(runId));
      if (waitsForApp !== undefined) this.#sayWaiting(turn, runId, waitsForApp);
      return runId;
    });
    this.#sending = sent.catch(() => undefined);
    return sent;
  }

  /** The prompt stays open: the answer of the app is shown when it comes. */
  #sayWaiting(turn: Turn, runId: string, app: string): void {
    const text = `Waiting for a process of the app ${app}. \`skein runs release ${runId}\` lets any process answer.`;
    void this.#begin(turn)
      .then(() => this.say(text))
      .catch((error: unknown) => this.#report(error));
  }

  /** Once the prompts before it are answered, except for those whose runs sleep. */
  async #begin(turn: Turn): Promise<void> {
    if (turn.hasBegun) return;
    const turns = [...this.#unanswered];
    const before = turns.slice(0, turns.indexOf(turn)).filter(({ isAsleep }) => !isAsleep);
    await Promise.all(before.map(({ answered }) => answered));
    turn.hasBegun = true;
  }

  async #cancel(turn: Turn): Promise<void> {
    turn.isCancelled = true;
    if (turn.runId !== null) await this.#abort(turn.runId);
  }

  async #abort(runId: string): Promise<void> {
    await this.#parts.calls.call("runs.abort", { runId, ...this.#user });
  }

  async #ended(runId: string): Promise<SentPayload> {
    const { signal } = this.#leaving;
    for (;;) {
      const params = { runId, timeoutMs: waitMs, ...this.#user };
      const sent = await this.#parts.calls.call("agent.wait", params, { signal });
      signal.throwIfAborted();
      if (sent.finished) return sent;
    }
  }

  /**
   * Once everything of a run is shown: its events as far as they come in time, the rest from the log. Resolves with how its
   * last answer ended.
   */
  async #caughtUp(runId: string): Promise<string | null> {
    const late = Promise.withResolvers<"late">();
    const takeBack = this.#timing.setTimer(lateMs, () => late.resolve("late"));
    const inTime = this.#endOf(runId).promise.then((stopReason) => ({ stopReason }));
    const end = await Promise.race([inTime, late.promise]);
    takeBack();
    return this.#inOrder(async () => {
      if (end === "late") this.#over.add(runId);
      await this.#readOn();
      if (end !== "late") return end.stopReason;
      await this.#endLeftCalls();
      return this.#view.stopReason;
    });
  }

  async #showAll(): Promise<void> {
    for await (const entries of fromTheBeginning(this.#reading, this.#named, "branch")) {
      for (const entry of entries) await this.#tell(this.#view.entry(entry));
    }
  }

  /** Where nobody is at work, the calls that are open have failed; what was written of them until then is read first. */
  async #endLeftCalls(): Promise<void> {
    const { runId = null } = await this.#reading.call("sessions.get", this.#named);
    this.#working = runId;
    const left = this.#view.tools.open();
    if (runId !== null || left.length === 0) return;
    await this.#readOn();
    await this.#tell(this.#view.tools.abandon(left));
  }

  /** Ends with the stream; what fails is reported, and what comes after it is shown. */
  async #listen(): Promise<void> {
    for await (const received of this.#stream) {
      if (this.#leaving.signal.aborted) return;
      await this.#holdBack(received);
      await this.#inOrder(() => this.#take(received)).catch((error: unknown) => this.#report(error));
    }
  }

  /** Not part of what is done in order: the answer that is waited for is itself shown there. */
  async #holdBack({ event, payload }: ReceivedEvent): Promise<void> {
    if (event === "gap" || !("runId" in payload)) return;
    // Whether it is of a prompt is known once that is accepted.
    if (event === "run.started" || event === "run.recovered") await this.#sending;
    const turn = [...this.#turns].find(({ runId }) => runId === payload.runId);
    if (turn === undefined) return;
    turn.isAsleep = event === "run.sleeping";
    if (event === "run.started" || event === "run.recovered") await this.#begin(turn);
  }

  #report(error: unknown): void {
    if (!this.#leaving.signal.aborted) this.#parts.report(error);
  }

  async #take(received: ReceivedEvent): Promise<void> {
    switch (received.event) {
      case "gap":
        return this.#afterGap();
      case "session.reset":
        this.#cursor = null;
        this.#sessionId = received.payload.freshSessionId;
        return;
      case "entry.appended": {
        const { entry } = received.payload;
        // Whether it was typed in the editor is known once that is accepted.
        await this.#sending;
        await this.#tell(this.#view.appended(entry));
        if (received.payload.sessionId === this.#sessionId) this.#cursor = entry.id;
        return;
      }
      case "approval.requested":
        return this.permissions.requested(received.payload);
      case "approval.resolved":
        return this.permissions.resolved(received.payload.approvalId);
      default:
        return this.#takeOfRun(received);
    }
  }

  async #takeOfRun(received: ReceivedEvent): Promise<void> {
    if (received.event === "gap") return;
    const { runId = "" } = received.payload;
    if (this.#over.has(runId)) {
      if (received.event === "run.ended") this.#over.delete(runId);
      return;
    }
    if (signsOfWork.has(received.event)) this.#working = runId;
    if (received.event === "run.resumed" || received.event === "run.ended") this.#own.heardOf(runId);
    switch (received.event) {
      case "run.delta":
        return this.#tell(this.#view.delta(received.payload));
      case "run.tool":
        return this.#tell(this.#view.tool(received.payload));
      case "run.retry":
      case "run.started":
      case "run.recovered":
        return this.#tell(this.#view.anew());
      case "run.ended":
        return this.#takeEnd(runId);
      default:
        return;
    }
  }

  /** A run that ends without having worked leaves the calls of the one that works as they are. */
  async #takeEnd(runId: string): Promise<void> {
    const { stopReason, isCurrent, tools } = this.#view;
    if (this.#turns.size > 0) this.#endOf(runId).resolve(stopReason);
    // What is open may be of a run that the stream has not come to.
    if (!isCurrent && tools.open().length > 0) return this.#endLeftCalls();
    if (this.#working !== null && this.#working !== runId) return;
    this.#working = null;
    await this.#tell(tools.abandon());
  }

  /** What failed to be read is read with what comes next; questions are asked all the same. */
  async #afterGap(): Promise<void> {
    this.#view.deafen();
    try {
      await this.#readOn();
      await this.#endLeftCalls();
    } catch (error) {
      this.#report(error);
    }
    await this.#own.askAgain();
  }

  /** What the log holds behind what was shown; of a new log under the same key, all of it. */
  async #readOn(): Promise<void> {
    const { sessionId } = await this.#reading.call("sessions.resolve", this.#named);
    if (sessionId !== this.#sessionId) this.#cursor = null;
    this.#sessionId = sessionId;
    for await (const entries of writtenAfter(this.#reading, this.#named, this.#cursor)) {
      for (const entry of entries) {
        // The updates of a later prompt come when the ones before it are answered.
        if (this.#isHeldBack(entry.id)) return;
        await this.#tell(this.#view.entry(entry));
        this.#cursor = entry.id;
      }
    }
  }

  /** Whether an entry is the input of a prompt that has not begun. */
  #isHeldBack(entryId: string): boolean {
    return [...this.#turns].some(
      ({ hasBegun, runId }) => !hasBegun && runId !== null && inputEntryId(runId) === entryId,
    );
  }

  async #resolve(approvalId: string, answer: "approved" | "denied"): Promise<void> {
    await this.#parts.calls.call("approvals.resolve", { approvalId, answer, ...this.#user });
  }

  async #tell(updates: readonly SessionUpdate[]): Promise<void> {
    for (const update of updates) await this.#ports.tell(update);
  }

  /** One after the other; one that fails does not hinder the next. */
  #inOrder<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#telling.then(act);
    this.#telling = done.catch(() => undefined);
    return done;
  }

  #endOf(runId: string): PromiseWithResolvers<string | null> {
    const known = this.#ends.get(runId) ?? Promise.withResolvers<string | null>();
    this.#ends.set(runId, known);
    return known;
  }
}
