import type { TurnEvent } from "../agents/contract.ts";
import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { FenceScript } from "../core/script.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import { cutText } from "../core/text.ts";
import type { Claim, HeldRun, Run } from "../runs/contract.ts";
import { isFenced } from "../runs/worker.ts";
import type { EntryPage, EntryRange, SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";
import type { BranchPosition, GuardedAppend, GuardNote, GuardOptions, ReadyResult } from "./append.ts";
import {
  appendResults,
  closeOpenCalls,
  guardedAppend,
  guardedNote,
  lastMessageOf,
  prepareResult,
  readLastTurn,
} from "./append.ts";
import { contextOfSession } from "./runtime-context.ts";

type WriterApp = Pick<App, "store" | "hooks" | "runs" | "bus" | "clock">;

/** A result that waits for the next append. */
interface WaitingResult {
  readonly result: ReadyResult;
  resolve(done: GuardedAppend): void;
  reject(error: unknown): void;
}

type Input = Pick<GuardOptions, "isInput">;

const pageSize = 200;
/** The type of the entries that show users what was changed or omitted when a message was written. */
const notesType = "skein.notes";

/**
 * Writes to a run's session. A write throws `fenced` if another process owns the run or if another writer has added a
 * message.
 */
export class RunWriter {
  readonly #app: WriterApp;
  readonly #session: SessionRecord;
  readonly #run: Run;
  readonly #held: HeldRun;
  readonly #position: BranchPosition;
  readonly #ready: WaitingResult[] = [];
  #writing: Promise<void> | null = null;

  private constructor(
    app: WriterApp,
    session: SessionRecord,
    { run, held }: Claim,
    lastMessageId: string | null,
  ) {
    this.#app = app;
    this.#session = session;
    this.#run = run;
    this.#held = held;
    this.#position = { lastMessageId };
  }

  /** Starts from the leaf at which the run was claimed. */
  static async begin(app: WriterApp, session: SessionRecord, claim: Claim): Promise<RunWriter> {
    return new RunWriter(app, session, claim, lastMessageOf(await tailOf(app, session, claim.leafId)));
  }

  /** Rejects writes once another process owns the run. */
  get fence(): FenceScript {
    return this.#app.runs.heldFence(this.#held);
  }

  /** Throws `fenced` if another process owns the run. */
  async check(): Promise<void> {
    if (!(await this.#app.runs.isHeld(this.#held)))
      throw new SkeinError("fenced", { sessionId: this.#session.sessionId });
  }

  /** Writes a message through the guard. If an entry with this ID exists, nothing is written. */
  async say(message: MessageDraft, id?: string, more: Input = {}): Promise<GuardedAppend> {
    const { sessionId } = this.#session;
    const scope = scopeOfSession(this.#session);
    const ctx = contextOfSession(this.#app.store, this.#session, this.#run);
    const options = { ...more, ...present({ id }), ctx, ...this.#place };
    const done =
      message.role === "toolResult"
        ? await this.#answer(await prepareResult(this.#app, scope, sessionId, message, options))
        : await guardedAppend(this.#app, scope, sessionId, message, options);
    await this.record(done.notes);
    return done;
  }

  get #place() {
    return { fence: this.fence, position: this.#position };
  }

  /**
   * Appends a result. Results that are ready in the same tick, or while others are being written, are appended
   * together.
   */
  async #answer(result: ReadyResult | { readonly refused: string }): Promise<GuardedAppend> {
    if ("refused" in result) return { entries: [], notes: [], ...result };
    const { promise, resolve, reject } = Promise.withResolvers<GuardedAppend>();
    this.#ready.push({ result, resolve, reject });
    this.#writing ??= this.#writeReady();
    return promise;
  }

  async #writeReady(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#ready.length > 0) await this.#writeResults(this.#ready.splice(0));
    this.#writing = null;
  }

  /**
   * Appends a batch of results. If one result is invalid, the store rejects the whole batch, so each result is then
   * written separately.
   */
  async #writeResults(batch: readonly WaitingResult[]): Promise<void> {
    const { sessionId } = this.#session;
    const scope = scopeOfSession(this.#session);
    const results = batch.map(({ result }) => result);
    try {
      const done = await appendResults(this.#app.store, scope, sessionId, results, this.#place);
      for (const [index, { resolve }] of batch.entries()) resolve(done[index] as GuardedAppend);
    } catch (error) {
      const isInvalid = error instanceof SkeinError && error.code === "invalid_entry";
      if (isInvalid && batch.length > 1) for (const each of batch) await this.#writeResults([each]);
      else for (const { reject } of batch) reject(error);
    }
  }

  /** Writes an entry that is not a message. Like any message, a `custom_message` must follow the last message. */
  async note(draft: EntryDraft, id?: string, more: Input = {}): Promise<Entry | null> {
    const { sessionId } = this.#session;
    const scope = scopeOfSession(this.#session);
    const named = id === undefined ? {} : { id };
    if (draft.type === "custom_message") {
      const options = { ...more, ...named, ...this.#place };
      const done = await guardedNote(this.#app, scope, sessionId, draft, options);
      return done.entries.at(-1) ?? null;
    }
    const items = [{ draft, ...named }];
    const { entries } = await this.#app.store.sessions.append(scope, sessionId, items, { fence: this.fence });
    return entries[0] ?? null;
  }

  /** Writes results for calls that will never get one. */
  async closeOpenCalls(): Promise<void> {
    await this.#writing;
    const { sessionId } = this.#session;
    const done = await closeOpenCalls(this.#app, scopeOfSession(this.#session), sessionId, this.#place);
    await this.record(done.notes);
  }

  /** Records the changes made to messages, both as an entry for `runs show` and as events. */
  async record(notes: readonly GuardNote[], runId = this.#held.runId): Promise<void> {
    if (notes.length === 0) return;
    const { userId, key: sessionKey, sessionId } = this.#session;
    await this.note({ type: "custom", customType: notesType, data: { runId, notes } });
    for (const { kind, note } of notes) {
      const at = this.#app.clock.now();
      this.#app.bus.emit({ type: "run.note", at, userId, sessionKey, sessionId, runId, kind, note });
    }
  }

  /** Call this after this process has moved the branch. */
  async readLastMessage(): Promise<void> {
    this.#position.lastMessageId = lastMessageOf(await tailOf(this.#app, this.#session));
  }
}

/**
 * Returns the end of the branch, at least from the last message that is not a tool result. With `from`, leaves out the
 * entries after that one.
 */
export async function tailOf(
  { store }: Pick<App, "store">,
  session: SessionRecord,
  from?: string | null,
): Promise<readonly Entry[]> {
  if (from === null) return [];
  const { sessionId } = session;
  const scope = scopeOfSession(session);
  return ((await readLastTurn(store, scope, sessionId, from)) ?? noSuchSession(sessionId)).entries;
}

/** Returns the changes that the guard made to a run's messages, oldest first. */
export async function guardNotesOf(
  { sessions }: Pick<Store, "sessions">,
  { runId, session, entryId }: Pick<Run, "runId" | "session" | "entryId">,
): Promise<readonly GuardNote[]> {
  const notes: GuardNote[] = [];
  const scope = present({ userId: session.userId, agentId: session.agentId });
  for (let after: string | undefined = entryId; after !== undefined; ) {
    const range: EntryRange = { along: "all", after, limit: pageSize };
    const page: EntryPage | null = await sessions.page(scope, session.sessionId, range).catch(() => null);
    for (const entry of page?.entries ?? []) {
      if (entry.type !== "custom" || entry.customType !== notesType || !isRecord(entry.data)) continue;
      if (entry.data.runId === runId) notes.push(...(entry.data.notes as readonly GuardNote[]));
    }
    after = page?.hasLater === true ? page.entries.at(-1)?.id : undefined;
  }
  return notes;
}

/** Returns the last answer on a branch. */
export function lastAnswer(tail: readonly Entry[]): {
  readonly reply: string;
  readonly entryId: string;
  readonly error: string;
} {
  const entry = tail.findLast((each) => each.type === "message" && each.message.role === "assistant");
  if (entry?.type !== "message" || entry.message.role !== "assistant")
    return { reply: "", entryId: "", error: "" };
  const { content, errorMessage } = entry.message;
  return { reply: textOf(content), entryId: entry.id, error: errorMessage ?? "The model could not answer." };
}

/**
 * Returns the model's text since the last message from another author, without calls and results. Empty if there is
 * none.
 */
export function lastWords(tail: readonly Entry[]): string {
  const last = tail.findLast(
    (each) =>
      each.type === "custom_message" || (each.type === "message" && each.message.role !== "toolResult"),
  );
  return last?.type === "message" && last.message.role === "assistant" ? textOf(last.message.content) : "";
}

const everyMs = 1000;
/** The partial answer is rewritten each time, so only the beginning of a long answer is stored. */
const maxCharacters = 400_000;

/** Stores the partial answer once a second so that users can see it after a crash. */
export class PartialKeeper {
  readonly #app: Pick<App, "runs" | "clock" | "report">;
  readonly #held: HeldRun;
  #text: string[] = [];
  #charactersLeft = maxCharacters;
  #storedAt: number;
  #isStored = false;

  constructor(app: Pick<App, "runs" | "clock" | "report">, held: HeldRun) {
    this.#app = app;
    this.#held = held;
    this.#storedAt = app.clock.now();
  }

  take(event: TurnEvent): void {
    if (event.type === "retry") this.#empty();
    if (event.type !== "delta" || event.kind !== "text") return;
    if (this.#charactersLeft === 0) return;
    const delta = cutText(event.delta, this.#charactersLeft);
    this.#charactersLeft = delta.length < event.delta.length ? 0 : this.#charactersLeft - delta.length;
    this.#text.push(delta);
    const now = this.#app.clock.now();
    if (now - this.#storedAt < everyMs) return;
    this.#storedAt = now;
    this.#isStored = true;
    this.#app.runs.savePartial(this.#held, this.#text.join("")).catch(this.#app.report);
  }

  /** Keeps the partial answer for the process that continues the run. */
  async leave(): Promise<void> {
    await this.#app.runs.savePartial(this.#held, this.#text.join("")).catch((error: unknown) => {
      if (!isFenced(error)) throw error;
    });
  }

  /** Call this after the answer has been written. */
  async settle(): Promise<void> {
    this.#empty();
    if (!this.#isStored) return;
    this.#isStored = false;
    await this.#app.runs.savePartial(this.#held, null);
  }

  #empty(): void {
    this.#text = [];
    this.#charactersLeft = maxCharacters;
  }
}
