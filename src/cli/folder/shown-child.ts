import type { SkeinEvent } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import { keyMeant } from "../../core/references.ts";
import { childName } from "../../sessions/between/spawn-meta.ts";
import { turnEventOf } from "../../sessions/skein/turn-handle.ts";
import type { TurnPrinter } from "../output/turn-printer.ts";
import { shortKey } from "../output/turn-printer.ts";
import { Heard } from "./heard.ts";
import { resolveRef } from "./resolve-ref.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

/** A child that is about to be spawned: for which session, and for what. */
export interface ComingChild {
  readonly ref: string;
  readonly task: string;
}

/**
 * The first run of a child, printed as it happens. The call that spawns it answers when it is over, so the child is known by what
 * is told of it: a run in the lane of children that no run has set off, in a session of this parent and this task.
 */
export class ShownChild {
  readonly ready: Promise<void>;
  readonly #printer: TurnPrinter;
  readonly #open: OpenSkeinCalls;
  readonly #heard: Heard;
  readonly #child: { readonly parent: string; readonly name: string };
  readonly #approvals: Parameters<typeof turnEventOf>[1] = new Map();
  /** What was heard of runs that may be the child's, until that is known; `null`: one of them is. */
  #maybe: Map<string, SkeinEvent[]> | null = new Map();
  #runId: string | null = null;
  #deciding: Promise<void> = Promise.resolve();

  static async of(printer: TurnPrinter, open: OpenSkeinCalls, coming: ComingChild): Promise<ShownChild> {
    const { ref, task } = coming;
    const parent = keyMeant(ref, open.asker) ?? (await resolveRef(open, ref)).key;
    const shown = new ShownChild(printer, open, { parent, name: childName(task) });
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
    this.#heard = new Heard(
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
