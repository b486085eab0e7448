import type { SkeinEvent } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import { turnEventOf } from "../../sessions/skein/turn-handle.ts";
import type { TurnPrinter } from "../output/turn-printer.ts";
import { Heard } from "./heard.ts";
import type { NamedSession } from "./whole-tree.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

/** One run, printed as it happens. It is heard from before there is one, so that nothing is missed. */
export class ShownRun {
  readonly #printer: TurnPrinter;
  readonly #heard: Heard;
  readonly #approvals: Parameters<typeof turnEventOf>[1] = new Map();
  /** What came before it was known which run is meant; `null`: it is. */
  #early: SkeinEvent[] | null = [];
  #runId = "";
  /** The run whose answer it is: another one, where it was steered into that. */
  #following = "";

  constructor(printer: TurnPrinter, { calls }: Pick<OpenSkeinCalls, "calls">, to: NamedSession) {
    this.#printer = printer;
    const { key, agentId, userId } = to;
    const filter = { keys: [key], events: ["run.*", "approval.*"], ...present({ agentId, userId }) };
    this.#heard = new Heard(calls.events(filter), userId, (event) => this.#take(event));
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
