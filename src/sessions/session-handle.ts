import type { StepUsage } from "../agents/contract.ts";
import type { OptionNames } from "../core/check-options.ts";
import { checkOptions } from "../core/check-options.ts";
import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import type { Provenance } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { MessageDraft } from "../core/seal.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Params, Result } from "../protocol/methods/method-table.ts";
import type { QueueMode, Run, RunOptions } from "../runs/contract.ts";
import { runIdOf } from "../runs/ledger/run-ledger.ts";
import type { SessionRecord } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { withPlainUsers } from "../store/spaces.ts";
import {
  acceptInput,
  checkTextSize,
  findFor,
  isServed,
  modelWindow,
  noSuchAgent,
  sessionFor,
  withImages,
} from "./accept.ts";
import type { App, UserCalls } from "./app.ts";
import type { GuardNote } from "./append.ts";
import { callsOf, guardedAppend } from "./append.ts";
import type { CompactNowOptions } from "./compact-now.ts";
import { compactNow } from "./compact-now.ts";
import type { CompactionOutcome } from "./compaction-summary.ts";
import { noteOf } from "./delivery.ts";
import { resolveRuntimeContext } from "./resolve-context.ts";
import { checkIdle } from "./run-place.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { callsFor } from "./services.ts";
import type { Turn } from "./turn-handle.ts";
import { TurnHandle } from "./turn-handle.ts";

/** How a message is sent. */
export interface SendOptions
  extends Pick<
    RunOptions,
    | "model"
    | "thinking"
    | "runTimeoutSeconds"
    | "system"
    | "extraSystemPrompt"
    | "tools"
    | "deliverTo"
    | "origin"
  > {
  /** The same one again gives the same run, also after a restart. */
  readonly idempotencyKey?: string;
  /** What becomes of it while a turn runs; by default as the configuration says. */
  readonly queueMode?: QueueMode;
  /** TypeBox, any Standard Schema, or a JSON Schema of an object: the answer has to fit it, and is `output` of the result. */
  readonly schema?: object;
  readonly images?: readonly { readonly data: string; readonly mimeType: string }[];
  /** Who says it; left out: somebody outside, on the session's channel. */
  readonly provenance?: Provenance;
}

const sendOptionNames: OptionNames<SendOptions> = {
  model: true,
  thinking: true,
  runTimeoutSeconds: true,
  system: true,
  extraSystemPrompt: true,
  tools: true,
  deliverTo: true,
  origin: true,
  idempotencyKey: true,
  queueMode: true,
  schema: true,
  images: true,
  provenance: true,
};

/** A message as the AI SDK has it: `ModelMessage`. */
export interface ModelMessageLike {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | readonly object[];
}

/**
 * Which model gave the answers among appended messages of the AI SDK, and what they cost. Left out: what their signatures tell.
 */
export interface MessageOrigin {
  readonly provider?: string;
  readonly model?: string;
  /** Tokens of the last answer, as the AI SDK counts them. */
  readonly usage?: StepUsage;
}

/** What the AI SDK tells of a step that has ended. */
export interface FinishedStep {
  readonly response: { readonly messages: readonly ModelMessageLike[]; readonly modelId?: string };
  readonly model?: { readonly provider: string; readonly modelId: string };
  readonly usage?: StepUsage;
}

/** What {@link SessionHandle.append} has written. */
export interface AppendedMessages {
  readonly entries: readonly Entry[];
  /** What the guard changed. */
  readonly notes: readonly GuardNote[];
  /** Why messages were not written, one reason each: a result that answers no open call, or a hook's refusal. */
  readonly refused: readonly string[];
}

/**
 * A session, by its name. Nothing is made until something is said.
 *
 * @example
 * ```ts
 * import type { SessionHandle } from "skein";
 * const ask = async (session: SessionHandle, text: string) => (await session.send(text).result).reply;
 * ```
 */
