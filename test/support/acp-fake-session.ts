import type { RequestPermissionResponse, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { expect } from "vitest";
import type { EditorSession, ServerContext } from "../../src/acp/server/context.ts";
import { LiveSession } from "../../src/acp/server/live-session.ts";
import type { EventStream, ReceivedEvent } from "../../src/entry-client.ts";
import { SkeinError } from "../../src/index.ts";
import type { WireEntry } from "./payloads.ts";

export const key = "agent:main:session:trip";
const about = { at: 0, sessionKey: key, runId: "r1" };
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };

type Params = Readonly<Record<string, unknown>>;

interface Question {
  readonly runId: string;
  readonly sessionKey: string;
  readonly userId?: string;
  readonly toolCallId?: string;
}

/** A scripted session: a log and its events, some of which can be lost. */
export class FakeSession {
  readonly log: WireEntry[] = [];
  sessionId = "s1";
  /** The running run, as in the session's details. */
  working: string | undefined;
  readonly told: SessionUpdate[] = [];
  readonly called: (readonly [string, Params])[] = [];
  readonly reported: unknown[] = [];
  /** Pending approval requests. Bob's belong to another user. */
  approvals: (Question & { readonly approvalId: string })[] = [];
  /** The questions to the user, each with the signal that withdraws it. */
  readonly asked: { readonly toolCallId: string; readonly title: string; readonly signal: AbortSignal }[] =
    [];
  /** The user's other sessions, keyed by session key. */
  readonly others = new Map<string, { readonly spawnedBy?: string; readonly label?: string }>();
  /** How often approvals are polled. If absent, never. */
  pollMs: number | undefined;
  permit: () => Promise<RequestPermissionResponse> = () => new Promise(() => undefined);
  /** Called before a call is answered. An error it throws becomes the answer. */
  before: (method: string, params: Params) => unknown = () => undefined;
  readonly #timers = new Set<() => void>();
  readonly #ends = new Map<string, PromiseWithResolvers<void>>();
  /** The events that each stream has not read yet. */
  readonly #streams = new Set<FakeStream>();
  readonly #pageSize: number;
  #sent = 0;

  constructor(pageSize = 200) {
    this.#pageSize = pageSize;
  }

  /** Writes an entry and publishes it unless the event is lost. */
  write(
    role: "user" | "assistant",
    text: string,
    { id = "", isLost = false, stopReason = "stop" } = {},
  ): void {
    const content = role === "user" ? text : [{ type: "text", text }];
    const message = { role, content, ...(role === "user" ? {} : { stopReason }) };
    this.append({ type: "message", message }, { id, isLost });
  }

  append(fields: object, { id = "", isLost = false } = {}): void {
    const entry = {
      id: id === "" ? `e${this.log.length + 1}` : id,
      parentId: null,
      timestamp: "",
      ...fields,
    } as unknown as WireEntry;
    this.log.push(entry);
    if (!isLost) this.emit("entry.appended", { entry });
  }

