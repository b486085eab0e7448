import type { SkeinEvent } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import { keyOfReference } from "../../core/references.ts";
import type { EventStream, ReceivedEvent } from "../../protocol/calls.ts";
import { childName } from "../../sessions/child-run.ts";
import { turnEventOf } from "../../sessions/turn-handle.ts";
import type { TurnPrinter } from "../output/turn-printer.ts";
import { shortKey } from "../output/turn-printer.ts";
import type { SessionParams } from "./resolve-session.ts";
import { resolveRef } from "./resolve-session.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

/**
 * How long to wait for a run's final event after the reply has arrived. The wait is shorter if no event from the run
 * has arrived.
 */
const lateMs = 2000;
const silentMs = 250;

/**
 * Converts a received event into the shape used on the event bus. Returns `null` if the event does not belong to a
 * session of this user.
 */
export function toSkeinEvent(
  { event, payload }: ReceivedEvent,
  userId: string | null | undefined,
): SkeinEvent | null {
  if (!("sessionKey" in payload)) return null;
  // Only a token for every user receives user IDs.
  if (payload.userId !== undefined && payload.userId !== userId) return null;
  return { type: event, userId: userId ?? null, ...payload } as unknown as SkeinEvent;
}

/** Passes events on as they arrive, and records the streamed text of each run's last answer. */
export class RunEvents {
  /** Resolves when the subscription is active or has failed. */
  readonly ready: Promise<void>;
  readonly #stream: EventStream;
  readonly #closed: Promise<void>;
  readonly #isWanted: (event: SkeinEvent) => boolean;
  readonly #streamed = new Map<string, string>();
  readonly #ended = new Map<string, PromiseWithResolvers<void>>();

  /** Events that `isWanted` rejects are ignored. */
  constructor(
    stream: EventStream,
    userId: string | undefined,
    listener: (event: SkeinEvent) => void,
    isWanted: (event: SkeinEvent) => boolean = () => true,
  ) {
    this.#stream = stream;
    this.#isWanted = isWanted;
    // If there are no events, the reply still arrives from `agent.wait`.
    const nothing = () => undefined;
    this.ready = stream.ready.catch(nothing);
    this.#closed = this.#listen(userId, listener).catch(nothing);
  }

  close(): void {
    this.#stream.close();
  }

  /** Resolves when the run's last event has arrived or is overdue. */
  async waitForEnd(runId: string): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, this.#streamed.has(runId) ? lateMs : silentMs);
    await Promise.race([this.#endOf(runId).promise, this.#closed, late.promise]);
    clearTimeout(timer);
  }

  /**
   * Whether the whole answer was streamed. Whitespace is ignored because blocks are joined differently when streamed.
   */
  hasWholeReply(runId: string, reply: string): boolean {
    return withoutSpaces(this.#streamed.get(runId) ?? "") === withoutSpaces(reply);
  }

  async #listen(userId: string | undefined, listener: (event: SkeinEvent) => void): Promise<void> {
    for await (const received of this.#stream) {
      const event = toSkeinEvent(received, userId);
      if (event === null || !this.#isWanted(event)) continue;
      this.#record(event);
      listener(event);
      if (event.type === "run.ended" && event.runId !== undefined) this.#endOf(event.runId).resolve();
    }
  }

  /** When an answer restarts, the earlier text is discarded. */
  #record(event: SkeinEvent): void {
    const { runId } = event;
    if (runId === undefined) return;
    if (event.type === "run.delta" && event.kind === "text")
      this.#streamed.set(runId, (this.#streamed.get(runId) ?? "") + event.delta);
    else if (event.type === "run.started" || event.type === "run.retry" || isNewRequest(event))
      this.#streamed.set(runId, "");
  }

  #endOf(runId: string): PromiseWithResolvers<void> {
    const known = this.#ended.get(runId) ?? Promise.withResolvers<void>();
    this.#ended.set(runId, known);
    return known;
  }
}

function isNewRequest(event: SkeinEvent): boolean {
  return event.type === "run.step" && event.phase === "asked";
}

function withoutSpaces(text: string): string {
  return text.replace(/\s/g, "");
}

/** Prints the events of one run as they arrive. It subscribes before the run starts so that no event is missed. */
export class RunPrinter {
  readonly #printer: TurnPrinter;
  readonly #events: RunEvents;
  readonly #approvals: Parameters<typeof turnEventOf>[1] = new Map();
  /** Events that arrived before the run ID was known. `null` once it is known. */
  #buffered: SkeinEvent[] | null = [];
  #runId = "";
  /** The run that produces the answer. If the message was merged, this is the run that it was merged into. */
  #answeringRun = "";

  constructor(printer: TurnPrinter, { calls }: Pick<OpenSkeinCalls, "calls">, to: SessionParams) {
    this.#printer = printer;
    const { key, agentId, userId } = to;
    const filter = { keys: [key], events: ["run.*", "approval.*"], ...present({ agentId, userId }) };
    this.#events = new RunEvents(calls.events(filter), userId, (event) => this.#onEvent(event));
  }

  get ready(): Promise<void> {
    return this.#events.ready;
  }

