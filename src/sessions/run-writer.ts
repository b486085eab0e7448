import type { TurnEvent } from "../agents/contract.ts";
import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import { isRecord } from "../core/shape.ts";
import { cutText } from "../core/text.ts";
import type { Claim, HeldRun, Run } from "../runs/contract.ts";
import { isFenced } from "../runs/worker.ts";
import type { EntryPage, EntryRange, Store } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import type { App } from "./app.ts";
import type { GuardedAppend, GuardNote, GuardOptions } from "./append.ts";
import { closeOpenCalls, guardedAppend, guardedNote, lastMessageOf } from "./append.ts";
import type { RunPlace } from "./run-place.ts";

type WriterApp = Pick<App, "store" | "hooks" | "runs" | "bus" | "clock">;

type Input = Pick<GuardOptions, "isInput">;

const pageSize = 200;
/** Entries that say for people what was changed or left out on the way in. */
const notesType = "skein.notes";

/**
 * The one who may write into a session while a run goes on. Every write is refused as `fenced` once the run is another's,
 * or somebody else has said something since we looked.
 */
export class RunWriter {
  readonly #app: WriterApp;
  readonly #place: RunPlace;
  readonly #held: HeldRun;
  #lastMessageId: string | null;

  private constructor(app: WriterApp, place: RunPlace, held: HeldRun, lastMessageId: string | null) {
    this.#app = app;
    this.#place = place;
    this.#held = held;
    this.#lastMessageId = lastMessageId;
  }

  /** From where the session stood when the run was claimed. */
  static async begin(app: WriterApp, place: RunPlace, { held, leafId }: Claim): Promise<RunWriter> {
    return new RunWriter(app, place, held, await lastMessageAt(app, place, leafId));
  }

  readonly fence = (): boolean => this.#app.runs.isHeld(this.#held);

