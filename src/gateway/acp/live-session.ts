import type { PromptResponse, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { hashedId } from "../../core/hashed-id.ts";
import { present } from "../../core/present.ts";
import type { EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";
import type { SentPayload } from "../../protocol/runs.ts";
import type { AcpParts, Tell } from "./contract.ts";
import { limitText, promptResponse } from "./outcome.ts";
import type { PermissionPorts } from "./permissions.ts";
import { Permissions } from "./permissions.ts";
import type { PromptInput } from "./prompt-input.ts";
import { endOfLog, fromTheBeginning, writtenAfter } from "./read-log.ts";
import { SessionView } from "./session-view.ts";

export interface LivePorts {
  readonly tell: Tell;
  readonly ask: PermissionPorts["ask"];
}

/** A prompt that is not answered yet. */
interface Turn {
  runId: string | null;
  isCancelled: boolean;
}

/** How long one call waits; another one follows it. */
const waitMs = 60_000;
/** How long the end of a run may come behind the answer to whoever waited for it. */
const lateMs = 2000;

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
  readonly #view = new SessionView(() => crypto.randomUUID());
  readonly #stream: EventStream;
  readonly #turns = new Set<Turn>();
  readonly #ends = new Map<string, PromiseWithResolvers<void>>();
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

  private constructor(parts: AcpParts, key: string, ports: LivePorts) {
    this.key = key;
    this.#parts = parts;
    this.#ports = ports;
    const { report } = parts;
    const resolve = (approvalId: string, answer: "approved" | "denied") => this.#resolve(approvalId, answer);
    this.permissions = new Permissions({ ask: ports.ask, resolve, report }, this.#view.tools);
    const events = ["run.*", "approval.*", "entry.appended", "session.reset"];
    this.#stream = parts.calls.events({ keys: [key], events, ...this.#user });
  }

  /** Heard from now on. With `replay`, all that stands on its branch is shown before this resolves. */
  static async open(parts: AcpParts, key: string, ports: LivePorts, replay: boolean): Promise<LiveSession> {
    const live = new LiveSession(parts, key, ports);
    try {
      await live.#stream.ready;
      live.#sessionId = (await parts.calls.call("sessions.resolve", live.#named)).sessionId;
      live.#cursor = await endOfLog(parts.calls, live.#named);
      if (replay) await live.#replay();
    } catch (error) {
      live.close();
      throw error;
    }
    return live;
  }

  /** Begins to show what happens, and asks what is waiting to be asked; once the editor knows the session. */
  begin(): void {
    const report = (error: unknown) => {
      if (!this.#leaving.signal.aborted) this.#parts.report(error);
    };
    void this.#listen().catch(report);
    void this.#askAgain().catch(report);
  }

  close(): void {
    this.#leaving.abort();
    this.#stream.close();
    this.permissions.dismiss();
  }

  /** Says it, and shows what comes of it until it is answered. */
  async prompt({ message, attachments }: PromptInput, signal: AbortSignal): Promise<PromptResponse> {
    const turn: Turn = { runId: null, isCancelled: false };
    const cancel = () => {
      // With the editor gone the run goes on.
      if (this.#leaving.signal.aborted) return;
      void this.#cancel(turn).catch((error: unknown) => this.#parts.report(error));
    };
    this.#turns.add(turn);
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const runId = await this.#say(message, attachments);
      turn.runId = runId;
      if (turn.isCancelled) await this.#abort(runId);
      const sent = await this.#ended(runId);
      await this.#caughtUp(runId);
      const text = limitText(sent);
      if (text !== null) await this.say(text);
      const { stopReason } = this.#view;
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
    if (this.#turns.size === 0) await calls.call("chat.abort", { sessionKey: this.key, ...this.#user });
    await this.cancelAsked();
  }

  /** Ends what was asked here, and nothing else. */
  async cancelAsked(): Promise<void> {
    await Promise.all([...this.#turns].map((turn) => this.#cancel(turn)));
    this.permissions.dismiss();
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

  /** Waits until it is accepted; what was typed in the editor is not shown there once more. */
  async #say(message: string, attachments: PromptInput["attachments"]): Promise<string> {
    const sent = this.#parts.calls.call("chat.send", {
      sessionKey: this.key,
      ...this.#user,
      message,
      idempotencyKey: `acp:${this.key.slice(-120)}:${crypto.randomUUID()}`,
      queueMode: "followup",
      ...(attachments.length === 0 ? {} : { attachments }),
    });
    const expected = sent.then(
      ({ runId }) => this.#view.expect(hashedId("entry", runId)),
      () => undefined,
    );
    this.#sending = Promise.all([this.#sending, expected]);
    const { runId } = await sent;
    return runId;
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

  /** Once everything of a run is shown: its events as far as they come in time, the rest from the log. */
  async #caughtUp(runId: string): Promise<void> {
    const late = Promise.withResolvers<"late">();
    const timer = setTimeout(() => late.resolve("late"), lateMs);
    const isLate = (await Promise.race([this.#endOf(runId).promise, late.promise])) === "late";
    clearTimeout(timer);
    await this.#inOrder(async () => {
      if (isLate) this.#over.add(runId);
      await this.#readOn();
      if (isLate) await this.#tell(this.#view.tools.abandon());
    });
  }

  async #replay(): Promise<void> {
    for await (const entries of fromTheBeginning(this.#parts.calls, this.#named, "branch")) {
      for (const entry of entries) await this.#tell(this.#view.entry(entry));
    }
    const details = await this.#parts.calls.call("sessions.get", this.#named);
    if (details.runId === undefined) await this.#tell(this.#view.tools.abandon());
  }

  async #listen(): Promise<void> {
    for await (const received of this.#stream) await this.#inOrder(() => this.#take(received));
  }

  async #take(received: ReceivedEvent): Promise<void> {
    switch (received.event) {
      case "gap":
        this.#view.deafen();
        await this.#readOn();
        return this.#askAgain();
      case "session.reset":
        this.#cursor = null;
        this.#sessionId = received.payload.freshSessionId;
        return;
      case "entry.appended": {
        const { entry } = received.payload;
        // Whether it was typed in the editor is known once that is accepted.
        await this.#sending;
        await this.#tell(this.#view.appended(entry));
        this.#cursor = entry.id;
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
        await this.#tell(this.#view.tools.abandon());
        if (this.#turns.size > 0) this.#endOf(runId).resolve();
        return;
      default:
        return;
    }
  }

  /** What the log holds behind what was shown; of a new log under the same key, all of it. */
  async #readOn(): Promise<void> {
    const { sessionId } = await this.#parts.calls.call("sessions.resolve", this.#named);
    if (sessionId !== this.#sessionId) this.#cursor = null;
    this.#sessionId = sessionId;
    for await (const entries of writtenAfter(this.#parts.calls, this.#named, this.#cursor)) {
      for (const entry of entries) {
        await this.#tell(this.#view.readAhead(entry));
        this.#cursor = entry.id;
      }
    }
  }

  /** What was asked for while nobody listened. */
  async #askAgain(): Promise<void> {
    const { approvals } = await this.#parts.calls.call("approvals.list", {
      sessionKey: this.key,
      ...this.#user,
    });
    for (const each of approvals) this.permissions.requested(each);
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

  #endOf(runId: string): PromiseWithResolvers<void> {
    const known = this.#ends.get(runId) ?? Promise.withResolvers<void>();
    this.#ends.set(runId, known);
    return known;
  }
}
