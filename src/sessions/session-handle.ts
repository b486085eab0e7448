import type { StepUsage } from "../agents/contract.ts";
import type { OptionNames } from "../core/check-options.ts";
import { checkOptions } from "../core/check-options.ts";
import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import type { Provenance } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { Script } from "../core/script.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { thinkingLevels } from "../core/thinking-levels.ts";
import type { Params, Result } from "../protocol/method-table.ts";
import type { QueueMode, Run, RunOptions } from "../runs/contract.ts";
import { runIdOf } from "../runs/ledger/run-ledger.ts";
import type {
  Appended,
  AppendItem,
  AppendOptions,
  EntryPage,
  EntryRange,
  SessionRecord,
} from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { withPlainUsers } from "../store/spaces.ts";
import type { WorkingSessions } from "../store/work.ts";
import type { ModelRef } from "../transcript/model-table.ts";
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
import { askWriteHooks, callsOf, guardedAppend } from "./append.ts";
import type { CompactNowOptions } from "./compact.ts";
import { compactNow } from "./compact.ts";
import type { CompactionOutcome } from "./compaction-summary.ts";
import { noteOf } from "./delivery.ts";
import type { SessionTarget } from "./resolve-context.ts";
import { resolveSessionTarget } from "./resolve-context.ts";
import { checkIdle } from "./run-session.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { callsFor } from "./services.ts";
import type { Turn } from "./turn-handle.ts";
import { TurnHandle } from "./turn-handle.ts";
import type { Xray, XrayOptions } from "./xray.ts";
import { xray } from "./xray.ts";

/** Options for {@link SessionHandle.send}. */
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
  /** Sending again with the same key returns the same run, even after a restart. */
  readonly idempotencyKey?: string;
  /**
   * What to do if a turn is already running: join it, wait for it, or interrupt it. The default comes from the
   * configuration.
   */
  readonly queueMode?: QueueMode;
  /**
   * A TypeBox schema, any Standard Schema, or a JSON Schema for an object. The answer must match it and is returned as
   * `output`.
   */
  readonly schema?: object;
  readonly images?: readonly { readonly data: string; readonly mimeType: string }[];
  /** The message's author. Defaults to a user on the session's channel. */
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

/** An AI SDK `ModelMessage`. */
export interface ModelMessageLike {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | readonly object[];
}

/**
 * The model that produced the answers in appended AI SDK messages, and the usage of the last answer. By default, the
 * model is inferred from the answers' signatures.
 */
export interface MessageOrigin {
  readonly provider?: string;
  readonly model?: string;
  /** Token usage for the last answer, as reported by the AI SDK. */
  readonly usage?: StepUsage;
}

/** The argument of the AI SDK's `onStepFinish`. */
interface FinishedStep {
  readonly response: { readonly messages: readonly ModelMessageLike[]; readonly modelId?: string };
  readonly model?: { readonly provider: string; readonly modelId: string };
  readonly usage?: StepUsage;
}

/** The result of {@link SessionHandle.append}. */
export interface AppendedMessages {
  readonly entries: readonly Entry[];
  /** The changes that the guard made. */
  readonly notes: readonly GuardNote[];
  /**
   * Why messages were not written, with one reason per message: a result without a pending call, or a hook's refusal.
   */
  readonly refused: readonly string[];
}

