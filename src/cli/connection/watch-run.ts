import type { SkeinEvent } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import { keyMeant } from "../../core/references.ts";
import type { EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";
import { childName } from "../../sessions/spawn-run.ts";
import { turnEventOf } from "../../sessions/turn-handle.ts";
import type { TurnPrinter } from "../output/turn-printer.ts";
import { shortKey } from "../output/turn-printer.ts";
import type { SessionParams } from "./resolve-session.ts";
import { resolveRef } from "./resolve-session.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

/** How long the end of a run may come behind the answer to whoever waited for it; less, where nothing of it came at all. */
const lateMs = 2000;
const silentMs = 250;

/** An event as it was received, as the bus has it; `null`: it stands for others, or is of another user than this one. */
export function toSkeinEvent(
  { event, payload }: ReceivedEvent,
  userId: string | null | undefined,
): SkeinEvent | null {
  if (event === "gap") return null;
  // Only a token for all users is told whose they are. On the wire absence is no `null`; nothing that is read here can be one.
  if (payload.userId !== undefined && payload.userId !== userId) return null;
  return { type: event, userId: userId ?? null, ...payload } as unknown as SkeinEvent;
}

/** What happens meanwhile, handed on as it comes, with what has come of each run's last answer. */
export class RunEvents {
  /** Once nothing is missed, or it is known that nothing will come. */
  readonly ready: Promise<void>;
  readonly #stream: EventStream;
  readonly #over: Promise<void>;
  readonly #isWanted: (event: SkeinEvent) => boolean;
  readonly #said = new Map<string, string>();
  readonly #ended = new Map<string, PromiseWithResolvers<void>>();

  /** What is not wanted is passed by, and nothing of it is kept. */
  constructor(
    stream: EventStream,
    userId: string | undefined,
    listener: (event: SkeinEvent) => void,
    isWanted: (event: SkeinEvent) => boolean = () => true,
  ) {
    this.#stream = stream;
    this.#isWanted = isWanted;
    // Who may not hear, or is cut off, still gets the reply by waiting for it.
    const nothing = () => undefined;
    this.ready = stream.ready.catch(nothing);
    this.#over = this.#hear(userId, listener).catch(nothing);
  }

  close(): void {
    this.#stream.close();
  }

  /** Once the end of a run has come by, or it will not any more. */
  async caughtUp(runId: string): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, this.#said.has(runId) ? lateMs : silentMs);
    await Promise.race([this.#endOf(runId).promise, this.#over, late.promise]);
    clearTimeout(timer);
  }

  /** Whether all of an answer came in pieces. Spaces aside: blocks of an answer are joined in another way than they are streamed. */
  hasAll(runId: string, reply: string): boolean {
    return bare(this.#said.get(runId) ?? "") === bare(reply);
  }

  async #hear(userId: string | undefined, listener: (event: SkeinEvent) => void): Promise<void> {
    for await (const received of this.#stream) {
      const event = toSkeinEvent(received, userId);
      if (event === null || !this.#isWanted(event)) continue;
      this.#note(event);
      listener(event);
      if (event.type === "run.ended" && event.runId !== undefined) this.#endOf(event.runId).resolve();
    }
  }

  /** Of an answer that is begun anew, what was said before does not count. */
  #note(event: SkeinEvent): void {
    const { runId } = event;
    if (runId === undefined) return;
    if (event.type === "run.delta" && event.kind === "text")
      this.#said.set(runId, (this.#said.get(runId) ?? "") + event.delta);
    else if (event.type === "run.started" || event.type === "run.retry" || isAsked(event))
      this.#said.set(runId, "");
  }

  #endOf(runId: string): PromiseWithResolvers<void> {
    const known = this.#ended.get(runId) ?? Promise.withResolvers<void>();
    this.#ended.set(runId, known);
    return known;
  }
}

function isAsked(event: SkeinEvent): boolean {
  return event.type === "run.step" && event.phase === "asked";
}

function bare(text: string): string {
  return text.replace(/\s/g, "");
}

/** One run, printed as it happens. It is heard from before there is one, so that nothing is missed. */
export class RunPrinter {
  readonly #printer: TurnPrinter;
  readonly #heard: RunEvents;
  readonly #approvals: Parameters<typeof turnEventOf>[1] = new Map();
  /** What came before it was known which run is meant; `null`: it is. */
  #early: SkeinEvent[] | null = [];
  #runId = "";
  /** The run whose answer it is: another one, where it was steered into that. */
  #following = "";

  constructor(printer: TurnPrinter, { calls }: Pick<OpenSkeinCalls, "calls">, to: SessionParams) {
    this.#printer = printer;
    const { key, agentId, userId } = to;
    const filter = { keys: [key], events: ["run.*", "approval.*"], ...present({ agentId, userId }) };
    this.#heard = new RunEvents(calls.events(filter), userId, (event) => this.#take(event));
  }

  get ready(): Promise<void> {
    return this.#heard.ready;
  }

  begin(runId: string, mergedInto: string | undefined): void {
    this.#runId = runId;
    this.#following = mergedInto ?? runId;
    const early = this.#early ?? [];
    this.#early = null;
    for (const event of early) this.#take(event);
  }

  /** Once all has come that comes; whether the reply was printed by then. */
  async end(reply: string): Promise<boolean> {
    await this.#heard.caughtUp(this.#following);
    this.#printer.endLine();
    return this.#heard.hasAll(this.#following, reply);
  }

  close(): void {
    this.#heard.close();
  }

  #take(event: SkeinEvent): void {
    if (this.#early !== null) return void this.#early.push(event);
    if (event.type === "run.steered" && event.runId === this.#runId) this.#following = event.mergedInto;
    if (event.runId !== this.#following) return;
    // An answer is whole; the next one begins on a line of its own.
    if (event.type === "run.step") this.#printer.endLine();
    const shown = turnEventOf(event, this.#approvals);
    if (shown !== null) this.#printer.show(shown);
  }
}

/** A child that is about to be spawned: for which session, and for what. */
export interface ExpectedChild {
  readonly ref: string;
  readonly task: string;
}

/**
 * The first run of a child, printed as it happens. The call that spawns it answers when it is over, so the child is known by what
 * is told of it: a run in the lane of children that no run has set off, in a session of this parent and this task.
 */
export class ChildPrinter {
  readonly ready: Promise<void>;
  readonly #printer: TurnPrinter;
  readonly #open: OpenSkeinCalls;
  readonly #heard: RunEvents;
  readonly #child: { readonly parent: string; readonly name: string };
  readonly #approvals: Parameters<typeof turnEventOf>[1] = new Map();
  /** What was heard of runs that may be the child's, until that is known; `null`: one of them is. */
  #maybe: Map<string, SkeinEvent[]> | null = new Map();
  #runId: string | null = null;
  #deciding: Promise<void> = Promise.resolve();

  static async of(printer: TurnPrinter, open: OpenSkeinCalls, coming: ExpectedChild): Promise<ChildPrinter> {
    const { ref, task } = coming;
    const parent = keyMeant(ref, open.asker) ?? (await resolveRef(open, ref)).key;
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
    const { userId } = open.reader;
    const stream = open.calls.events({ events: ["run.*", "approval.*"], ...present({ userId }) });
    this.#heard = new RunEvents(
      stream,
      userId,
      (event) => this.#hear(event),
      (event) => this.#isWanted(event),
    );
    this.ready = this.#heard.ready;
  }

  /** Once all has come of the child that comes: what is printed next stands below it. */
  async end(runId: string): Promise<void> {
    await this.#heard.caughtUp(runId);
    await this.#deciding;
    this.#printer.endLine();
  }

  /** Makes room for something else while it goes on. */
  pause(): void {
    this.#printer.endLine();
  }

  close(): void {
    this.#printer.endLine();
    this.#heard.close();
  }

  /** Of everybody's runs those that may be the child's; once that is known, its own. */
  #isWanted(event: SkeinEvent): boolean {
    const { runId } = event;
    if (runId === undefined) return false;
    if (this.#maybe === null) return runId === this.#runId;
    return this.#maybe.has(runId) || isFirstOfChild(event);
  }

  #hear(event: SkeinEvent): void {
    const { runId = "" } = event;
    const early = this.#maybe?.get(runId);
    if (this.#maybe === null) this.#show(event);
    else if (early === undefined) this.#lookAt(runId, event, this.#maybe);
    else early.push(event);
  }

  #lookAt(runId: string, event: SkeinEvent, maybe: Map<string, SkeinEvent[]>): void {
    maybe.set(runId, [event]);
    // Whoever may not look sees nothing of it, and gets the result all the same.
    const decided = this.#isOurs(event).then(
      (isOurs) => this.#decide(runId, isOurs),
      () => this.#decide(runId, false),
    );
    this.#deciding = Promise.all([this.#deciding, decided]).then(() => undefined);
  }

  async #isOurs({ sessionKey }: SkeinEvent): Promise<boolean> {
    const { calls, reader } = this.#open;
    const { userId } = reader;
    const row = await calls.call("sessions.get", { key: sessionKey, ...present({ userId }) });
    return row.spawnedBy === this.#child.parent && row.displayName === this.#child.name;
  }

  #decide(runId: string, isOurs: boolean): void {
    const early = this.#maybe?.get(runId) ?? [];
    this.#maybe?.delete(runId);
    if (!isOurs || this.#maybe === null) return;
    this.#maybe = null;
    this.#runId = runId;
    for (const event of early) this.#show(event);
  }

  #show(event: SkeinEvent): void {
    if (event.type === "run.queued") this.#printer.note(`${shortKey(event.sessionKey)}: at work`, "↳");
    if (event.type === "run.step") this.#printer.endLine();
    const shown = turnEventOf(event, this.#approvals);
    if (shown !== null) this.#printer.show(shown);
  }
}

function isFirstOfChild(event: SkeinEvent): boolean {
  return event.type === "run.queued" && event.lane === "subagent" && event.startedBy === undefined;
}
