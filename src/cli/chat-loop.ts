import { once } from "node:events";
import type { Interface } from "node:readline/promises";
import { createInterface } from "node:readline/promises";
import type { SkeinEvent } from "../core/events.ts";
import { stringifyJson } from "../core/json.ts";
import { escapeToLine, thrownText } from "../core/text.ts";
import { turnEventOf } from "../sessions/turn-handle.ts";
import { getRun, waitUntilEnded, waitUntilSettled } from "./connection/wait-for-runs.ts";
import { RunEvents } from "./connection/watch-run.ts";
import { describeApp, formatTime, pluralize } from "./output/format.ts";
import { commandLine } from "./output/invocation.ts";
import type { Terminal, TerminalInput } from "./output/terminal.ts";
import { paint } from "./output/terminal.ts";
import { shortKey, TurnPrinter } from "./output/turn-printer.ts";
import type { ChatSession } from "./slash-commands.ts";
import { parseSlash, slashHandlers } from "./slash-commands.ts";

/** A second Ctrl-C within this time quits. */
const twiceMs = 2000;

/**
 * A line-by-line conversation. A line that is typed while a turn is running is sent immediately, and the queue mode
 * determines what happens to it. A piped line waits until the previous turn has ended.
 */
export class Chat {
  readonly #terminal: Terminal;
  readonly #session: ChatSession;
  readonly #printer: TurnPrinter;
  readonly #events: RunEvents;
  readonly #isTerminal: boolean;
  readonly #lines: Lines;
  readonly #quitting = new AbortController();
  readonly #lineQueue: string[] = [];
  /** The unfinished runs that this chat has started. */
  readonly #openTurns = new Set<string>();
  /** Running turns in this session, including those started by other clients. */
  readonly #runningTurns = new Set<string>();
  readonly #ownRuns = new Set<string>();
  readonly #rootIds = new Set<string>();
  #approvals: { readonly approvalId: string; readonly name: string }[] = [];
  #hasInputEnded = false;
  #isFinishing = false;
  /** Initially `true`, so that no line is handled before the event subscription is active. */
  #isHandling = true;
  #interruptedAt = Number.NEGATIVE_INFINITY;
  hasFailed = false;