/**
 * A handle for a session, addressed by its context. The first message creates the session.
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
  /** The session (uid) in which this handle opened a turn for the caller's own loop. */
  #loopTurn: string | null = null;

  constructor(app: App, context: RuntimeContext) {
    this.#app = app;
    this.#context = context;
  }

  get key(): string {
    return this.#target.key;
  }

  /** Returns the session's record, or `null` if the session does not exist yet. */
  async record(): Promise<SessionRecord | null> {
    return withPlainUsers(await this.#find());
  }

  /** Returns the session's record, creating the session if it does not exist. */
  async open(): Promise<SessionRecord> {
    return withPlainUsers(await this.#open());
  }

  async #open(): Promise<SessionRecord> {
    this.#app.closed.throwIfAborted();
    const target = this.#target;
    if (!isServed(this.#app, target.agentId, target.key)) throw noSuchAgent(target.agentId);
    return sessionFor(this.#app.store, target);
  }

  /** Queues a message without waiting for the turn. The message is durable when the promise resolves. */
  async accept(text: string, options: SendOptions = {}): Promise<Run> {
    const runId = this.#newRunId(this.#user(), options.idempotencyKey);
    return withPlainUsers(await this.#accept(runId, text, options));
  }

  /** Sends a message and starts a turn. The turn runs even if its events are not read. */
  send(text: string, options: SendOptions = {}): Turn {
    const { events, runs, watcher, awaitedRuns } = this.#app;
    const runId = this.#newRunId(this.#user(), options.idempotencyKey);
    const accepted = this.#accept(runId, text, options);
    accepted.catch(() => undefined);
    return new TurnHandle({
      runId,
      accepted,
      subscribe: (listener) => events.subscribe(listener),
      waits: (id) => runs.waits(id),
      untilEnded: (id) => watcher.untilEnded(id),
      abort: (id) => runs.abort(id),
      awaitedRuns,
    });
  }

  /**
   * Appends a message in the agent's name without calling a model. Throws `not_found` if the session does not exist.
   */
  async note(text: string, { idempotencyKey }: Pick<SendOptions, "idempotencyKey"> = {}): Promise<Run> {
    const { closed, runs } = this.#app;
    closed.throwIfAborted();
    const session = await this.#require();
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
   * Appends messages from your own agent loop, in Skein's format or the AI SDK's. The guard checks them. Calls that can
   * never be valid are removed, calls without a result get a synthetic one before the next message, and large content
   * is moved to blobs. The session is created if it does not exist. Throws `conflict` while a run is active.
   *
   * A message that requires an answer (a user message, a tool call or a tool result) opens a turn for your loop. Runs
   * in the session then wait until you append an assistant message without tool calls, call {@link endTurn}, or send
   * with this handle, or until nothing has been appended for ten minutes.
   */
  async append(
    messages: readonly (MessageDraft | ModelMessageLike)[],
    origin: MessageOrigin = {},
  ): Promise<AppendedMessages> {
    const { store, hooks, runs, owner, closed } = this.#app;
    closed.throwIfAborted();
    const { toDrafts } = await import("../agents/models/to-drafts.ts");
    const drafts = await toDrafts(messages, origin);
    const known = await this.#find();
    for (const { draft } of drafts) await this.#checkTextSize(shownText(draft), known);
    const session = await this.#open();
    await runs.read(() => checkIdle(runs, session));
    const done: { entries: Entry[]; notes: GuardNote[]; refused: string[] } = {
      entries: [],
      notes: [],
      refused: [],
    };
    let isNew = false;
    let isOpenedHere = false;
    const openTurn = function* (): Script<boolean> {
      yield* checkIdle(runs, session);
      isOpenedHere = yield* runs.openLoopTurn(session, owner);
      return true;
    };
    const afterCommit = () => {
      isNew ||= isOpenedHere;
      this.#loopTurn = session.uid;
    };
    const fence = { script: openTurn, durability: "unsynced", afterCommit } as const;
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
   * Appends entries in one write. The guard does not check them, so calls can remain without a result. Hooks can replace
   * messages, and `redaction.onWrite` masks secrets in all entries. With `parentId`, the write starts a branch. The
   * session is created if it does not exist. Throws `forbidden` if a hook refuses a message: nothing is then written.
   * Throws `conflict` while a run is active, or while another process's loop is answering.
   */
  async appendEntries(
    items: readonly AppendItem[],
    options: Pick<AppendOptions, "expectedLeafId" | "parentId"> = {},
  ): Promise<Appended> {
    const { store, runs } = this.#app;
    const session = await this.#open();
    await runs.read(() => checkIdle(runs, session));
    const fence = { script: () => checkIdle(runs, session) };
    const sessions: WorkingSessions = store.sessions;
    const accepted: AppendItem[] = [];
    for (const item of items)
      accepted.push({ ...item, draft: await this.#acceptedDraft(item.draft, session) });
    return sessions.append(scopeOfSession(session), session.sessionId, accepted, { ...options, fence });
  }

  /**
   * Opens a turn for your own loop without appending a message, to continue a turn whose process has died. Creates the
   * session if it does not exist. Returns `false` if this process already has the turn open. Throws `conflict` while a
   * run is active, or while another process's loop is answering.
   */
  async startTurn(): Promise<boolean> {
    const session = await this.#open();
    const { runs, owner } = this.#app;
    const isNew = await runs.startLoopTurn(session, owner);
    this.#loopTurn = session.uid;
    return isNew;
  }

  /**
   * Ends your own loop's turn so that waiting runs can start. Call it if the loop stops without a final answer, for
   * example at its step limit or after an error. Does nothing if no turn is open.
   */
  readonly endTurn = async (): Promise<void> => {
    const uid = this.#loopTurn ?? (await this.record())?.uid;
    this.#loopTurn = null;
    const { runs, owner, worker } = this.#app;
    // Waiting runs can be claimed now.
    if (uid !== undefined && (await runs.endLoopTurns(uid, owner))) worker.wake();
  };

  /**
   * A callback for the AI SDK's `onStepFinish` (or `onStepEnd`) that appends each step's messages with their model and
   * usage. It rejects if {@link append} does. The AI SDK ignores the rejection, so the error is also logged.
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

  /** Returns a page of the session's entries as they are stored, oldest first. */
  async entries(range: EntryRange): Promise<EntryPage> {
    this.#app.closed.throwIfAborted();
    const session = await this.#require();
    const page = await this.#app.store.sessions.page(scopeOfSession(session), session.sessionId, range);
    return page ?? noSuchSession(this.key);
  }

  /** Returns an entry on any branch, or `null` if it does not exist. */
  async entry(entryId: string): Promise<Entry | null> {
    this.#app.closed.throwIfAborted();
    const session = await this.#require();
    return this.#app.store.sessions.entry(scopeOfSession(session), session.sessionId, entryId);
  }

  /** Returns content that an entry refers to by its hash, or `null` if there is none. */
  async blob(sha256: string): Promise<Uint8Array | null> {
    this.#app.closed.throwIfAborted();
    return this.#app.store.blobs.get(scopeOfSession(await this.#require()), sha256);
  }

  /**
   * Shows the request that your own loop would send to a model for this session, with every change made for the
   * provider. Unlike `skein.xray`, it adds nothing from the session's agent.
   */
  async xray(model: string | ModelRef, options: XrayOptions = {}): Promise<Xray> {
    this.#app.closed.throwIfAborted();
    const { store } = this.#app;
    const session = await this.#require();
    const scope = scopeOfSession(session);
    const context = await store.sessions.context(scope, session.sessionId);
    const { shrinkImage } = await import("../agents/shrink-image.ts");
    const images = { blob: (sha256: string) => store.blobs.get(scope, sha256), shrink: shrinkImage };
    return xray(context ?? noSuchSession(this.key), model, { images, ...options });
  }

  /** Returns a page of the active branch, oldest message first. */
  async history(
    range: Pick<Params<"chat.history">, "limit" | "before" | "after" | "around" | "leafId"> = {},
  ): Promise<Result<"chat.history">> {
    const { calls, key, ...reader } = await this.#reference();
    return calls.call("chat.history", { sessionKey: key, ...reader, ...range });
  }

  /** Continues the conversation after this entry, or before the first entry if `null`. Nothing is deleted. */
  async branch(entryId: string | null): Promise<Result<"sessions.branch">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.branch", { ...session, entryId });
  }

  /** Creates a new session that contains the branch up to an entry, or the whole active branch. */
  async fork(
    options: Pick<Params<"sessions.fork">, "entryId" | "sessionId" | "label"> = {},
  ): Promise<Result<"sessions.fork">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.fork", { ...session, ...options });
  }

  /** Sets the label by which the session can be found. `null` removes the label. */
  async label(label: string | null): Promise<Result<"sessions.rename">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.rename", { ...session, label });
  }

  /** Moves the key to a new, empty session. The old session can still be read under `previous.key`. */
  async reset(): Promise<Result<"sessions.reset">> {
    const { calls, ...session } = await this.#reference();
    return calls.call("sessions.reset", session);
  }

  /** Summarizes the older part of the session with its model. Throws `conflict` while a run is active. */
  async compact(options: CompactNowOptions = {}): Promise<CompactionOutcome> {
    this.#app.closed.throwIfAborted();
    return compactNow(this.#app, await this.#require(), options);
  }

  /** Calls the hooks for a message. They mask secrets in it if `redaction.onWrite` is set. */
  async #acceptedDraft(draft: EntryDraft, session: SessionRecord): Promise<EntryDraft> {
    const { store, hooks, config, redactor } = this.#app;
    if (draft.type !== "message")
      return config.redaction.onWrite ? (redactor.redactJson(draft).value as EntryDraft) : draft;
    const ctx = { ...scopeOfSession(session), sessionId: session.sessionId, store };
    const asked = await askWriteHooks(hooks, ctx, draft.message);
    if ("message" in asked) return { ...draft, message: asked.message };
    throw new SkeinError("forbidden", {
      problem: `A hook refused a message: ${asked.refused}`,
      advice: "Nothing was written. Leave the message out or change it",
    });
  }

  async #require(): Promise<SessionRecord> {
    return (await this.#find()) ?? noSuchSession(this.key);
  }

  #find(): Promise<SessionRecord | null> {
    return findFor(this.#app.store, this.#target);
  }

  /**
   * Returns the user for a run ID. `send` must return a turn even if the context is invalid. The turn then reports the
   * error.
   */
  #user(): string | null {
    try {
      return this.#app.spaces.enter(this.#context);
    } catch {
      return this.#context.userId ?? null;
    }
  }

  /** Returns the session as method parameters, and the methods for its user. */
  async #reference(): Promise<{ calls: UserCalls; key: string; agentId: string; userId?: string }> {
    this.#app.closed.throwIfAborted();
    const { key, agentId, userId } = await this.#require();
    return { ...(await callsFor(this.#app.calls, userId)), key, agentId };
  }

  async #accept(runId: string, text: string, options: SendOptions): Promise<Run> {
    this.#app.closed.throwIfAborted();
    checkOptions("send", options, sendOptionNames);
    checkOneOf("queueMode", options.queueMode, queueModes);
    checkOneOf("thinking", options.thinking, thinkingLevels);
    const { queueMode, idempotencyKey, schema, images = [], ...given } = options;
    const { provenance, ...rest } = given;
    const outputSchema = schema === undefined ? undefined : await jsonSchemaFor(schema);
    const target = this.#target;
    if (this.#loopTurn !== null) await this.endTurn();
    const { run } = await acceptInput(this.#app, target, {
      kind: "user",
      runId,
      content: withImages(text, images),
      ...present({ queueMode, idempotencyKey }),
      options: { ...rest, ...present({ outputSchema }) },
      ...present({ provenance }),
    }).catch((error: unknown) => {
      this.#app.closed.throwIfAborted(); // The store fails while the app is closing.
      throw error;
    });
    return run;
  }

  async #checkTextSize(text: string, session: SessionRecord | null): Promise<void> {
    const { agentId, key } = this.#target;
    await checkTextSize(text, () => modelWindow(this.#app, agentId, key, session?.meta.model));
  }

  #newRunId(userId: string | null, idempotencyKey: string | undefined): string {
    return idempotencyKey === undefined ? this.#app.newId() : runIdOf(userId, idempotencyKey);
  }

  get #target(): SessionTarget {
    return resolveSessionTarget(this.#app, this.#context);
  }
}

async function jsonSchemaFor(schema: object): Promise<Readonly<Record<string, unknown>>> {
  const { jsonSchemaOf } = await import("../agents/tools/prepare-tool.ts");
  const { schemaProblem } = await import("../agents/tools/check-json-schema.ts");
  const what = "The answer's schema";
  const made = await jsonSchemaOf(what, schema as Parameters<typeof jsonSchemaOf>[1]);
  const fault = schemaProblem(made);
  if (fault === null) return made;
  const advice = "Correct the schema. Its patterns must be JavaScript regular expressions with the u flag";
  throw new SkeinError("invalid_arguments", { problem: `${what} is invalid: ${fault}`, advice });
}

/** Adds the position of the message that has the invalid field. */
function withItem(item: string, error: unknown): unknown {
  if (!(error instanceof SkeinError) || error.code !== "invalid_entry") return error;
  return new SkeinError("invalid_arguments", {
    problem: `${item} cannot be written: ${error.details.problem}`,
    advice: "The messages before it were written. Fix it, then append the rest",
  });
}

/**
 * Returns the text that must fit in the model's window. Tool results are not counted because they are truncated to fit.
 */
function shownText(draft: MessageDraft): string {
  return "content" in draft && draft.role !== "toolResult" ? textOf(draft.content) : "";
}

/**
 * Whether the last message requires an answer. Returns `null` if there is no message, or if its role does not determine
 * this.
 */
function asksForAnswer(entries: readonly Entry[]): boolean | null {
  const last = entries.findLast((entry) => entry.type === "message")?.message;
  if (last?.role === "assistant") return callsOf(last).length > 0;
  return last?.role === "user" || last?.role === "toolResult" ? true : null;
}

const queueModes: readonly QueueMode[] = ["steer", "followup", "interrupt"];

/** Checks a value that untyped code might pass. */
function checkOneOf(name: string, value: string | undefined, allowed: readonly string[]): void {
  if (value === undefined || allowed.includes(value)) return;
  throw new SkeinError("invalid_arguments", {
    problem: `${name} is ${JSON.stringify(value)}`,
    advice: `Use one of ${allowed.join(", ")}, or omit it`,
  });
}