  begin(runId: string, mergedInto: string | undefined): void {
    this.#runId = runId;
    this.#answeringRun = mergedInto ?? runId;
    const early = this.#buffered ?? [];
    this.#buffered = null;
    for (const event of early) this.#onEvent(event);
  }

  /** Waits for the last event. Returns whether the whole reply was printed. */
  async end(reply: string): Promise<boolean> {
    await this.#events.waitForEnd(this.#answeringRun);
    this.#printer.endLine();
    return this.#events.hasWholeReply(this.#answeringRun, reply);
  }

  close(): void {
    this.#events.close();
  }

  #onEvent(event: SkeinEvent): void {
    if (this.#buffered !== null) return void this.#buffered.push(event);
    if (event.type === "run.steered" && event.runId === this.#runId) this.#answeringRun = event.mergedInto;
    if (event.runId !== this.#answeringRun) return;
    // The next answer starts on a new line.
    if (event.type === "run.step") this.#printer.endLine();
    const shown = turnEventOf(event, this.#approvals);
    if (shown !== null) this.#printer.show(shown);
  }
}

export interface ExpectedChild {
  readonly ref: string;
  readonly task: string;
}

/**
 * Prints the events of a child's first run as they arrive. The spawning call returns only when that run has ended, so
 * the child must be recognized by its events. Its run is in the `subagent` lane and was not started by another run, and
 * its session has this parent and task.
 */
export class ChildPrinter {
  readonly ready: Promise<void>;
  readonly #printer: TurnPrinter;
  readonly #open: OpenSkeinCalls;
  readonly #events: RunEvents;
  readonly #child: { readonly parent: string; readonly name: string };
  readonly #approvals: Parameters<typeof turnEventOf>[1] = new Map();
  /** Events from candidate runs until the child's run is found. `null` once it is found. */
  #candidates: Map<string, SkeinEvent[]> | null = new Map();
  #runId: string | null = null;
  #decisions: Promise<void> = Promise.resolve();

  static async of(printer: TurnPrinter, open: OpenSkeinCalls, coming: ExpectedChild): Promise<ChildPrinter> {
    const { ref, task } = coming;
    const parent = keyOfReference(ref, open.asker) ?? (await resolveRef(open, ref)).key;
    const shown = new ChildPrinter(printer, open, { parent, name: childName(task) });
    await shown.ready;
    return shown;
  }

  private constructor(
    printer: TurnPrinter,
    open: OpenSkeinCalls,
    child: { readonly parent: string; readonly name: string },
  ) {
    this.#printer = printer;
    this.#open = open;
    this.#child = child;
    const stream = open.calls.events({ events: ["run.*", "approval.*"], ...open.user });
    this.#events = new RunEvents(
      stream,
      open.user.userId,
      (event) => this.#listen(event),
      (event) => this.#isWanted(event),
    );
    this.ready = this.#events.ready;
  }

  /** Waits for the child's last event. */
  async end(runId: string): Promise<void> {
    await this.#events.waitForEnd(runId);
    await this.#decisions;
    this.#printer.endLine();
  }

  pause(): void {
    this.#printer.endLine();
  }

  close(): void {
    this.#printer.endLine();
    this.#events.close();
  }

  #isWanted(event: SkeinEvent): boolean {
    const { runId } = event;
    if (runId === undefined) return false;
    if (this.#candidates === null) return runId === this.#runId;
    return this.#candidates.has(runId) || isFirstOfChild(event);
  }

  #listen(event: SkeinEvent): void {
    const { runId = "" } = event;
    const early = this.#candidates?.get(runId);
    if (this.#candidates === null) this.#show(event);
    else if (early === undefined) this.#addCandidate(runId, event, this.#candidates);
    else early.push(event);
  }

  #addCandidate(runId: string, event: SkeinEvent, maybe: Map<string, SkeinEvent[]>): void {
    maybe.set(runId, [event]);
    // If the token is not allowed to read sessions, the command still prints the result.
    const decided = this.#isChild(event).then(
      (isOurs) => this.#decide(runId, isOurs),
      () => this.#decide(runId, false),
    );
    this.#decisions = Promise.all([this.#decisions, decided]).then(() => undefined);
  }

  async #isChild({ sessionKey }: SkeinEvent): Promise<boolean> {
    const { calls, user } = this.#open;
    const row = await calls.call("sessions.get", { key: sessionKey, ...user });
    return row.spawnedBy === this.#child.parent && row.displayName === this.#child.name;
  }

  #decide(runId: string, isOurs: boolean): void {
    const early = this.#candidates?.get(runId) ?? [];
    this.#candidates?.delete(runId);
    if (!isOurs || this.#candidates === null) return;
    this.#candidates = null;
    this.#runId = runId;
    for (const event of early) this.#show(event);
  }

  #show(event: SkeinEvent): void {
    if (event.type === "run.queued") this.#printer.note(`${shortKey(event.sessionKey)}: working`, "↳");
    if (event.type === "run.step") this.#printer.endLine();
    const shown = turnEventOf(event, this.#approvals);
    if (shown !== null) this.#printer.show(shown);
  }
}

function isFirstOfChild(event: SkeinEvent): boolean {
  return event.type === "run.queued" && event.lane === "subagent" && event.startedBy === undefined;
}