  constructor(terminal: Terminal, session: ChatSession, options: { readonly thinking: boolean }) {
    const input = terminal.input();
    this.#terminal = terminal;
    this.#session = session;
    this.#isTerminal = input.typed;
    this.#printer = new TurnPrinter(terminal, {
      notes: input.typed ? "out" : "err",
      text: true,
      thinking: options.thinking,
      before: () => this.#lines.makeRoom(terminal.out),
    });
    const { calls, user } = session.open;
    const stream = calls.events({ events: ["run.*", "approval.*"], ...user });
    this.#events = new RunEvents(stream, user.userId, (event) => this.#onEvent(event));
    this.#lines = new Lines(input, {
      line: (text) => {
        this.#lineQueue.push(text);
        this.#advance();
      },
      interrupt: () => this.#interrupt(),
      end: () => {
        this.#hasInputEnded = true;
        this.#advance();
      },
    });
  }

  /** Resolves when the user quits or every piped line has been answered. */
  async run(): Promise<void> {
    const stopListening = this.#terminal.onInterrupt(() => this.#interrupt());
    const left = once(this.#quitting.signal, "abort");
    await Promise.race([this.#events.ready, left]);
    this.#isHandling = false;
    this.#advance();
    await left;
    stopListening();
    this.#events.close();
    this.#printer.endLine();
    this.#lines.close();
  }

  /** Handles the next line if possible, otherwise shows the prompt. */
  #advance(): void {
    if (this.#isHandling || this.#quitting.signal.aborted) return;
    const isFree = this.#isTerminal || this.#openTurns.size === 0 || this.#approvals.length > 0;
    const line = isFree ? this.#lineQueue.shift() : undefined;
    if (line !== undefined) {
      this.#isHandling = true;
      void this.#handle(line).finally(() => {
        this.#isHandling = false;
        this.#advance();
      });
    } else if (this.#hasInputEnded && this.#isTerminal) this.#quit();
    else if (this.#hasInputEnded) void this.#finish();
    else if (this.#runningTurns.size === 0 && this.#openTurns.size === 0) this.#lines.prompt();
  }

  /** Called at the end of the input. Denies pending approvals and waits for everything that was started. */
  async #finish(): Promise<void> {
    for (const { approvalId } of this.#approvals.splice(0)) await this.#resolve(approvalId, "denied");
    if (this.#openTurns.size > 0 || this.#lineQueue.length > 0 || this.#isFinishing) return;
    this.#isFinishing = true;
    const { signal } = this.#quitting;
    try {
      for (const rootId of this.#rootIds) await waitUntilSettled(this.#session.open, rootId, signal);
    } catch (error) {
      if (!signal.aborted) this.#fail(thrownText(error));
    }
    this.#quit();
  }

  #quit(): void {
    this.#quitting.abort();
  }

  async #handle(line: string): Promise<void> {
    try {
      const answer = /^\s*(?:(y|yes)|n|no)\s*$/i.exec(line);
      const asked = this.#approvals[0];
      const slash = parseSlash(line);
      if (asked !== undefined && slash === null) {
        if (answer === null) this.#ask(asked.name, asked.approvalId);
        else await this.#resolve(asked.approvalId, answer[1] === undefined ? "denied" : "approved");
      } else if (slash === null) {
        if (line.trim() !== "") await this.#send(line.startsWith("//") ? line.slice(1) : line);
      } else if (slash.name === null) {
        this.#printer.note(`unknown command /${escapeToLine(slash.typed)}; /help lists the commands`);
      } else {
        const terminal = { ...this.#terminal, out: (text: string) => this.#printer.lines(text) };
        const note = (text: string) => this.#printer.note(text);
        await slashHandlers[slash.name](
          { session: this.#session, terminal, note, leave: () => this.#quit() },
          slash.rest,
        );
      }
    } catch (error) {
      this.#fail(thrownText(error));
    }
  }

  async #send(text: string): Promise<void> {
    const runId = await this.#session.say(text);
    this.#openTurns.add(runId);
    this.#ownRuns.add(runId);
    void this.#waitForReply(runId)
      .catch((error: unknown) => {
        if (!this.#quitting.signal.aborted) this.#fail(thrownText(error));
      })
      .finally(() => {
        this.#openTurns.delete(runId);
        this.#advance();
      });
  }

  async #waitForReply(runId: string): Promise<void> {
    const { open } = this.#session;
    const waiting = await getRun(open, runId);
    if (waiting?.waitsForApp !== undefined) {
      const command = commandLine(open, "runs", "release", runId);
      return this.#printer.note(`waiting for ${describeApp(waiting)}; ${command} lets any process run it`);
    }
    const { state, reply = "", error } = await waitUntilEnded(open, runId, this.#quitting.signal);
    const run = await getRun(open, runId);
    if (run !== null) this.#rootIds.add(run.rootId);
    await this.#events.waitForEnd(run?.mergedInto ?? runId);
    this.#printer.endLine();
    if (state === "aborted") this.#printer.note("aborted");
    else if (state !== "ok") this.#fail(`${error?.message ?? state} [${error?.code ?? state}]`);
    // Prints a reply that was not streamed completely. A merged message has no separate reply.
    else if (run?.mergedInto === undefined && !this.#events.hasWholeReply(runId, reply))
      this.#printer.answer(reply);
  }

  #fail(text: string): void {
    this.hasFailed = true;
    this.#printer.endLine();
    this.#lines.makeRoom(this.#terminal.out);
    this.#terminal.err(`${paint(this.#terminal, "red", "error:", "err")} ${escapeToLine(text)}\n`);
  }

  #onEvent(event: SkeinEvent): void {
    const { key } = this.#session;
    if (event.runId === undefined) return;
    if ("startedBy" in event && event.startedBy !== undefined && this.#ownRuns.has(event.startedBy)) {
      this.#ownRuns.add(event.runId);
    }
    if (event.sessionKey === key) this.#onSessionEvent(event, event.runId);
    else if (this.#ownRuns.has(event.runId)) this.#onChildEvent(event, event.runId);
  }

  #onSessionEvent(event: SkeinEvent, runId: string): void {
    if (event.type === "run.started" || event.type === "run.recovered") {
      this.#runningTurns.add(runId);
      this.#ownRuns.add(runId);
    }
    if (event.type === "run.step") this.#printer.endLine();
    const shown = turnEventOf(event);
    if (shown !== null) this.#printer.show(shown);
    this.#onApprovalEvent(event, "");
    if (event.type === "run.sleeping") {
      const { length } = event.waitingFor;
      const what = length === 0 ? "messages that have already arrived" : pluralize(length, "run");
      this.#printer.note(`sleeping until ${formatTime(event.wakeAt)} UTC at the latest, waiting for ${what}`);
    }
    if (event.type === "run.sleeping" || event.type === "run.ended") {
      this.#runningTurns.delete(runId);
      this.#printer.endLine();
      this.#advance();
    }
  }

  #onApprovalEvent(event: SkeinEvent, whose: string): void {
    if (event.type === "approval.requested") {
      const name = `${whose}${event.toolName} ${stringifyJson(event.arguments)}`;
      this.#approvals.push({ approvalId: event.approvalId, name });
      this.#ask(name, event.approvalId);
      this.#advance();
    }
    if (event.type === "approval.resolved") {
      this.#approvals = this.#approvals.filter(({ approvalId }) => approvalId !== event.approvalId);
    }
  }

  #onChildEvent(event: SkeinEvent, childRunId: string): void {
    this.#onApprovalEvent(event, `${shortKey(event.sessionKey)}: `);
    const state = event.type === "run.started" ? "running" : event.type === "run.ended" ? event.state : null;
    if (state === null) return;
    this.#printer.show({ type: "child", childSessionKey: event.sessionKey, childRunId, state });
  }

  #ask(name: string, approvalId: string): void {
    const left = this.#approvals.findIndex((each) => each.approvalId === approvalId);
    this.#printer.note(`${name}: allow? y or n${left > 0 ? " (after the previous one)" : ""}`, "?");
  }

  async #resolve(approvalId: string, answer: "approved" | "denied"): Promise<void> {
    const { calls, user } = this.#session.open;
    this.#approvals = this.#approvals.filter((each) => each.approvalId !== approvalId);
    await calls.call("approvals.resolve", { approvalId, answer, ...user });
    const [next] = this.#approvals;
    if (next !== undefined) this.#ask(next.name, next.approvalId);
  }

  /** Aborts the running turns. Quits if called again within two seconds, or if there is nothing to abort. */
  #interrupt(): void {
    const now = this.#terminal.now();
    const runIds = [...new Set([...this.#openTurns, ...this.#runningTurns])];
    if (runIds.length === 0 || now - this.#interruptedAt < twiceMs) {
      this.#quit();
      return;
    }
    this.#interruptedAt = now;
    this.#printer.note("aborting; press Ctrl-C again to quit");
    const { calls, user } = this.#session.open;
    const abort = (runId: string) => calls.call("runs.abort", { runId, ...user });
    void Promise.all(runIds.map(abort)).catch((error: unknown) => this.#fail(thrownText(error)));
  }
}

interface LineHandlers {
  line(text: string): void;
  interrupt(): void;
  /** Called at the end of the input. */
  end(): void;
}

const prompt = "› ";

/** Reads typed or piped lines, with a prompt on a terminal. */
class Lines {
  readonly #interface: Interface;
  readonly #isTerminal: boolean;
  #isPrompting = false;

  constructor({ stream, typed }: TerminalInput, handlers: LineHandlers) {
    this.#isTerminal = typed;
    this.#interface = createInterface({
      input: stream,
      ...(typed ? { output: process.stdout } : {}),
      terminal: typed,
      prompt,
      crlfDelay: Number.POSITIVE_INFINITY,
    });
    this.#interface.on("line", (text) => {
      this.#isPrompting = false;
      handlers.line(text);
    });
    // In raw mode, Ctrl-C arrives as a key, not as a signal.
    this.#interface.on("SIGINT", () => handlers.interrupt());
    this.#interface.on("close", () => handlers.end());
  }

  /** Shows the prompt together with any text that has already been typed. */
  prompt(): void {
    if (!this.#isTerminal || this.#isPrompting) return;
    this.#isPrompting = true;
    this.#interface.prompt(true);
  }

  /** Clears the prompt before other output. */
  makeRoom(write: (text: string) => void): void {
    if (!this.#isPrompting) return;
    this.#isPrompting = false;
    write("\r\u001b[J");
  }

  close(): void {
    this.#interface.close();
  }
}