  /** Throws once the run is another's. */
  check(): void {
    if (!this.fence()) throw new SkeinError("fenced", { sessionId: this.#place.session.sessionId });
  }

  /** A message, by the guard. Under an id that stands there already, nothing is written. */
  async say(message: MessageDraft, id?: string, more: Input = {}): Promise<GuardedAppend> {
    const { scope, session, ctx } = this.#place;
    const done = await guardedAppend(this.#app, scope, session.sessionId, message, {
      ...more,
      ...(id === undefined ? {} : { id }),
      ctx,
      fence: this.fence,
      lastMessageId: this.#lastMessageId,
    });
    if (done.wasThere !== true) this.#lastMessageId = lastMessageOf(done.entries) ?? this.#lastMessageId;
    await this.tell(done.notes);
    return done;
  }

  /** An entry that is no message of the guard's. One that the model sees is held to the last message as any message is. */
  async note(draft: EntryDraft, id?: string, more: Input = {}): Promise<Entry | null> {
    const { scope, session } = this.#place;
    const named = id === undefined ? {} : { id };
    const { fence } = this;
    if (draft.type === "custom_message") {
      const options = { ...more, ...named, fence, lastMessageId: this.#lastMessageId };
      const done = await guardedNote(this.#app, scope, session.sessionId, draft, options);
      if (done.wasThere !== true) this.#lastMessageId = lastMessageOf(done.entries) ?? this.#lastMessageId;
      return done.entries.at(-1) ?? null;
    }
    const items = [{ draft, ...named }];
    const { entries } = await this.#app.store.sessions.append(scope, session.sessionId, items, { fence });
    return entries[0] ?? null;
  }

  /** Calls that will get no result any more. */
  async closeOpenCalls(): Promise<void> {
    const { scope, session } = this.#place;
    const done = await closeOpenCalls(this.#app, scope, session.sessionId, {
      fence: this.fence,
      lastMessageId: this.#lastMessageId,
    });
    this.#lastMessageId = lastMessageOf(done.entries) ?? this.#lastMessageId;
    await this.tell(done.notes);
  }

  /** What was changed on the way in: kept with the session, for `runs show` of the run, and sent as events. */
  async tell(notes: readonly GuardNote[], runId = this.#held.runId): Promise<void> {
    if (notes.length === 0) return;
    const { userId, key: sessionKey, sessionId } = this.#place.session;
    await this.note({ type: "custom", customType: notesType, data: { runId, notes } });
    for (const { kind, note } of notes) {
      const at = this.#app.clock.now();
      this.#app.bus.emit({ type: "run.note", at, userId, sessionKey, sessionId, runId, kind, note });
    }
  }

  /** After we have moved to another branch ourselves. */
  async lookAgain(): Promise<void> {
    this.#lastMessageId = lastMessageOf(await tailOf(this.#app, this.#place));
  }
}

/** The end of the branch, as far back as its last message. */
export async function tailOf(
  { store }: Pick<App, "store">,
  { scope, session }: RunPlace,
  from?: string | null,
): Promise<readonly Entry[]> {
  if (from === null) return [];
  const { sessionId } = session;
  let tail: readonly Entry[] = [];
  for (;;) {
    const before = tail[0] === undefined ? {} : { before: tail[0].id };
    const range = { along: "branch", limit: pageSize, ...before } as const;
    const page = (await store.sessions.page(scope, sessionId, range)) ?? noSuchSession(sessionId);
    tail = [...page.entries, ...tail];
    const here = from === undefined ? tail : upTo(tail, from);
    if (!page.hasEarlier || here.some(isTurnBegin)) return here;
  }
}

/** What calls may be open of lies behind it. */
function isTurnBegin(entry: Entry): boolean {
  return entry.type === "custom_message" || (entry.type === "message" && entry.message.role !== "toolResult");
}

function upTo(tail: readonly Entry[], id: string): readonly Entry[] {
  return tail.slice(0, tail.findIndex((entry) => entry.id === id) + 1);
}

async function lastMessageAt(app: WriterApp, place: RunPlace, leafId: string | null): Promise<string | null> {
  return lastMessageOf(await tailOf(app, place, leafId));
}

/** What the guard changed of the messages of a run, oldest first. */
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

/** The last answer of a branch, as the end of a run tells it. */
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

/** The model's text since the last message from anyone else, without calls and results; blank: none. */
export function lastWords(tail: readonly Entry[]): string {
  const last = tail.findLast(
    (each) =>
      each.type === "custom_message" || (each.type === "message" && each.message.role !== "toolResult"),
  );
  return last?.type === "message" && last.message.role === "assistant" ? textOf(last.message.content) : "";
}

const everyMs = 1000;
/** It is written whole each time: of an answer without end the beginning is kept. */
const mostCharacters = 400_000;

/** Keeps the answer so far, once a second, so that a crash leaves it for people to see. */
export class PartialKeeper {
  readonly #app: Pick<App, "runs" | "clock" | "report">;
  readonly #held: HeldRun;
  #text: string[] = [];
  #left = mostCharacters;
  #keptAt: number;
  #isKept = false;

  constructor(app: Pick<App, "runs" | "clock" | "report">, held: HeldRun) {
    this.#app = app;
    this.#held = held;
    this.#keptAt = app.clock.now();
  }

  take(event: TurnEvent): void {
    if (event.type === "retry") this.#empty();
    if (event.type !== "delta" || event.kind !== "text") return;
    if (this.#left === 0) return;
    const delta = cutText(event.delta, this.#left);
    this.#left = delta.length < event.delta.length ? 0 : this.#left - delta.length;
    this.#text.push(delta);
    const now = this.#app.clock.now();
    if (now - this.#keptAt < everyMs) return;
    this.#keptAt = now;
    this.#isKept = true;
    this.#app.runs.keepPartial(this.#held, this.#text.join("")).catch(this.#app.report);
  }

  /** The streamed part is left to the process that continues. */
  async leave(): Promise<void> {
    await this.#app.runs.keepPartial(this.#held, this.#text.join("")).catch((error: unknown) => {
      if (!isFenced(error)) throw error;
    });
  }

  /** What was streamed is written now. */
  async settle(): Promise<void> {
    this.#empty();
    if (!this.#isKept) return;
    this.#isKept = false;
    await this.#app.runs.keepPartial(this.#held, null);
  }

  #empty(): void {
    this.#text = [];
    this.#left = mostCharacters;
  }
}