  emit(event: string, fields: object = {}): void {
    const payload = { ...about, sessionId: this.sessionId, ...fields };
    for (const stream of this.#streams)
      stream.take({ event, payload, seq: 0 } as unknown as ReceivedEvent, payload.sessionKey);
  }

  /** Adds an approval request for a call to the tool `pay`, published or not. */
  question(approvalId: string, fields: Partial<Question> = {}, isTold = true): void {
    const asked = { ...about, approvalId, toolCallId: approvalId, toolName: "pay", arguments: {}, ...fields };
    this.approvals.push(asked);
    if (isTold) this.emit("approval.requested", asked);
  }

  /** A separate event notifies a waiter that the run has ended. */
  end(runId = "r1"): void {
    this.#endOf(runId).resolve();
  }

  /** Fires all pending timers. Resolves once there has been one. */
  async ring(): Promise<void> {
    await expect.poll(() => this.#timers.size).toBeGreaterThan(0);
    for (const timer of [...this.#timers]) timer();
  }

  /** The number of pending timers. */
  get timers(): number {
    return this.#timers.size;
  }

  open(isWhole = false): Promise<LiveSession> {
    const sendUpdate = async (update: SessionUpdate) => void this.told.push(update);
    const requestPermission: EditorSession["requestPermission"] = (
      { toolCall: { toolCallId, title } },
      signal,
    ) => {
      this.asked.push({ toolCallId, title: title ?? "", signal });
      return this.permit();
    };
    return LiveSession.open(this.#context(), key, { sendUpdate, requestPermission }, isWhole, this.#timing());
  }

  text(kind: "agent_message_chunk" | "user_message_chunk" = "agent_message_chunk"): string {
    return this.told
      .flatMap((each) => (each.sessionUpdate === kind && "text" in each.content ? [each.content.text] : []))
      .join("|");
  }

  /** Returns one line for each start, change and end of a call. */
  calls(): string[] {
    return this.told.flatMap((each) =>
      each.sessionUpdate === "tool_call" || each.sessionUpdate === "tool_call_update"
        ? [`${each.toolCallId} ${each.status}`]
        : [],
    );
  }

  count(method: string): number {
    return this.called.filter(([name]) => name === method).length;
  }

  #context(): ServerContext {
    const call = async (method: string, params: Params) => {
      this.called.push([method, params]);
      await this.before(method, params);
      return this.#answer(method, params);
    };
    return {
      version: "0",
      calls: { call: call as never, events: ({ keys, events = [] } = {}) => this.#stream(keys, events) },
      scope: {},
      canCall: () => true,
      commands: [],
      cwd: "/",
      ...(this.pollMs === undefined ? {} : { pollMs: this.pollMs }),
      report: (error) => void this.reported.push(error),
    };
  }

  #timing() {
    return {
      now: () => 0,
      random: () => 0,
      setTimer: (_: number, ring: () => void) => {
        const timer = () => {
          this.#timers.delete(timer);
          ring();
        };
        this.#timers.add(timer);
        return () => void this.#timers.delete(timer);
      },
    };
  }

  async #answer(method: string, params: Params): Promise<unknown> {
    switch (method) {
      case "sessions.resolve":
        return { key, sessionId: this.sessionId };
      case "sessions.get":
        return this.#details(String(params.key));
      case "sessions.entries":
        return this.#page(params);
      case "approvals.list": {
        const { sessionKey: of } = params;
        const approvals = this.approvals.filter(
          ({ sessionKey, userId }) => userId !== "bob" && (of === undefined || of === sessionKey),
        );
        return { count: approvals.length, approvals };
      }
      case "approvals.resolve":
        return {};
      case "chat.send":
        this.#sent += 1;
        return { runId: `r${this.#sent}`, status: "accepted", sessionKey: key };
      case "chat.abort":
        return { sessionKey: key, runs: [] };
      case "runs.abort":
        return { runId: params.runId, state: "aborted" };
      case "agent.wait":
        await this.#endOf(String(params.runId)).promise;
        return { runId: params.runId, finished: true, state: "ok", usage };
      default:
        throw new Error(`nobody answers ${method}`);
    }
  }

  #endOf(runId: string): PromiseWithResolvers<void> {
    const known = this.#ends.get(runId) ?? Promise.withResolvers<void>();
    this.#ends.set(runId, known);
    return known;
  }

  #page({ after, before, limit = this.#pageSize }: { after?: string; before?: string; limit?: number }) {
    const place = (id: string) => this.log.findIndex((each) => each.id === id);
    if (after !== undefined) {
      if (place(after) < 0) throw new Error(`no entry ${after}`);
      const entries = this.log.slice(place(after) + 1).slice(0, limit);
      return { entries, hasEarlier: true, hasLater: place(after) + 1 + entries.length < this.log.length };
    }
    const end = before === undefined ? this.log.length : place(before);
    const from = Math.max(0, end - limit);
    return { entries: this.log.slice(from, end), hasEarlier: from > 0, hasLater: end < this.log.length };
  }

  /** As with a folder's stream, pending events are still read after the stream is closed. */
  #details(of: string): object {
    if (of === key) return { key, agentId: "main", sessionId: this.sessionId, runId: this.working };
    const other = this.others.get(of);
    if (other === undefined)
      throw new SkeinError("not_found", { what: "Session", name: of, advice: "There is none" });
    return { key: of, agentId: "main", sessionId: of, ...other };
  }

  #stream(keys: readonly string[] | undefined, events: readonly string[]): EventStream {
    const stream = new FakeStream(keys, events, () => this.#streams.delete(stream));
    this.#streams.add(stream);
    return stream;
  }
}

class FakeStream implements EventStream {
  readonly ready = Promise.resolve();
  readonly #keys: readonly string[] | undefined;
  readonly #events: readonly string[];
  readonly #left: () => void;
  readonly #waiting: ReceivedEvent[] = [];
  #news = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(keys: readonly string[] | undefined, events: readonly string[], left: () => void) {
    this.#keys = keys;
    this.#events = events;
    this.#left = left;
  }

  /** Every reader receives a gap. */
  take(received: ReceivedEvent, sessionKey: string): void {
    const { event } = received;
    const isWanted = this.#events.some((each) => each === event || event.startsWith(each.replace(/\*$/, "")));
    const isOfKey = this.#keys === undefined || this.#keys.includes(sessionKey);
    if (event !== "gap" && !(isWanted && isOfKey)) return;
    this.#waiting.push(received);
    this.#news.resolve();
  }

  close(): void {
    this.#isClosed = true;
    this.#left();
    this.#news.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedEvent> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#isClosed) return;
      else {
        await this.#news.promise;
        this.#news = Promise.withResolvers();
      }
    }
  }
}

export const words = (message: string) => ({ message, attachments: [], isTyped: true });