export class SessionHandle {
  readonly #app: App;
  readonly #context: RuntimeContext;
  /** The session (uid) in which this handle opened a turn of the caller's own loop. */
  #loopTurn: string | null = null;

  constructor(app: App, context: RuntimeContext) {
    this.#app = app;
    this.#context = context;
  }

  get key(): string {
    return this.#resolved().sessionKey;
  }

  /** What is known of it; `null`: nothing was said to it yet. */
  async record(): Promise<SessionRecord | null> {
    return withPlainUsers(await this.#found());
  }

  /** The session as it is; made where it is not there, as by the first thing that is said to it. */
  async open(): Promise<SessionRecord> {
    return withPlainUsers(await this.#opened());
  }

  async #opened(): Promise<SessionRecord> {
    this.#app.closed.throwIfAborted();
    const context = this.#resolved();
    if (!isServed(this.#app, context.agentId, context.sessionKey)) throw noSuchAgent(context.agentId);
    return sessionFor(this.#app.store, context);
  }

  /** Says something and goes: it is durable when this resolves, and whoever runs the runs answers it. */
  async accept(text: string, options: SendOptions = {}): Promise<Run> {
    const runId = this.#newRunId(this.#user(), options.idempotencyKey);
    return withPlainUsers(await this.#accept(runId, text, options));
  }

  /** Says something. The turn runs from now on, whether anybody reads it or not. */
  send(text: string, options: SendOptions = {}): Turn {
    const { bus, runs, watcher, awaitedRuns } = this.#app;
    const runId = this.#newRunId(this.#user(), options.idempotencyKey);
    const accepted = this.#accept(runId, text, options);
    accepted.catch(() => undefined);
    return new TurnHandle({
      runId,
      accepted,
      subscribe: (listener) => bus.subscribe(listener),
      waits: (id) => runs.waits(id),
      untilEnded: (id) => watcher.untilEnded(id),
      abort: (id) => runs.abort(id),
      awaitedRuns,
    });
  }

  /** Puts words into the agent's mouth, where a turn ends; no model is asked. The session has to be there. */
  async note(text: string, { idempotencyKey }: Pick<SendOptions, "idempotencyKey"> = {}): Promise<Run> {
    const { closed, runs } = this.#app;
    closed.throwIfAborted();
    const session = await this.#existing();
    if (!isServed(this.#app, session.agentId, session.key)) throw noSuchAgent(session.agentId);
    await this.#checkTextSize(text, session);
    const { run } = await runs.accept({
      session: sessionRefOf(session),
      kind: "note",
      message: noteOf(text, { kind: "external_user" }),
      runId: this.#newRunId(session.userId, idempotencyKey),
      queueMode: "followup",
      isDelivery: true,
      ...present({ idempotencyKey }),
    });
    return withPlainUsers(run);
  }

  /**
   * Appends messages of your own agent loop, in the library's form or the AI SDK's. They pass the guard: calls that can never
   * be valid are removed, calls without a result get one before anything else is said, and large content is moved to blobs.
   * The session is created if it does not exist. Throws `conflict` while a run is active.
   *
   * A message that asks for an answer (from the user, a tool call or its result) opens a turn of your loop: runs of the
   * session wait until an assistant message without tool calls is appended, {@link endTurn} is called, this handle sends, or
   * nothing was appended for ten minutes.
   */
  async append(
    messages: readonly (MessageDraft | ModelMessageLike)[],
    origin: MessageOrigin = {},
  ): Promise<AppendedMessages> {
    const { store, hooks, runs, owner, closed } = this.#app;
    closed.throwIfAborted();
    const { toDrafts } = await import("../agents/models/to-drafts.ts");
    const drafts = await toDrafts(messages, origin);
    const known = await this.#found();
    for (const { draft } of drafts) await this.#checkTextSize(shownText(draft), known);
    const session = await this.#opened();
    checkIdle(runs, session);
    const done: { entries: Entry[]; notes: GuardNote[]; refused: string[] } = {
      entries: [],
      notes: [],
      refused: [],
    };
    let isNew = false;
    const fence = () => {
      checkIdle(runs, session);
      isNew = runs.openLoopTurn(session, owner) || isNew;
      this.#loopTurn = session.uid;
      return true;
    };
    try {
      for (const { item, draft } of drafts) {
        const { entries, notes, refused } = await guardedAppend(
          { store, hooks },
          scopeOfSession(session),
          session.sessionId,
          draft,
          { fence },
        ).catch((error: unknown) => {
          throw withItem(item, error);
        });
        done.entries.push(...entries);
        done.notes.push(...notes);
        if (refused !== null) done.refused.push(refused);
      }
    } finally {
      const asks = asksForAnswer(done.entries);
      if (asks === null ? isNew : !asks) await this.endTurn();
    }
    return done;
  }

  /**
   * Ends the turn of your own loop: what waited for it starts. Needed where a loop stops without a last answer, at its step
   * limit or with an error. Does nothing where no turn is open.
   */
  readonly endTurn = async (): Promise<void> => {
    const uid = this.#loopTurn ?? (await this.record())?.uid;
    this.#loopTurn = null;
    const { runs, owner, worker } = this.#app;
    // Runs that waited for the turn can be claimed now.
    if (uid !== undefined && runs.endLoopTurns(uid, owner)) worker.wake();
  };

  /**
   * A callback for the AI SDK's `onStepFinish` (or `onStepEnd`) that appends the messages of each step, with its model and
   * usage. It rejects where {@link append} throws; the AI SDK ignores that, so the error is logged too.
   */
  readonly onStepFinish = async ({ response, model, usage }: FinishedStep): Promise<void> => {
    const origin = present({ provider: model?.provider, model: model?.modelId ?? response.modelId, usage });
    try {
      await this.append(response.messages, origin);
    } catch (error) {
      this.#app.report(error);
      throw error;
    }
  };

  /** Returns a page of the active branch, oldest message first. */
  async history(
    range: Pick<Params<"chat.history">, "limit" | "before" | "after"> = {},
  ): Promise<Result<"chat.history">> {
    const { calls, key, ...reader } = await this.#reference();
    return calls.call("chat.history", { sessionKey: key, ...reader, ...range });
  }

  /** Continues the conversation after this entry; `null` starts over before the first one. Nothing is deleted. */
  async branch(entryId: string | null): Promise<Result<"sessions.branch">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.branch", { ...session, entryId });
  }

  /** Creates a new session from the path to an entry; without one, from the whole active branch. */
  async fork(
    options: Pick<Params<"sessions.fork">, "entryId" | "sessionId" | "label"> = {},
  ): Promise<Result<"sessions.fork">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.fork", { ...session, ...options });
  }

  /** Sets the label that the session can be found by; `null` removes it. */
  async label(label: string | null): Promise<Result<"sessions.rename">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.rename", { ...session, label });
  }

  /** Moves the key to a new, empty session. The old one stays readable under `previous.key`. */
  async reset(): Promise<Result<"sessions.reset">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.reset", session);
  }

  /** Has the session's model summarize the older part of the session. Throws `conflict` while a run is active. */
  async compact(options: CompactNowOptions = {}): Promise<CompactionOutcome> {
    this.#app.closed.throwIfAborted();
    return compactNow(this.#app, await this.#existing(), options);
  }

  async #existing(): Promise<SessionRecord> {
    return (await this.#found()) ?? noSuchSession(this.key);
  }

  #found(): Promise<SessionRecord | null> {
    return findFor(this.#app.store, this.#resolved());
  }

  /** The user for the ID of a run. `send` returns a turn in any case: a context that does not resolve is refused there. */
  #user(): string | null {
    try {
      return this.#app.spaces.enter(this.#context);
    } catch {
      return this.#context.userId ?? null;
    }
  }

  /** The session as methods name one, and the methods for its user. */
  async #reference(): Promise<{ calls: UserCalls; key: string; agentId: string; userId?: string }> {
    this.#app.closed.throwIfAborted();
    const { key, agentId, userId } = await this.#existing();
    return { ...(await callsFor(this.#app.calls, userId)), key, agentId };
  }

  async #accept(runId: string, text: string, options: SendOptions): Promise<Run> {
    this.#app.closed.throwIfAborted();
    checkOptions("send", options, sendOptionNames);
    checkWords(options);
    const { queueMode, idempotencyKey, schema, images = [], ...given } = options;
    const { provenance, ...rest } = given;
    const outputSchema = schema === undefined ? undefined : await jsonSchemaFor(schema);
    const context = this.#resolved();
    if (this.#loopTurn !== null) await this.endTurn();
    const { run } = await acceptInput(this.#app, context, {
      kind: "user",
      runId,
      content: withImages(text, images),
      ...present({ queueMode, idempotencyKey }),
      options: { ...rest, ...present({ outputSchema }) },
      ...present({ provenance }),
    }).catch((error: unknown) => {
      this.#app.closed.throwIfAborted(); // then nothing else is wrong
      throw error;
    });
    return run;
  }

  async #checkTextSize(text: string, session: SessionRecord | null): Promise<void> {
    const { agentId, sessionKey } = this.#resolved();
    await checkTextSize(text, () => modelWindow(this.#app, agentId, sessionKey, session?.meta.model));
  }

  #newRunId(userId: string | null, idempotencyKey: string | undefined): string {
    return idempotencyKey === undefined ? this.#app.newId() : runIdOf(userId, idempotencyKey);
  }

  #resolved() {
    return resolveRuntimeContext(this.#app, this.#context);
  }
}

async function jsonSchemaFor(schema: object): Promise<Readonly<Record<string, unknown>>> {
  const { jsonSchemaOf } = await import("../agents/tools/prepare-tool.ts");
  return jsonSchemaOf("The schema of the answer", schema as Parameters<typeof jsonSchemaOf>[1]);
}

/** A field of a draft that does not fit, with the message that has it. */
function withItem(item: string, error: unknown): unknown {
  if (!(error instanceof SkeinError) || error.code !== "invalid_entry") return error;
  return new SkeinError("invalid_arguments", {
    problem: `${item} cannot be written: ${error.details.problem}`,
    advice: "The messages before it were written; pass the rest again when it is right",
  });
}

/** The text that a request has to hold whole. Tool results are cut to the window. */
function shownText(draft: MessageDraft): string {
  return "content" in draft && draft.role !== "toolResult" ? textOf(draft.content) : "";
}

/** Whether the last message waits for an answer; `null`: there is none that decides. */
function asksForAnswer(entries: readonly Entry[]): boolean | null {
  const last = entries.findLast((entry) => entry.type === "message")?.message;
  if (last?.role === "assistant") return callsOf(last).length > 0;
  return last?.role === "user" || last?.role === "toolResult" ? true : null;
}

const queueModes: readonly QueueMode[] = ["steer", "followup", "interrupt"];
const thinkingLevels: readonly string[] = ["off", "minimal", "low", "medium", "high", "xhigh"];

/** Whoever does not write TypeScript is told here, before anything is made. */
function checkWords({ queueMode, thinking }: SendOptions): void {
  checkWord("queueMode", queueMode, queueModes);
  checkWord("thinking", thinking, thinkingLevels);
}

function checkWord(name: string, given: string | undefined, words: readonly string[]): void {
  if (given === undefined || words.includes(given)) return;
  throw new SkeinError("invalid_arguments", {
    problem: `${name} is ${JSON.stringify(given)}`,
    advice: `Give one of ${words.join(", ")}, or leave it out`,
  });
}
